//! Clients in one cell call the objects of another, and their records are judged.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use steadfast::Client;

use super::{OBJECTS, System};
use crate::Outcome;
use crate::objects::TIMEOUT;
use crate::objects::clients::{Book, Clients, Habit};
use crate::objects::evidence::{Finding, Tally, judge, leave};
use crate::sites::Site;
use crate::wait::{until, until_so};

/// How often it is looked whether calls are answered.
const LOOK: Duration = Duration::from_millis(1);

/// How often it is looked whether replicas are alike.
const COMPARE: Duration = Duration::from_millis(50);

/// A trial in its course.
pub struct Trial {
    /// The results so far.
    pub tally: Tally,
    /// Until the end.
    clients: Option<Clients>,
    from: Site,
    to: Site,
    deeds: Vec<String>,
    began: Instant,
    /// The system under test. Dropped last.
    pub system: System,
}

impl Trial {
    /// So many clients in a cell begin to call those objects, by their full name.
    pub fn start(
        system: System,
        (from, group): (Site, &'static str),
        clients: usize,
        habit: Habit,
        seed: u64,
    ) -> Outcome<Trial> {
        let (path, _) = group.split_once(':').ok_or("the group has no full name")?;
        let to = system.site(path)?;
        let made = (0..clients).map(|_| connect(&system, from)).collect::<Outcome<_>>()?;
        let clients = system.at_callers(from, || Ok(Clients::start(made, group, habit, seed)))?;
        let (clients, tally, deeds) = (Some(clients), Tally::default(), Vec::new());
        Ok(Trial { tally, clients, from, to, deeds, began: Instant::now(), system })
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
        until_so(TIMEOUT, LOOK, &missing, || Ok(clients.good() >= wanted))
    }

    /// Judges the records so far; clients go on to other keys.
    pub fn judge_round(&mut self) -> Result<(), Finding> {
        let reader = connect(&self.system, self.from)?;
        let clients = self.clients.as_mut().ok_or("the clients have ended")?;
        let book = self.system.at_callers(self.from, || clients.close_round(reader))?;
        self.judge(book)
    }

    /// Judges the records of the last round, and whether all replicas are alike.
    pub fn finish(&mut self) -> Result<(), Finding> {
        let reader = connect(&self.system, self.from)?;
        let clients = self.clients.take().ok_or("the clients have ended")?;
        let book = self.system.at_callers(self.from, || clients.finish(reader))?;
        self.judge(book)?;
        Ok(self.compare()?)
    }

    fn judge(&mut self, book: Book) -> Result<(), Finding> {
        match judge(&book, &mut self.tally) {
            None => Ok(()),
            Some(text) => Err(Finding { text, book: Some(Box::new(book)) }),
        }
    }

    /// All replicas have the same state.
    fn compare(&self) -> Outcome<()> {
        until(TIMEOUT, COMPARE, || {
            let mut states: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
            for host in 1..=self.system.nodes(self.to) {
                let (_, state) = self.system.admin((self.to, host))?.state(OBJECTS)?;
                states.entry(state).or_default().push(host);
            }
            let alike: Vec<_> = states.into_values().collect();
            let differ = || format!("replicas differ; these are alike: {alike:?}");
            Ok((alike.len() == 1).then_some(()).ok_or_else(differ))
        })
    }

    /// Leaves the evidence of a finding in this folder.
    pub fn leave(&self, folder: &Path, finding: &Finding) -> Outcome<()> {
        leave(folder, finding, &self.deeds, |folder| self.system.copy_logs(folder))
    }
}

fn connect(system: &System, from: Site) -> Outcome<Client> {
    system.connect(from, system.clients(from))
}
