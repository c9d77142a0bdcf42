//! Servers, their places and their load: tables 1 and 2 of `flare.txt`, section 4, and figures 2
//! and 4 as far as the text describes them.

use std::time::Duration;

/// A group of the experiment, and the client that calls it on time.
#[derive(Debug)]
pub struct Server {
    /// The client's name, as in the paper.
    pub client: &'static str,
    /// The group's name.
    pub group: &'static str,
    /// Calls a second.
    pub rate: u32,
    /// Percent of a processor that they take.
    pub uses: u32,
    /// The processors, counted from 1, that have a replica, the primary's first; without a manager
    /// the next is the first target.
    pub on: &'static [u32],
    /// When the client begins, in parts of the experiment.
    pub from: f64,
}

impl Server {
    /// Between two calls.
    pub fn period(&self) -> Duration {
        Duration::from_secs(1) / self.rate
    }

    /// Processor time of a call, where a processor is so many percent of one of this machine's.
    pub fn work(&self, processor: u32) -> Duration {
        self.period() * self.uses * processor / 10_000
    }

    /// The `nice` of its replicas, rate-monotonic: a server that is called more often runs first. A
    /// quota of processor time binds only ordinary threads, hence `nice`. No two servers of a
    /// processor have weights less than three times apart. The paper's figures depend on those with
    /// 10 and 5 calls a second: they are 18 times apart (820 and 45).
    pub fn nice(&self) -> i8 {
        match self.rate {
            10.. => 1,
            5.. => 14,
            _ => 19,
        }
    }
}

/// How clients' lists come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Strategy {
    /// The order in which replicas were deployed.
    Static,
    /// By what hosts have to do, told before anything fails; ranked by the paper's Algorithm 1,
    /// which looks at one lost host at a time.
    Paper,
    /// The same, ranked so that the loss of two hosts overloads no third.
    Proactive,
}

/// An experiment.
#[derive(Debug)]
pub struct Scene {
    /// Where the paper tells it.
    pub source: &'static str,
    /// The processors, from number 1.
    pub processors: &'static [&'static str],
    /// The groups.
    pub servers: &'static [Server],
    /// The processors that fail at once, in the middle of the experiment.
    pub fail: &'static [u32],
    /// The paper's result for each client: with static, and with proactive fail-over.
    pub paper: &'static [(&'static str, &'static str, &'static str)],
}

/// Section 4.2, table 1, figure 3.
pub const ALONE: Scene = Scene {
    source: "flare.txt, section 4.2, table 1, figure 3",
    processors: &["TANGO", "LAMBADA", "CHARLIE", "ALPHA", "BETA"],
    servers: &[
        Server { client: "CL-1", group: "flare/A", rate: 10, uses: 40, on: &[1, 2, 4], from: 0.0 },
        Server { client: "CL-2", group: "flare/B", rate: 5, uses: 30, on: &[1, 3, 5], from: 0.0 },
        Server { client: "CL-3", group: "flare/C", rate: 2, uses: 20, on: &[4], from: 0.0 },
        Server { client: "CL-4", group: "flare/D", rate: 1, uses: 10, on: &[5], from: 0.0 },
        Server { client: "CL-5", group: "flare/DY1", rate: 5, uses: 50, on: &[2], from: 1.0 / 6.0 },
        Server {
            client: "CL-6",
            group: "flare/DY2",
            rate: 10,
            uses: 50,
            on: &[3],
            from: 1.0 / 6.0,
        },
    ],
    fail: &[1],
    paper: &[
        ("CL-2", "+40 %", "-40 %, a third of static's"),
        ("CL-3", "", "+35 %"),
        ("CL-4", "", "+50 %"),
        ("CL-5", "+90 %", "no change"),
        ("CL-6", "", "no change"),
    ],
};

/// Section 4.3, table 2, figures 4 and 5.
pub const TOGETHER: Scene = Scene {
    source: "flare.txt, section 4.3, table 2, figures 4 and 5",
    processors: &["TANGO", "ALPHA", "SHIVA", "LAMBADA", "CHARLIE"],
    servers: &[
        Server { client: "CL-1", group: "flare/A", rate: 10, uses: 40, on: &[1, 3, 4], from: 0.0 },
        Server { client: "CL-2", group: "flare/B", rate: 5, uses: 50, on: &[2, 3, 5], from: 0.0 },
        Server { client: "CL-3", group: "flare/C", rate: 2, uses: 20, on: &[4], from: 0.0 },
        Server { client: "CL-4", group: "flare/D", rate: 1, uses: 10, on: &[5], from: 0.0 },
    ],
    fail: &[1, 2],
    paper: &[("CL-1", "", "no change"), ("CL-2", "", "+40 % for 3 s, then as before")],
};
