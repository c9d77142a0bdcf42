//! The cost of a cluster while nobody calls it.

use std::thread;
use std::time::Duration;

use harness::cluster::{Cluster, Plan, Where};
use harness::report::row;
use harness::{Experiment, Outcome, Run, usage};
use serde_json::json;

/// Time after the start until its effects are over.
const SETTLE: Duration = Duration::from_secs(2);

/// CPU, wake-ups, datagrams and memory of a cluster that nobody calls.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Node processes.
    #[arg(long, default_value_t = 4)]
    nodes: u32,
    /// How long to watch, in seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    #[command(flatten)]
    at: Where,
}

impl Experiment for Options {
    const NAME: &'static str = "idle";
    const SMOKE: &'static str = "--nodes 3 --seconds 1";

    fn run(&self, run: &Run) -> Outcome<()> {
        let cluster = Cluster::start(Plan {
            placement: self.at.placement(),
            ..Plan::of(self.nodes, self.nodes.min(3), &["inline"])
        })?;
        thread::sleep(run.sized(SETTLE, Duration::ZERO));
        let used = usage::watch(&cluster, self.nodes, Duration::from_secs(self.seconds))?;
        run.begin(&format!("{} idle nodes watched for {} s", self.nodes, self.seconds));
        let table = run.table(
            "node:4, % of a core=cpu_pct:14.3, woken/s=woken_s:10.1, datagrams/s=datagrams_s:13.1, \
             memory MiB=memory_mib:12.1, woken/s by thread=woken_by_thread_s:<0",
        );
        for used in used {
            let woken: f64 = used.woken.values().sum();
            table.row(&row(
                used.json(),
                json!({
                    "measure": "idle", "nodes": self.nodes, "woken_s": woken,
                    "woken_by_thread_s": used.woken,
                }),
            ));
        }
        Ok(())
    }
}
