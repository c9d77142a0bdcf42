//! Benchmarks at the admin socket: progress while one lasts, then its outcome. Who goes away ends it.

use std::io;
use std::sync::mpsc::RecvTimeoutError;

use serde::{Deserialize, Serialize};
use wire::Duration;

use super::Refused;
use super::server::{Server, answer};
use super::stream::Stream;
use crate::bench::{Ask, Outcome, Progress};

/// How often a benchmark's progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// One line of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    /// It goes on.
    Progress(Progress),
    /// It is over.
    Outcome(Box<Outcome>),
}

impl Server {
    pub(super) fn bench(&self, stream: &mut Stream, ask: &Ask) -> io::Result<()> {
        let refuse = |stream: &mut Stream, error: String| answer(stream, &Refused { error });
        let outcome = match self.control.bench(ask) {
            Ok(outcome) => outcome,
            Err(stopped) => return refuse(stream, stopped.to_string()),
        };
        loop {
            match outcome.recv_timeout(PROGRESS_EVERY) {
                Ok(Ok(result)) => {
                    return answer(stream, &Line::Outcome(Box::new(Outcome::of(result))));
                }
                Ok(Err(error)) => return refuse(stream, error.to_string()),
                Err(RecvTimeoutError::Disconnected) => {
                    return refuse(stream, self.control.stopped().to_string());
                }
                Err(RecvTimeoutError::Timeout) => self.bench_goes_on(stream)?,
            }
        }
    }

    fn bench_goes_on(&self, stream: &mut Stream) -> io::Result<()> {
        let told = match self.control.bench_progress() {
            Some(progress) => answer(stream, &Line::Progress(progress)),
            None => Ok(()),
        };
        if told.is_err() || stream.is_gone() {
            // Nobody is there to be told the outcome: the ring need not go on carrying the load.
            self.control.stop_bench();
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}
