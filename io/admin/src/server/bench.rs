//! Benchmarks at the admin socket: progress while one lasts, then its outcome. A client that
//! disconnects ends its benchmark.

use std::io;
use std::sync::mpsc::RecvTimeoutError;

use wire::Duration;

use super::answer::{Answered, answer, refuse};
use super::handler::Handler;
use crate::bench::{Ask, Outcome};
use crate::message::BenchLine;
use crate::stream::Stream;

/// How often a benchmark's progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

pub(super) fn run(node: &dyn Handler, stream: &mut Stream, ask: &Ask) -> io::Result<Answered> {
    let outcome = match node.bench(ask) {
        Ok(outcome) => outcome,
        Err(stopped) => return refuse(stream, stopped),
    };
    loop {
        match outcome.recv_timeout(PROGRESS_EVERY) {
            Ok(Ok(result)) => {
                answer(stream, &BenchLine::Outcome(Box::new(Outcome::of(result))))?;
                return Ok(Answered::Done);
            }
            Ok(Err(error)) => return refuse(stream, error.to_string()),
            Err(RecvTimeoutError::Disconnected) => return refuse(stream, node.why_stopped()),
            Err(RecvTimeoutError::Timeout) => go_on(node, stream)?,
        }
    }
}

fn go_on(node: &dyn Handler, stream: &mut Stream) -> io::Result<()> {
    let told = match node.bench_progress() {
        Some(progress) => answer(stream, &BenchLine::Progress(progress)),
        None => Ok(()),
    };
    if told.is_err() || stream.is_gone() {
        // Nobody is there to be told the outcome: the ring need not go on carrying the load.
        node.stop_bench();
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}
