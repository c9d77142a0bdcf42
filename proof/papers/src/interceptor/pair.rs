//! Calls of two kinds of clients in turns, to one server: the time of a call, and by how much it
//! differs from the other kind's in the same turn.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use steadfast::{Client, Invocation, Random};

use super::bare::Bare;
use super::kind::{ALONE, Kind, SIZE};
use harness::Outcome;
use harness::echo::ECHO;
use harness::figures::median_and_worst;

/// Each pair of kinds is called by so many pairs of clients.
const ROUNDS: u64 = 20;

/// Turns of each before any counts.
pub const WARM: u64 = 200;

const DEADLINE: Duration = Duration::from_secs(10);

/// Calls in turns: in each turn one of each kind, whose times in nanoseconds are a pair.
pub struct Calls {
    pub kind: Kind,
    pub than: Kind,
    pub pairs: Vec<(u64, u64)>,
}

/// A client of some kind.
enum Caller {
    Bare(Box<Bare>),
    Session(Client, &'static str),
}

impl Caller {
    fn connect(kind: Kind, nodes: &[SocketAddr]) -> Outcome<Caller> {
        Ok(match kind {
            Kind::Bare => Caller::Bare(Box::new(Bare::connect(nodes[0], ALONE)?)),
            Kind::Static | Kind::Proactive => Caller::Session(kind.connect(nodes)?, kind.group()),
        })
    }

    fn call(&mut self, body: Bytes) -> Outcome<Bytes> {
        match self {
            Caller::Bare(bare) => bare.call(body),
            Caller::Session(client, group) => {
                Ok(client.call(Invocation::new(*group, ECHO).body(body).within(DEADLINE))?)
            }
        }
    }
}

/// So many turns of these two, in rounds with clients anew: where one's memory and connection
/// happen to be is of that client, not of its kind.
pub fn measure(
    turns: u64,
    warm: u64,
    nodes: &[SocketAddr],
    (kind, than): (Kind, Kind),
) -> Outcome<Calls> {
    let mut random = Random::new(turns);
    let mut pairs = Vec::new();
    for _ in 0..ROUNDS {
        round((warm, turns.div_ceil(ROUNDS)), nodes, (kind, than), &mut random, &mut pairs)?;
    }
    Ok(Calls { kind, than, pairs })
}

/// The first caller of each turn is drawn: the next finds the server and its processor as the one
/// before has left them.
fn round(
    (warm, turns): (u64, u64),
    nodes: &[SocketAddr],
    (kind, than): (Kind, Kind),
    random: &mut Random,
    pairs: &mut Vec<(u64, u64)>,
) -> Outcome<()> {
    let mut callers = [Caller::connect(kind, nodes)?, Caller::connect(than, nodes)?];
    let body = Bytes::from(vec![7; SIZE]);
    for turn in 0..warm + turns {
        let mut took = [0; 2];
        let first = random.below(2) as usize;
        for place in [first, 1 - first] {
            let begun = Instant::now();
            let reply = callers[place].call(body.clone())?;
            took[place] = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            if reply != body {
                return Err("the echo is another".into());
            }
        }
        if turn >= warm {
            pairs.push((took[0], took[1]));
        }
    }
    Ok(())
}

/// By how much one kind's calls take longer than another's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The median of the differences in each turn, in nanoseconds.
    pub median: f64,
    /// The median is between these with a probability of 95 %.
    pub low: f64,
    pub high: f64,
    /// The mean of all differences; it includes calls that the machine has held up.
    pub mean: f64,
}

impl Calls {
    /// The median time of a call of each kind, in nanoseconds.
    pub fn medians(&self) -> [f64; 2] {
        let of = |took: fn(&(u64, u64)) -> u64| {
            let took = self.pairs.iter().map(|pair| took(pair) as f64).collect();
            median_and_worst(took).unwrap_or_default().0
        };
        [of(|pair| pair.0), of(|pair| pair.1)]
    }

    /// How much longer the first takes.
    pub fn difference(&self) -> Difference {
        let each = self.pairs.iter().map(|(kind, than)| *kind as f64 - *than as f64);
        let mut each: Vec<f64> = each.collect();
        each.sort_by(f64::total_cmp);
        let last = each.len().saturating_sub(1);
        // The places in order that a median's interval has: a binomial of one half.
        let (middle, wide) = (last as f64 / 2.0, 0.98 * (each.len() as f64).sqrt());
        let at = |place: f64| each.get((place.max(0.0) as usize).min(last)).copied().unwrap_or(0.0);
        Difference {
            median: at(middle),
            low: at((middle - wide).floor()),
            high: at((middle + wide).ceil()),
            mean: each.iter().sum::<f64>() / each.len().max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_of_pairs_and_one_call_that_was_held_up_does_not_move_its_median() {
        let mut pairs: Vec<(u64, u64)> =
            (0..99).map(|turn| (1_000 * turn + 40, 1_000 * turn)).collect();
        pairs.push((9_000_000, 0));
        let calls = Calls { kind: Kind::Proactive, than: Kind::Static, pairs };
        let found = calls.difference();
        assert_eq!((found.median, found.low, found.high), (40.0, 40.0, 40.0));
        assert!(found.mean > 90_000.0);
        assert_eq!(calls.medians()[1], 49_000.0);
    }
}
