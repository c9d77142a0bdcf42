//! Keeps a process running: an agent beside its node, or a node of one's own cluster.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    child: Arc<Mutex<Child>>,
    /// The thread, which goes on until the sender is dropped.
    thread: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
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
        let child = Arc::new(Mutex::new(make()?.spawn()?));
        let (stop, stopped) = channel();
        let minded = child.clone();
        let body = move || mind(&name, &minded, make, &stopped);
        let thread = thread::Builder::new().name("steadfast mind".into()).spawn(body)?;
        Ok(Minder { child, thread: Mutex::new(Some((stop, thread))) })
    }

    /// Stops the process, and waits for its end.
    pub fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = thread {
            drop(stop);
            let _ = thread.join();
        }
    }

    /// Sends a signal to the process, if it runs.
    pub fn signal(&self, signal: Signal) {
        let mut child = lock(&self.child);
        // Nobody takes its number before it is waited for, which needs this lock.
        if let Ok(None) = child.try_wait() {
            let _ = kill_process(Pid::from_child(&child), signal);
        }
    }
}

impl Drop for Minder {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mind(
    name: &str,
    child: &Mutex<Child>,
    mut make: impl FnMut() -> io::Result<Command>,
    stopped: &Receiver<()>,
) {
    loop {
        let begun = Instant::now();
        let status = loop {
            let ended = lock(child).try_wait();
            if let Ok(Some(status)) = ended {
                break status;
            }
            if stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected) {
                return stop(&mut lock(child));
            }
        };
        tracing::warn!("{name} has ended ({status}), and is started again");
        let mut pause = if begun.elapsed() < LASTS { PAUSE } else { Duration::ZERO };
        loop {
            if stopped.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            match make().and_then(|mut command| command.spawn()) {
                Ok(next) => {
                    *lock(child) = next;
                    break;
                }
                Err(error) => tracing::warn!("{name} cannot be started: {error}"),
            }
            pause = PAUSE;
        }
    }
}

/// In order; by force if that takes too long.
fn stop(child: &mut Child) {
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let until = Instant::now() + STOP_WITHIN;
    while let Ok(None) = child.try_wait() {
        if Instant::now() > until {
            let _ = child.kill();
        }
        thread::sleep(LOOK);
    }
}
