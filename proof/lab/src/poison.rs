//! Requests that kill the programs of a group's replicas, and the end of all programs or all nodes
//! at once, while clients record what they see.
//!
//! A group of three replicas is served by programs. Its clients are those of the black box, and so
//! are its objects and its verdict. See docs/protocol/poison.md.

use harness::cluster::wall;
use harness::{Experiment, Outcome, Run, machine};

mod backup;
mod ends;
mod gaps;
mod options;
mod requests;
mod stage;

use options::Mode;
pub use options::Options;
use stage::Stage;

impl Experiment for Options {
    const NAME: &'static str = "poison";
    const SMOKE: &'static str =
        "--style semi-active --durability memory --calls 300 --poisonous 2 --clients 2";

    fn run(&self, run: &Run) -> Outcome<()> {
        if self.poisonous > self.calls / 2 {
            return Err("--poisonous: at most half of --calls".into());
        }
        let seed = self.seed.unwrap_or_else(wall);
        eprintln!("on {}; seed {seed}", machine::description());
        let mut broken = Vec::new();
        for mode in self.modes() {
            for group in self.groups(mode) {
                let mut stage = Stage::start(self, mode, group, seed)?;
                let outcome = match mode {
                    // How long clients wait says nothing in the smallest size.
                    Mode::Requests => {
                        requests::play(&mut stage, (!run.smoke).then(|| self.longest_gap()))
                    }
                    Mode::AllPrograms(times) => ends::play(&mut stage, times, ends::programs),
                    Mode::AllNodes(times) => ends::play(&mut stage, times, ends::nodes),
                    Mode::Backup => backup::play(&mut stage),
                };
                broken.extend(stage.close(run, outcome)?);
            }
        }
        if broken.is_empty() { Ok(()) } else { Err(broken.concat().into()) }
    }
}
