//! Keeps a process running: an agent beside its node, or a node of one's own cluster.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Between two starts of a process that does not last.
const PAUSE: Duration = Duration::from_millis(500);

/// One that has lasted so long is started again at once.
const LASTS: Duration = Duration::from_secs(2);

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// How long it may take to stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// A process that is started again whenever it ends. It stops with this.
#[derive(Debug)]
pub struct Minder {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Minder {
    /// Starts it. `make` gives the command of each start.
    ///
    /// # Errors
    /// It cannot be started the first time.
    pub fn start(
        name: String,
        mut make: impl FnMut() -> io::Result<Command> + Send + 'static,
    ) -> io::Result<Minder> {
        let first = make()?.spawn()?;
        let (stop, stopped) = channel();
        let body = move || mind(&name, first, make, &stopped);
        let thread = thread::Builder::new().name("steadfast mind".into()).spawn(body)?;
        Ok(Minder { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Minder {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn mind(
    name: &str,
    mut child: Child,
    mut make: impl FnMut() -> io::Result<Command>,
    stopped: &Receiver<()>,
) {
    loop {
        let begun = Instant::now();
        let status = loop {
            if let Ok(Some(status)) = child.try_wait() {
                break status;
            }
            if stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected) {
                return stop(child);
            }
        };
        tracing::warn!("{name} has ended ({status}), and is started again");
        let mut pause = if begun.elapsed() < LASTS { PAUSE } else { Duration::ZERO };
        child = loop {
            if stopped.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            match make().and_then(|mut command| command.spawn()) {
                Ok(child) => break child,
                Err(error) => tracing::warn!("{name} cannot be started: {error}"),
            }
            pause = PAUSE;
        };
    }
}

/// In order; by force if that takes too long.
fn stop(mut child: Child) {
    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    let until = Instant::now() + STOP_WITHIN;
    while let Ok(None) = child.try_wait() {
        if Instant::now() > until {
            let _ = child.kill();
        }
        thread::sleep(LOOK);
    }
}
