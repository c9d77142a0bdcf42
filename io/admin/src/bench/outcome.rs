//! A benchmark's request and its result.

use std::fmt;

use engine::{BenchProgress, BenchRequest, BenchResult};
use serde::{Deserialize, Serialize};
use wire::bench::Until;
use wire::bench::{LOAD_HEADER, Measured, Pacing, Plan};
use wire::histogram::{Histogram, Times};
use wire::ring::Level;
use wire::{Duration, NodeId};

/// When a sender sends its next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As soon as fewer than so many of its messages are under way.
    Window(u32),
    /// As [`Pace::Window`], with a window that fills the ring: a mebibyte.
    Full,
    /// One in every so many microseconds, whatever became of those before.
    EveryUs(u64),
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Window(1) => f.write_str("one"),
            Pace::Window(window) => write!(f, "window={window}"),
            Pace::Full => f.write_str("full"),
            Pace::EveryUs(us) => write!(f, "every={}ms", *us as f64 / 1_000.0),
        }
    }
}

/// The measurement to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ask {
    /// The senders: members of the ring.
    pub senders: Vec<NodeId>,
    /// Bytes of each ordered message, its header of 16 bytes included.
    pub size: u32,
    /// Messages of each sender, at most.
    pub count: u64,
    /// The first of these are not measured.
    pub warm: u64,
    /// No message is begun after so many milliseconds.
    pub span_ms: u64,
    /// When a message may be delivered.
    pub level: Level,
    /// When the next message is sent.
    pub pace: Pace,
    /// The event that a message's sender waits for.
    pub until: Until,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Messages delivered at the node that was asked.
    pub delivered: u64,
    /// Messages at the most: the time may be over before.
    pub expected: u64,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The request, with the window as it was.
    pub ask: Ask,
    /// Messages that each sender sent, in the order of `ask.senders`.
    pub sent: Vec<u64>,
    /// Each member's figures.
    pub nodes: Vec<Seen>,
    /// Messages a second, delivered at the slowest member.
    pub msgs_s: f64,
    /// All senders' times together.
    pub times: Figures,
    /// The latest hand-in of a message where a pace was set, in microseconds.
    pub late_us: f64,
}

/// A member's figures over all messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The member's node.
    pub node: NodeId,
    /// Messages delivered there.
    pub received: u64,
    /// Those with another content than their sender wrote.
    pub corrupt: u64,
    /// Those that were not the next of their sender.
    pub disordered: u64,
    /// It has the same messages in the same order as the first member in this list.
    pub same_order: bool,
    /// From the first to the last delivery there, in microseconds.
    pub span_us: f64,
}

/// The messages' times, by their senders' clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Until the message left: the wait for the token, or for the flow control.
    pub send: Option<Summary>,
    /// Until it was delivered at its sender.
    pub own: Option<Summary>,
    /// Until its sender knew that every member has it.
    pub all: Option<Summary>,
    /// Until the ordered answer of the farthest member was delivered at its sender.
    pub echo: Option<Summary>,
}

/// Times, in microseconds; each is exact to less than one part in a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many there are.
    pub n: u64,
    /// The shortest.
    pub min_us: f64,
    /// Half are at most this long.
    pub p50_us: f64,
    /// All but one in a hundred.
    pub p99_us: f64,
    /// All but one in a thousand.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Ask {
    /// The request to the engine.
    pub fn request(&self) -> BenchRequest {
        let mut senders = self.senders.clone();
        senders.sort_unstable();
        BenchRequest {
            senders,
            size: self.size,
            count: self.count,
            warm: self.warm,
            span: Duration::from_millis(self.span_ms),
            level: self.level,
            pacing: match self.pace {
                Pace::Window(window) => Pacing::Window(window),
                Pace::Full => Pacing::Window(Plan::full_window(self.size)),
                Pace::EveryUs(us) => Pacing::Every(Duration::from_micros(us)),
            },
            until: self.until,
        }
    }

    fn of(plan: Plan) -> Ask {
        let milliseconds = plan.span.as_millis();
        Ask {
            senders: plan.senders,
            size: plan.size,
            count: plan.count,
            warm: plan.warm,
            span_ms: u64::try_from(milliseconds).unwrap_or(u64::MAX),
            level: plan.level,
            pace: match plan.pacing {
                Pacing::Window(window) => Pace::Window(window),
                Pacing::Every(pause) => {
                    Pace::EveryUs(u64::try_from(pause.as_micros()).unwrap_or(u64::MAX))
                }
            },
            until: plan.until,
        }
    }
}

impl From<BenchProgress> for Progress {
    fn from(progress: BenchProgress) -> Self {
        Progress { delivered: progress.delivered, expected: progress.expected }
    }
}

impl Outcome {
    /// Sums up the members' reports.
    pub fn of(result: BenchResult) -> Outcome {
        let BenchResult { plan, sent, reports } = result;
        let first = reports.first().map(|(_, report)| (report.order, report.received.clone()));
        let seen = reports.iter().map(|(member, report)| Seen {
            node: member.node,
            received: report.received.iter().sum(),
            corrupt: report.corrupt,
            disordered: report.disordered,
            same_order: first.as_ref() == Some(&(report.order, report.received.clone())),
            span_us: us(report.span),
        });
        let nodes: Vec<Seen> = seen.collect();
        let measured: Vec<&Measured> =
            reports.iter().filter_map(|(_, report)| report.measured.as_ref()).collect();
        let late = measured.iter().map(|measured| measured.late).max().unwrap_or_default();
        let times = Figures {
            send: summary(measured.iter().map(|measured| &measured.send)),
            own: summary(measured.iter().map(|measured| &measured.own)),
            all: summary(measured.iter().map(|measured| &measured.all)),
            echo: summary(measured.iter().map(|measured| &measured.echo)),
        };
        // From the first to the last message there is one pause less than there are messages.
        let rate =
            |seen: &Seen| seen.received.saturating_sub(1) as f64 * 1e6 / seen.span_us.max(1.0);
        let msgs_s = nodes.iter().map(rate).fold(f64::INFINITY, f64::min);
        Outcome {
            ask: Ask::of(plan),
            sent,
            nodes,
            msgs_s: if msgs_s.is_finite() { msgs_s } else { 0.0 },
            times,
            late_us: us(late),
        }
    }

    /// Every member was given every message that was sent, with its content, in one order.
    pub fn is_verified(&self) -> bool {
        let sent: u64 = self.sent.iter().sum();
        !self.nodes.is_empty()
            && self.nodes.iter().all(|seen| {
                seen.received == sent
                    && seen.corrupt == 0
                    && seen.disordered == 0
                    && seen.same_order
            })
    }

    /// The time that the senders waited for before their next message.
    pub fn latency(&self) -> Option<Summary> {
        match self.ask.until {
            Until::Own => self.times.own,
            Until::All => self.times.all,
            Until::Echo => self.times.echo,
        }
    }

    /// Bytes of content that every message carries.
    pub fn content(&self) -> usize {
        (self.ask.size as usize).saturating_sub(LOAD_HEADER)
    }
}

fn us(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1_000.0
}

fn summary<'a>(times: impl Iterator<Item = &'a Times>) -> Option<Summary> {
    let mut histogram = Histogram::default();
    times.for_each(|times| histogram.add(times));
    let at = |share| histogram.quantile(share).map(us);
    Some(Summary {
        n: histogram.total(),
        min_us: at(0.0)?,
        p50_us: at(0.5)?,
        p99_us: at(0.99)?,
        p999_us: at(0.999)?,
        max_us: at(1.0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::bench::Report;
    use wire::{Incarnation, Member, RingId};

    fn result(orders: [u64; 2]) -> BenchResult {
        let plan = Plan {
            id: 1,
            ring: RingId::default(),
            senders: vec![NodeId(1)],
            size: 64,
            count: 5,
            warm: 0,
            span: Duration::from_secs(1),
            level: Level::Agreed,
            pacing: Pacing::Window(1),
            until: Until::Own,
        };
        let mut own = Histogram::default();
        (1..=5).for_each(|i| own.record(Duration::from_micros(i)));
        let report = |order, span| Report {
            id: 1,
            received: vec![5],
            order,
            corrupt: 0,
            disordered: 0,
            span: Duration::from_micros(span),
            measured: (span == 40).then(|| Measured { own: own.times(), ..Measured::default() }),
        };
        let member = |node| Member { node: NodeId(node), incarnation: Incarnation(1) };
        let reports = vec![(member(1), report(orders[0], 40)), (member(2), report(orders[1], 80))];
        BenchResult { plan, sent: vec![5], reports }
    }

    #[test]
    fn the_slowest_member_gives_the_rate_and_the_senders_the_times() {
        let outcome = Outcome::of(result([7, 7]));
        assert!(outcome.is_verified());
        assert_eq!(outcome.msgs_s, 50_000.0);
        let own = outcome.latency().expect("measured");
        assert_eq!((own.n, own.min_us, own.max_us), (5, 1.0, 5.0));
        assert_eq!(outcome.times.all, None);
        let json = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<Outcome>(&json).unwrap(), outcome);
        let line = outcome.line();
        let figure = |name: &str| line[name].as_f64();
        assert_eq!(
            (figure("n"), figure("p50_us"), figure("own_max_us")),
            (Some(5.0), Some(3.0), Some(5.0))
        );
        assert_eq!((&line["level"], &line["pace"]), (&"agreed".into(), &"one".into()));
    }

    #[test]
    fn another_order_and_a_missing_message_are_no_verified_outcome() {
        assert!(!Outcome::of(result([7, 8])).is_verified());
        let short = BenchResult { sent: vec![6], ..result([7, 7]) };
        assert!(!Outcome::of(short).is_verified());
    }
}
