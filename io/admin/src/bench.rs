//! Benchmarks of the ring, as tools ask for them and read what they gave: JSON at the admin socket.

mod line;
mod outcome;

pub use line::own_cost;
pub use outcome::{Ask, Figures, Outcome, Pace, Progress, Seen, Summary};
pub use wire::bench::Until;
pub use wire::ring::Level;
