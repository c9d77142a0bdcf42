//! A new program is tried here before the old one ends (`docs/protocol/deployment.md`, "The trial").

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use bytes::Bytes;
use config::ProgramConfig;
use os::threads;
use supervisor::Tried;
use wire::attach::TRIAL_VARIABLE;
use wire::limits::MAX_TRIED_STATE;
use wire::ordered::Style;

use crate::control::Control;
use crate::error::HostError;

/// The end of a trial, when it has one.
enum Verdict {
    Awaited(Receiver<Result<Tried, String>>),
    Passed,
    Refused(String),
}

/// The trial of a program that is to replace another.
struct Trial {
    config: ProgramConfig,
    verdict: Verdict,
}

/// The knowledge of a new program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing yet: the old one goes on.
    Nothing,
    /// It can serve.
    Serves,
    /// It cannot, and why.
    Refused(String),
}

/// The trials at this node, by group.
#[derive(Default)]
pub(super) struct Trials(BTreeMap<String, Trial>);

impl Trials {
    /// Forgets the trials of programs that are not to begin here any more.
    pub fn retain(&mut self, is_wanted: impl Fn(&ProgramConfig) -> bool) {
        self.0.retain(|_, trial| is_wanted(&trial.config));
    }

    /// There was or is a trial of this program.
    pub fn has(&self, config: &ProgramConfig) -> bool {
        self.0.get(&config.group).is_some_and(|trial| trial.config == *config)
    }

    /// People do not want the program to be tried.
    pub fn are_off(config: &ProgramConfig) -> bool {
        config.environment.get(TRIAL_VARIABLE).is_some_and(|value| value == "off")
    }

    /// Looks at the trial of this program, and begins it if there was none.
    pub fn look(&mut self, control: &Arc<Control>, config: &ProgramConfig) -> Known {
        if !self.has(config) {
            let trial = Trial { config: config.clone(), verdict: begin(control, config) };
            self.0.insert(config.group.clone(), trial);
        }
        let Some(trial) = self.0.get_mut(&config.group) else { return Known::Nothing };
        if let Verdict::Awaited(ended) = &trial.verdict {
            trial.verdict = match ended.try_recv() {
                Err(TryRecvError::Empty) => return Known::Nothing,
                Ok(Ok(Tried { dropped })) => {
                    tracing::info!(
                        group = config.group,
                        dropped,
                        "the new program was tried: it reads the state"
                    );
                    Verdict::Passed
                }
                Ok(Err(reason)) => {
                    tracing::error!(
                        group = config.group,
                        reason,
                        "the new program was tried: it cannot serve, and the old one goes on"
                    );
                    Verdict::Refused(reason)
                }
                Err(TryRecvError::Disconnected) => Verdict::Refused(
                    "its trial has ended without a result: the log tells why".into(),
                ),
            };
        }
        match &trial.verdict {
            Verdict::Refused(reason) => Known::Refused(reason.clone()),
            Verdict::Passed => Known::Serves,
            Verdict::Awaited(_) => Known::Nothing,
        }
    }
}

/// Begins a trial on a thread of its own: programs take their time.
fn begin(control: &Arc<Control>, config: &ProgramConfig) -> Verdict {
    let (ended, awaited) = sync_channel(1);
    let (control, config) = (control.clone(), config.clone());
    let body = move || {
        // Nobody waits any more if the upgrade has been given up.
        let _ = ended.try_send(run(&control, &config));
    };
    match threads::spawn("steadfast trial", body) {
        Ok(_) => Verdict::Awaited(awaited),
        Err(error) => Verdict::Refused(format!("there is no thread for its trial: {error}")),
    }
}

fn run(control: &Control, config: &ProgramConfig) -> Result<Tried, String> {
    let programs = control.programs().map_err(|error| error.to_string())?;
    let style = config.options.style;
    let state = match style.has_state().then(|| control.state(&config.group)) {
        None => None,
        Some(Ok(state)) => Some(state).filter(|state| state.len() <= MAX_TRIED_STATE),
        // A standby of a cold passive group has no service that could be asked.
        Some(Err(_)) if style == Style::ColdPassive => None,
        Some(Err(HostError::Snapshot(reason))) => {
            return Err(format!(
                "the program that runs cannot give the state: {reason}. Take what cannot be written out of the state by a call"
            ));
        }
        Some(Err(error)) => return Err(format!("there is no state to try it on: {error}")),
    };
    programs.try_out(config, state.map(Bytes::from))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_old_program_goes_on_until_the_new_one_was_tried() {
        let (control, orders) = Control::without_a_plane();
        let control = Arc::new(control);
        let config = ProgramConfig {
            group: "evo".into(),
            command: vec!["./new".into()],
            ..ProgramConfig::default()
        };
        let mut trials = Trials::default();
        assert_eq!(trials.look(&control, &config), Known::Nothing);
        assert!(trials.has(&config));
        // The trial waits for the data plane, or has found that there are no programs here.
        drop(orders);
        let reason = loop {
            match trials.look(&control, &config) {
                Known::Nothing => thread::yield_now(),
                Known::Refused(reason) => break reason,
                Known::Serves => panic!("nothing could be tried"),
            }
        };
        assert!(!reason.is_empty());
        let other = ProgramConfig { command: vec!["./newer".into()], ..config.clone() };
        assert!(!trials.has(&other));
        trials.retain(|_| false);
        assert!(!trials.has(&config));
    }
}
