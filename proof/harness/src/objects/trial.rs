//! A trial: clients call a cluster's objects while faults strike it, and their records are judged.

use std::path::Path;
use std::time::{Duration, Instant};

use super::clients::{Book, Clients, Habit};
use super::common_state;
use super::evidence::{Finding, Tally, judge, leave};
use crate::Outcome;
use crate::cluster::Cluster;
use crate::wait::until_so;

/// Calls are answered within this once all is well.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// The group that the clients call.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The group.
    pub group: &'static str,
    /// It has replicas on so many nodes, the first.
    pub replicas: u32,
    /// Its primary's service alone has a state.
    pub alone: bool,
}

impl Subject {
    /// The state that all replicas have.
    pub fn state(&self, cluster: &Cluster) -> Outcome<Vec<u8>> {
        common_state(cluster, self.group, self.replicas, self.alone)
    }
}

/// A trial in its course.
pub struct Trial {
    /// The cluster under test.
    pub cluster: Cluster,
    /// The results so far.
    pub tally: Tally,
    /// The called group.
    pub subject: Subject,
    /// Until the end.
    clients: Option<Clients>,
    deeds: Vec<String>,
    began: Instant,
}

impl Trial {
    /// Before anybody calls, once all is well.
    pub fn new(mut cluster: Cluster, subject: Subject) -> Outcome<Trial> {
        cluster.wait_until_well()?;
        let (tally, deeds) = Default::default();
        Ok(Trial { cluster, tally, subject, clients: None, deeds, began: Instant::now() })
    }

    /// So many clients begin.
    pub fn call(&mut self, clients: usize, habit: Habit, seed: u64) -> Outcome<()> {
        let made = (0..clients).map(|_| self.cluster.connect()).collect::<Outcome<_>>()?;
        self.clients = Some(Clients::start(made, self.subject.group, habit, seed));
        self.began = Instant::now();
        Ok(())
    }

    /// Those who call.
    pub fn clients(&mut self) -> Outcome<&mut Clients> {
        Ok(self.clients.as_mut().ok_or("the clients have ended")?)
    }

    /// Since they began.
    pub fn took(&self) -> Duration {
        self.began.elapsed()
    }

    /// Notes an action, by the clients' clock.
    pub fn note(&mut self, deed: &str) {
        let at = self.clients.as_ref().map_or(0, |clients| clients.now().0);
        self.deeds.push(format!("{at} {deed}"));
    }

    /// Waits until clients are answered so often.
    pub fn wait_for_answers(&mut self, count: u64) -> Outcome<()> {
        let clients = self.clients()?;
        let wanted = clients.good() + count;
        let missing = format!("no {count} calls were answered in {TIMEOUT:?}");
        until_so(TIMEOUT, Duration::from_millis(1), &missing, || Ok(clients.good() >= wanted))
    }

    /// The records so far; clients go on to other keys.
    pub fn close_round(&mut self) -> Outcome<Book> {
        let reader = self.cluster.connect()?;
        let book = self.clients()?.close_round(reader);
        self.cluster.take_events();
        book
    }

    /// The records of the last round.
    pub fn finish(&mut self) -> Outcome<Book> {
        let clients = self.clients.take().ok_or("the clients have ended")?;
        clients.finish(self.cluster.connect()?)
    }

    /// A verdict on a round. `else_wrong` is reported if there is no worse fault.
    pub fn judge(&mut self, book: Book, else_wrong: Option<String>) -> Result<(), Finding> {
        match judge(&book, &mut self.tally).or(else_wrong) {
            None => Ok(()),
            Some(text) => Err(Finding { text, book: Some(Box::new(book)) }),
        }
    }

    /// Leaves the evidence of a finding in this folder.
    pub fn leave(&self, folder: &Path, finding: &Finding) -> Outcome<()> {
        leave(folder, finding, &self.deeds, |folder| self.cluster.copy_logs(folder))
    }
}
