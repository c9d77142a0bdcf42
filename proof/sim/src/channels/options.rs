//! The draws of a seed of this world.

use super::program::Kind;
use crate::draw::Draw;

#[derive(Clone, Debug)]
pub struct Options {
    pub ranks: u32,
    pub kind: Kind,
    /// Happenings until all heals.
    pub phase: u64,
    /// Ranks are killed: of 1,000 happenings; and each other one with the same blow, of 100.
    pub kills: u64,
    pub others: u64,
    /// The host with a rank's notes dies instead, of 1,000 kills.
    pub moved: u64,
    /// Ranks save, of 1,000.
    pub saves: u64,
    /// The newest image is damaged, of 100 starts.
    pub damaged: u64,
    /// A new start's messages are asked for from so many before the first that is missing, at most.
    pub back: u64,
    /// Messages are kept at other hosts, of 1,000 that leave: none, some, or each before it comes.
    pub kept: u64,
}

impl Options {
    pub fn draw(draw: &mut Draw) -> Options {
        let kind = draw.pick(&Kind::ALL);
        Options {
            ranks: draw.pick(&[2, 2, 3, 4, 5]),
            kind,
            phase: draw.pick(&[500, 2_000, 6_000]),
            kills: draw.pick(&[2, 10, 40]),
            others: draw.pick(&[0, 30, 100]),
            moved: draw.pick(&[0, 100, 300]),
            saves: draw.pick(&[5, 50, 150]),
            damaged: draw.pick(&[0, 25, 60]),
            // Another last message is seen only by whoever looks at it again.
            back: if kind == Kind::Outside { 100 } else { draw.pick(&[0, 4, 100]) },
            kept: draw.pick(&[0, 0, 500, 1_000]),
        }
    }
}
