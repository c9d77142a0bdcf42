//! Programs of ranks: what each does next follows from what it has taken.

/// The work of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each sends to the next, and takes from the one before.
    Ring,
    /// Pairs send two messages each, and take the second one first.
    Tags,
    /// Rank 0 takes from whoever is first, and answers.
    Farm,
    /// A ring whose messages have numbers from outside, and what was there at some time.
    Clock,
    /// The same, but nothing is noted: done again, it is something else.
    Outside,
}

/// The next thing that a program does.
pub enum Act {
    Send(u32, u32, u64),
    Take(Option<u32>, u32),
    Probe,
    Draw,
    Nothing,
}

/// Rounds of each program.
const ROUNDS: u64 = 12;

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Ring, Kind::Tags, Kind::Farm, Kind::Clock, Kind::Outside];

    /// All its ends are the same, whatever comes first.
    pub fn is_determined(self) -> bool {
        matches!(self, Kind::Ring | Kind::Tags)
    }
}

#[derive(Clone, Debug)]
pub struct Program {
    rank: u32,
    /// Its acts so far.
    count: u64,
    /// All that it knows.
    state: u64,
    /// From whom it took last.
    last: u32,
}

pub fn mix(one: u64, other: u64) -> u64 {
    let mixed = (one ^ other.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

impl Program {
    pub fn new(rank: u32) -> Program {
        Program { rank, count: 0, state: mix(7, rank.into()), last: 0 }
    }

    pub fn state(&self) -> u64 {
        self.state
    }

    pub fn is_done(&self, kind: Kind, many: u32) -> bool {
        matches!(self.next(kind, many), Act::Nothing)
    }

    pub fn next(&self, kind: Kind, many: u32) -> Act {
        let (rank, payload) = (self.rank, mix(self.state, self.count));
        let (after, before) = ((rank + 1) % many, (rank + many - 1) % many);
        let (steps, rounds) = match kind {
            Kind::Ring => (2, ROUNDS),
            Kind::Tags => (4, if rank ^ 1 < many { ROUNDS } else { 0 }),
            Kind::Farm if rank == 0 => (2, ROUNDS * u64::from(many - 1)),
            Kind::Farm => (2, ROUNDS),
            Kind::Clock => (4, ROUNDS),
            Kind::Outside => (3, ROUNDS),
        };
        if self.count >= steps * rounds {
            return Act::Nothing;
        }
        match (kind, self.count % steps) {
            (Kind::Ring, 0) | (Kind::Clock, 2) => Act::Send(after, 0, payload),
            (Kind::Ring, _) | (Kind::Clock, 3) => Act::Take(Some(before), 0),
            (Kind::Tags, step @ 0..2) => Act::Send(rank ^ 1, step as u32, payload),
            (Kind::Tags, step) => Act::Take(Some(rank ^ 1), 3 - step as u32),
            (Kind::Farm, 0) if rank == 0 => Act::Take(None, 0),
            (Kind::Farm, _) if rank == 0 => Act::Send(self.last, 0, payload),
            (Kind::Farm, 0) => Act::Send(0, 0, payload),
            (Kind::Farm, _) => Act::Take(Some(0), 0),
            (Kind::Outside, 1) => Act::Send(after, 0, payload),
            (Kind::Outside, 2) => Act::Take(Some(before), 0),
            (Kind::Clock, 0) | (Kind::Outside, _) => Act::Draw,
            (Kind::Clock, _) => Act::Probe,
        }
    }

    /// It is done; a message, or a number, came of it.
    pub fn done(&mut self, taken: Option<(u32, u64)>) {
        self.count += 1;
        if let Some((from, payload)) = taken {
            self.state = mix(mix(self.state, payload), from.into());
            self.last = from;
        }
    }
}
