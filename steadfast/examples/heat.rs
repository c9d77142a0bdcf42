//! Heat in a rod of cells, each rank with a part of it: the edges go to the neighbours in each turn.
//!
//! ```sh
//! cargo build --release -p steadfast --features job --example heat
//! steadfast job run -n 4 -- target/release/examples/heat 20000 1000
//! ```
//!
//! The arguments are turns, and cells of the whole rod. One end is kept at 1, the other at 0. The
//! results are the same, bit by bit, whatever dies meanwhile.

use std::env;

use steadfast::job::{self, Rank, State};

/// Heat that goes from a cell to the next in a turn, for each degree between them.
const RATE: f64 = 0.25;

/// Tags, by the direction in which an edge goes.
const UP: u32 = 0;
const DOWN: u32 = 1;

#[derive(State)]
struct Rod {
    cells: Vec<f64>,
    /// How much the whole rod still changes in a turn.
    residual: f64,
}

fn main() -> Result<(), job::Error> {
    let number = |place: usize| env::args().nth(place).and_then(|text| text.parse().ok());
    let (turns, cells) = (number(1).unwrap_or(20_000), number(2).unwrap_or(1_000));
    job::run(
        |rank| Rod { cells: vec![0.0; part(rank, cells)], residual: 0.0 },
        |rank, rod| {
            rank.turns(rod, 0..turns, |rank, rod, turn| {
                let outside = edges(rank, &rod.cells)?;
                let mut change = [flow(&mut rod.cells, outside)];
                if turn % 100 == 99 {
                    rank.all_reduce(&mut change, |a, b| a + b)?;
                    rod.residual = change[0].sqrt();
                }
                Ok(())
            })?;
            rank.result("cells", &rod.cells)?;
            rank.result("residual", &rod.residual)
        },
    )
}

/// Cells of this rank, one at least.
fn part(rank: &Rank, cells: u64) -> usize {
    let (number, count) = (u64::from(rank.number()), u64::from(rank.count()));
    let begin = |number| cells.max(count) * number / count;
    (begin(number + 1) - begin(number)) as usize
}

/// The temperatures beside this rank's cells: of its neighbours, or of the rod's ends.
fn edges(rank: &mut Rank, cells: &[f64]) -> Result<[f64; 2], job::Error> {
    let below = rank.number().checked_sub(1);
    let above = Some(rank.number() + 1).filter(|above| *above < rank.count());
    let mut outside = [1.0, 0.0];
    if let Some(below) = below {
        rank.send(below, DOWN, &cells[..1])?;
    }
    if let Some(above) = above {
        rank.send(above, UP, &cells[cells.len() - 1..])?;
        rank.receive_into(above, DOWN, &mut outside[1..])?;
    }
    if let Some(below) = below {
        rank.receive_into(below, UP, &mut outside[..1])?;
    }
    Ok(outside)
}

/// Has heat flow between the cells, for one turn: the sum of the squares of all changes.
fn flow(cells: &mut [f64], [first, last]: [f64; 2]) -> f64 {
    let (mut before, mut sum) = (first, 0.0);
    for place in 0..cells.len() {
        let (cell, after) = (cells[place], cells.get(place + 1).copied().unwrap_or(last));
        let change = RATE * (before - 2.0 * cell + after);
        cells[place] += change;
        (before, sum) = (cell, sum + change * change);
    }
    sum
}
