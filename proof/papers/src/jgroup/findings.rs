//! The results of the runs: in figures, as a table beside the paper's, and for programs.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::NodeId;

use super::callers::{Made, SIZE, Seen};
use super::way::Way;
use harness::figures::quantile;
use harness::{Findings, Run, name};

/// Servers, each a node process.
pub const SERVERS: u32 = 4;

/// The paper's results, in milliseconds (section 6): until a call that meets the crash goes
/// elsewhere, and from the new view until clients know it.
const PAPER_FAIL_OVER: f64 = 631.8;
const PAPER_VIEW: f64 = 52.0;
const PAPER_PERIODIC: f64 = 8_160.0;

/// A part of a run, in its microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from: u64,
    pub to: u64,
}

/// A server's crash and return, in microseconds of the run.
#[derive(Clone, Debug)]
pub struct Fault {
    pub victim: NodeId,
    /// Where it was before.
    pub address: SocketAddr,
    pub crashed: u64,
    /// The first of the others has the view without it.
    pub shrunk: u64,
    /// The view with all servers again, and when the first server had it.
    pub view: u64,
    pub returned: u64,
}

/// One run.
pub struct Course {
    pub way: Way,
    pub clients: usize,
    /// Before the first crash, and after each return: nothing changes meanwhile.
    pub phases: Vec<Span>,
    pub faults: Vec<Fault>,
    /// By client.
    pub seen: Vec<Seen>,
}

/// All runs.
pub struct Found {
    pub machine: String,
    /// Percent of one of this machine's that each server has, if that is limited.
    pub processor: Option<u32>,
    pub period: Duration,
    /// By how much that is shorter than the paper's.
    pub factor: f64,
    pub courses: Vec<Course>,
}

/// A phase's figures.
pub struct Steady {
    /// Calls a second.
    pub rate: f64,
    pub mean_ms: f64,
    pub p99_ms: f64,
    /// Percent of the calls, by the server that answered.
    pub shares: Vec<f64>,
}

/// Times of one kind, in milliseconds.
struct Delays(Vec<f64>);

impl Delays {
    fn at(&self, share: f64) -> Option<f64> {
        quantile(self.0.clone(), share)
    }

    fn json(&self) -> Value {
        let (p50, p99, max) = (self.at(0.5), self.at(0.99), self.at(1.0));
        json!({ "n": self.0.len(), "p50_ms": p50, "p99_ms": p99, "max_ms": max })
    }
}

impl Course {
    /// The calls whose replies came within.
    pub fn answered(&self, span: Span) -> impl Iterator<Item = &Made> {
        let calls = self.seen.iter().flat_map(|seen| &seen.made);
        calls.filter(move |made| (span.from..span.to).contains(&(made.at + made.took)))
    }

    /// The figures of a phase.
    pub fn steady(&self, span: Span) -> Steady {
        let took: Vec<f64> = self.answered(span).map(|made| made.took as f64 / 1e3).collect();
        let all = took.len() as f64;
        let share = |node| {
            let by = self.answered(span).filter(|made| made.by == NodeId(node)).count();
            100.0 * by as f64 / all.max(1.0)
        };
        Steady {
            rate: all * 1e6 / (span.to - span.from) as f64,
            mean_ms: took.iter().sum::<f64>() / all.max(1.0),
            shares: (1..=SERVERS).map(share).collect(),
            p99_ms: quantile(took, 0.99).unwrap_or_default(),
        }
    }

    /// Fail-over latency (section 3.2): from a call's beginning, or the crash if that was later,
    /// until the call went to another server. Each client's first such call counts.
    fn fail_over(&self) -> Delays {
        let first = |fault: &Fault, seen: &Seen| {
            let within = fault.crashed..fault.returned;
            let mut moved = seen.moved.iter();
            let (at, _) = moved.find(|(at, from)| *from == fault.address && within.contains(at))?;
            // The last call that had begun.
            let next = seen.made.partition_point(|made| made.at <= *at);
            let begun = seen.made.get(next.checked_sub(1)?)?.at;
            Some((at - begun.max(fault.crashed)) as f64 / 1e3)
        };
        let each = self.faults.iter().flat_map(|fault| self.seen.iter().map(move |it| (fault, it)));
        Delays(each.filter_map(|(fault, seen)| first(fault, seen)).collect())
    }

    /// Client update time (section 3.2): from the view with the returned server until a client
    /// knows it. And how many times a client never did.
    fn update(&self) -> (Delays, usize) {
        let known = |fault: &Fault, seen: &Seen| {
            let at = seen.views.iter().find(|(_, view)| *view >= fault.view)?.0;
            Some(at.saturating_sub(fault.returned) as f64 / 1e3)
        };
        let each = self.faults.iter().flat_map(|fault| self.seen.iter().map(move |it| (fault, it)));
        let each: Vec<Option<f64>> = each.map(|(fault, seen)| known(fault, seen)).collect();
        let never = each.iter().filter(|it| it.is_none()).count();
        (Delays(each.into_iter().flatten().collect()), never)
    }

    fn json(&self) -> Value {
        let phases = self.phases.iter().map(|span| {
            let it = self.steady(*span);
            json!({
                "calls_s": it.rate, "mean_ms": it.mean_ms, "p99_ms": it.p99_ms,
                "share_pct": it.shares,
            })
        });
        let faults = self.faults.iter().map(|it| {
            json!({
                "node": it.victim.0, "crashed_s": it.crashed as f64 / 1e6,
                "without_s": it.shrunk as f64 / 1e6, "returned_s": it.returned as f64 / 1e6,
                "view": it.view,
            })
        });
        let (update, never) = self.update();
        json!({
            "way": name(self.way), "clients": self.clients, "phases": phases.collect::<Vec<_>>(),
            "faults": faults.collect::<Vec<_>>(), "fail_over": self.fail_over().json(),
            "update": update.json(), "never_updated": never,
            "failed": self.seen.iter().map(|seen| seen.failed.len()).sum::<usize>(),
        })
    }
}

impl Found {
    /// A call that failed, if one did.
    pub fn failed(&self) -> Option<&str> {
        let seen = self.courses.iter().flat_map(|course| &course.seen);
        seen.flat_map(|seen| &seen.failed).next().map(String::as_str)
    }

    /// The paper's result for this way.
    fn paper(&self, way: Way) -> String {
        match way {
            Way::None => "clients never know a returned server. The paper (figure 2): calls take \
                 the longer the fewer servers a client knows, and the more clients there \
                 are"
            .into(),
            Way::Periodic => format!(
                "clients ask. The paper (figure 10): updated after 8.16 s of 15 s, here {:.0} ms \
                 of {}",
                PAPER_PERIODIC / self.factor,
                self.period.as_millis()
            ),
            Way::View => format!(
                "replies bring newer views. The paper (figure 9): fail-over \
                 {PAPER_FAIL_OVER} ms, updated after {PAPER_VIEW} ms"
            ),
            Way::Push => "servers tell newer views besides; not in the paper".into(),
        }
    }
}

impl Findings for Found {
    fn print(&self, run: &Run) {
        let processor = match self.processor {
            Some(percent) => format!("each with {percent} % of a processor"),
            None => "on this machine's processors with the clients".into(),
        };
        println!("on {}", self.machine);
        println!(
            "{SERVERS} servers, {processor}; {SIZE} bytes each way; servers 1 to {} crash and \
             return one after the other; refreshed each {:.1} s, the paper's 15 s divided by {:.1}",
            SERVERS - 1,
            self.period.as_secs_f64(),
            self.factor
        );
        for way in Way::ALL {
            let runs = || self.courses.iter().filter(|course| course.way == way);
            if runs().next().is_none() {
                continue;
            }
            println!("\n{}: {}", name(way), self.paper(way));
            let table = run.table(
                "clients:7, calls/s=phases/0/calls_s:9.0, 1 back=phases/1/calls_s:7.0, \
                 2 back=phases/2/calls_s:7.0, 3 back=phases/3/calls_s:7.0, \
                 mean ms=phases/0/mean_ms:9.3, 1 back=phases/1/mean_ms:7.3, \
                 2 back=phases/2/mean_ms:7.3, 3 back=phases/3/mean_ms:7.3, \
                 % at server 4=phases/0/share_pct/3:14.0, last=phases/3/share_pct/3:5.0, \
                 fail-over ms=fail_over/p50_ms:13.2, p99=fail_over/p99_ms:8.2, \
                 max=fail_over/max_ms:8.2, update ms=update/p50_ms:11.2, p99=update/p99_ms:9.2, \
                 max=update/max_ms:9.2, never=never_updated:6",
            );
            runs().for_each(|course| table.row(&course.json()));
        }
    }

    fn json(&self) -> Value {
        json!({
            "peer": "steadfast", "measure": "jgroup", "machine": self.machine,
            "processor_pct": self.processor, "size": SIZE,
            "period_ms": self.period.as_millis() as u64, "factor": self.factor,
            "paper": { "fail_over_ms": PAPER_FAIL_OVER, "view_update_ms": PAPER_VIEW,
            "periodic_update_ms": PAPER_PERIODIC, "period_ms": 15_000 },
            "courses": self.courses.iter().map(Course::json).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: SocketAddr =
        SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 1));

    fn made(at: u64, took: u64, by: u32) -> Made {
        Made { at, took, by: NodeId(by) }
    }

    /// A server crashes at 1 ms and is back at 9 ms. One client's call meets that, the other's does
    /// not, and it hears of the return never.
    fn course() -> Course {
        let fault = Fault {
            victim: NodeId(1),
            address: ADDRESS,
            crashed: 1_000,
            shrunk: 2_000,
            view: 7,
            returned: 9_000,
        };
        let struck = Seen {
            made: vec![made(100, 200, 1), made(800, 700, 2), made(2_000, 500, 3)],
            moved: vec![(1_300, ADDRESS), (2_100, ADDRESS)],
            views: vec![(2_500, 6), (9_400, 7)],
            failed: Vec::new(),
        };
        let other = Seen { made: vec![made(100, 300, 4)], ..Seen::default() };
        let phases = vec![Span { from: 0, to: 1_000 }];
        Course {
            way: Way::View,
            clients: 2,
            phases,
            faults: vec![fault],
            seen: vec![struck, other],
        }
    }

    #[test]
    fn a_fail_over_is_counted_from_the_crash_and_an_update_from_the_view() {
        let course = course();
        assert_eq!(course.fail_over().0, [0.3], "the first of a client, from the crash");
        let (update, never) = course.update();
        assert_eq!((update.0, never), (vec![0.4], 1));
    }

    #[test]
    fn a_phase_is_made_of_what_was_answered_in_it() {
        let course = course();
        let steady = course.steady(course.phases[0]);
        assert_eq!((steady.rate, steady.mean_ms), (2_000.0, 0.25));
        assert_eq!(steady.shares, [50.0, 0.0, 0.0, 50.0]);
    }
}
