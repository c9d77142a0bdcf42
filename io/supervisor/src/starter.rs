//! Starts programs with a real-time priority: a process has that of the thread that starts it, and
//! its threads have it from there.

use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};

use os::realtime::{Grant, fifo_or_ordinary};
use os::sched::{Class, class};
use os::threads;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that does nothing else, so that its priority is nobody's business but that of whom it
/// starts. It comes to be with the first.
#[derive(Default)]
pub(crate) struct Starter(Option<Sender<Job>>);

impl Starter {
    /// Starts something with this SCHED_FIFO priority; 0: as an ordinary program, whatever this
    /// thread is. If the system refuses the priority, here and as this thread is.
    pub fn start<T: Send + 'static>(
        &mut self,
        priority: u8,
        start: impl Fn() -> T + Clone + Send + 'static,
    ) -> (Grant, T) {
        if priority == 0 && class(None).is_ok_and(|own| own == Class::Ordinary) {
            return (Grant::NotAsked, start());
        }
        let (reply, answer) = sync_channel(1);
        let job = job(priority, start.clone(), reply);
        let sent = self.thread().and_then(|jobs| jobs.send(job).ok());
        match sent.and_then(|()| answer.recv().ok()) {
            Some(Ok((grant, started))) => (grant, started),
            Some(Err(refused)) => (refused, start()),
            None => (Grant::Refused("no thread could be started for it".into()), start()),
        }
    }

    fn thread(&mut self) -> Option<&Sender<Job>> {
        if self.0.is_none() {
            let (sender, jobs) = channel::<Job>();
            let body = move || jobs.into_iter().for_each(|job| job());
            threads::spawn("steadfast starts", body).ok()?;
            self.0 = Some(sender);
        }
        self.0.as_ref()
    }
}

fn job<T: Send + 'static>(
    priority: u8,
    start: impl Fn() -> T + Send + 'static,
    reply: SyncSender<Result<(Grant, T), Grant>>,
) -> Job {
    Box::new(move || {
        let answer = match fifo_or_ordinary(priority) {
            refused @ Grant::Refused(_) => Err(refused),
            grant => Ok((grant, start())),
        };
        // The caller waits for it.
        let _ = reply.send(answer);
    })
}

#[cfg(test)]
mod tests {
    use os::realtime::fifo;

    use std::thread;

    use super::*;

    /// A node's helpers may have a priority: what they start without one is ordinary.
    #[test]
    fn a_priority_is_not_inherited() {
        let started = thread::spawn(|| {
            fifo(1);
            Starter::default().start(0, || class(None).unwrap())
        });
        assert_eq!(started.join().unwrap(), (Grant::NotAsked, Class::Ordinary));
    }

    #[test]
    fn who_asks_for_no_priority_is_started_here_and_who_does_elsewhere_or_is_told_why_not() {
        let mut starter = Starter::default();
        let here = thread::current().id();
        let by = || thread::current().id();
        assert_eq!(starter.start(0, by), (Grant::NotAsked, here));
        for _ in 0..2 {
            match starter.start(1, by) {
                (Grant::InForce, other) => assert_ne!(other, here),
                (Grant::Refused(why), same) => {
                    assert_eq!(same, here);
                    assert!(why.contains("CAP_SYS_NICE"), "{why}");
                }
                (Grant::NotAsked, _) => panic!("it was asked for"),
            }
        }
    }
}
