//! Counts lost and repeated events: the sensors' own records against every replica's journal.

use std::collections::BTreeMap;

use serde::Serialize;

use super::journal::Journal;
use super::record::{Kind, Record};

/// Lost or repeated events named in the report. All are counted.
const NAMED: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    NotSent,
    Unacknowledged,
    Acknowledged,
}

/// The sensors' records, and the boards that displays received.
#[derive(Default)]
pub struct Evidence {
    sensors: Vec<Vec<Fate>>,
    errors: BTreeMap<String, u64>,
    boards: BTreeMap<u16, Vec<(u64, u64, u64)>>,
}

/// The outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// Events that sensors sent.
    pub sent: u64,
    /// Those acknowledged to the sensor.
    pub acknowledged: u64,
    /// Those not acknowledged: the call failed, and its outcome is unknown.
    pub unacknowledged: u64,
    /// Unacknowledged events that every replica executed all the same.
    pub unacknowledged_executed: u64,
    /// Acknowledged, and missing in at least one replica.
    pub lost: u64,
    /// Executed more than once by at least one replica.
    pub duplicated: u64,
    /// Executed by some replica, and never sent.
    pub invented: u64,
    /// Boards shown on displays.
    pub boards: u64,
    /// Boards that knew less than one whose answer was there before they were asked for.
    pub stale_boards: u64,
    /// The first lost, repeated and invented ones.
    pub examples: Vec<String>,
    /// Why calls failed, and how often.
    pub errors: BTreeMap<String, u64>,
}

impl Evidence {
    /// Takes a record in.
    pub fn add(&mut self, record: &Record) {
        if let Some(error) = &record.error {
            *self.errors.entry(error.clone()).or_default() += 1;
        }
        match record.kind {
            Kind::Query if record.error.is_none() => {
                let boards = self.boards.entry(record.subject).or_default();
                boards.push((record.sent, record.answered, record.number));
            }
            Kind::Query => {}
            Kind::Event(_) => self.add_event(record),
        }
    }

    fn add_event(&mut self, record: &Record) {
        let sensor = usize::from(record.subject);
        if self.sensors.len() <= sensor {
            self.sensors.resize(sensor + 1, Vec::new());
        }
        let fates = &mut self.sensors[sensor];
        let place = record.number as usize - 1;
        if fates.len() <= place {
            fates.resize(place + 1, Fate::NotSent);
        }
        fates[place] = match record.error {
            None => Fate::Acknowledged,
            Some(_) => Fate::Unacknowledged,
        };
    }

    /// Compares with the replicas' journals, each with its name.
    pub fn audit(&self, replicas: &[(String, Journal)]) -> Audit {
        let mut audit = Audit { errors: self.errors.clone(), ..Audit::default() };
        let sensors = replicas.iter().map(|(_, journal)| journal.sensors().len()).max();
        for sensor in 0..self.sensors.len().max(sensors.unwrap_or(0)) {
            self.audit_sensor(sensor, replicas, &mut audit);
        }
        self.audit_boards(&mut audit);
        audit
    }

    fn audit_sensor(&self, sensor: usize, replicas: &[(String, Journal)], audit: &mut Audit) {
        let fates = self.sensors.get(sensor).map_or(&[][..], Vec::as_slice);
        let counts: Vec<Vec<u32>> = replicas
            .iter()
            .map(|(name, journal)| {
                let runs = journal.sensors().get(sensor).map_or(&[][..], Vec::as_slice);
                let (counts, beyond) = executions(runs, fates.len());
                audit.invented += beyond;
                if beyond > 0 {
                    audit.name(format!("{name}: sensor {sensor}: {beyond} events that none sent"));
                }
                counts
            })
            .collect();
        for (place, fate) in fates.iter().enumerate() {
            let executed = |replica: &Vec<u32>| replica[place];
            let least = counts.iter().map(executed).min().unwrap_or(0);
            let most = counts.iter().map(executed).max().unwrap_or(0);
            let says = || {
                let each = counts
                    .iter()
                    .zip(replicas)
                    .map(|(counts, (name, _))| format!("{name}: {} times", counts[place]));
                let each = each.collect::<Vec<_>>().join(", ");
                format!("event {} of sensor {sensor} was executed by {each}", place + 1)
            };
            match fate {
                Fate::NotSent if most > 0 => {
                    audit.invented += 1;
                    audit.name(says());
                }
                Fate::NotSent => continue,
                Fate::Acknowledged => audit.acknowledged += 1,
                Fate::Unacknowledged => {
                    audit.unacknowledged += 1;
                    audit.unacknowledged_executed += u64::from(least > 0);
                }
            }
            audit.sent += u64::from(*fate != Fate::NotSent);
            if *fate == Fate::Acknowledged && least == 0 {
                audit.lost += 1;
                audit.name(says());
            }
            if most > 1 {
                audit.duplicated += 1;
                audit.name(says());
            }
        }
    }

    /// A board must know all that any board of its station knew whose answer was there before
    /// the query was sent: reads are as consistent as writes, also through a fail-over.
    fn audit_boards(&self, audit: &mut Audit) {
        for boards in self.boards.values() {
            audit.boards += boards.len() as u64;
            let mut answered: Vec<(u64, u64)> =
                boards.iter().map(|&(_, answered, events)| (answered, events)).collect();
            answered.sort_unstable();
            let mut asked = boards.clone();
            asked.sort_unstable();
            let (mut next, mut known) = (0, 0);
            for (sent, _, events) in asked {
                while next < answered.len() && answered[next].0 < sent {
                    known = known.max(answered[next].1);
                    next += 1;
                }
                audit.stale_boards += u64::from(events < known);
            }
        }
    }
}

impl Audit {
    fn name(&mut self, example: String) {
        if self.examples.len() < NAMED {
            self.examples.push(example);
        }
    }
}

/// How often each of the numbers `1..=sent` was executed, and how many executions lie beyond.
fn executions(runs: &[(u64, u64)], sent: usize) -> (Vec<u32>, u64) {
    let mut counts = vec![0; sent];
    let mut beyond = 0;
    for &(first, last) in runs {
        let within = first.max(1)..=last.min(sent as u64);
        let inside = if within.is_empty() { 0 } else { within.end() - within.start() + 1 };
        within.for_each(|number| counts[number as usize - 1] += 1);
        beyond += (last - first).saturating_add(1) - inside;
    }
    (counts, beyond)
}

#[cfg(test)]
mod tests {
    use super::super::service::Traffic;
    use super::*;

    fn evidence(sensor: u16, acknowledged: impl IntoIterator<Item = (u64, bool)>) -> Evidence {
        let mut evidence = Evidence::default();
        for (number, good) in acknowledged {
            evidence.add(&Record {
                session: 0,
                kind: Kind::Event(Traffic::Normal),
                subject: sensor,
                number,
                due: 0,
                sent: 0,
                answered: 1,
                error: (!good).then(|| "deadline exceeded".to_owned()),
            });
        }
        evidence
    }

    fn replica(name: &str, numbers: impl IntoIterator<Item = u64>) -> (String, Journal) {
        let mut journal = Journal::new(2);
        numbers.into_iter().for_each(|number| journal.record(1, number).unwrap());
        (name.to_owned(), journal)
    }

    impl Audit {
        fn clean(&self) -> bool {
            self.lost == 0 && self.duplicated == 0 && self.invented == 0 && self.stale_boards == 0
        }
    }

    #[test]
    fn equal_journals_of_all_that_was_sent_are_clean() {
        let audit = evidence(1, (1..=100).map(|number| (number, true)))
            .audit(&[replica("node 1", 1..=100), replica("node 2", 1..=100)]);
        assert!(audit.clean());
        assert_eq!((audit.sent, audit.acknowledged), (100, 100));
    }

    #[test]
    fn a_planted_loss_in_one_replica_is_found() {
        let audit = evidence(1, (1..=100).map(|number| (number, true))).audit(&[
            replica("node 1", 1..=100),
            replica("node 2", (1..=100).filter(|&number| number != 41)),
        ]);
        assert_eq!((audit.lost, audit.duplicated, audit.clean()), (1, 0, false));
        assert_eq!(
            audit.examples,
            ["event 41 of sensor 1 was executed by node 1: 1 times, node 2: 0 times"]
        );
    }

    #[test]
    fn a_loss_in_every_replica_is_found() {
        let audit = evidence(1, (1..=3).map(|number| (number, true)))
            .audit(&[replica("node 1", 1..=2), replica("node 2", 1..=2)]);
        assert_eq!(audit.lost, 1);
    }

    #[test]
    fn a_planted_repeat_is_found() {
        let audit = evidence(1, (1..=5).map(|number| (number, true)))
            .audit(&[replica("node 1", [1, 2, 3, 2, 4, 5]), replica("node 2", 1..=5)]);
        assert_eq!((audit.lost, audit.duplicated, audit.clean()), (0, 1, false));
    }

    #[test]
    fn an_unacknowledged_event_may_be_executed_or_not() {
        let audit = evidence(1, [(1, true), (2, false), (3, false)])
            .audit(&[replica("node 1", [1, 3]), replica("node 2", [1, 3])]);
        assert!(audit.clean());
        assert_eq!((audit.unacknowledged, audit.unacknowledged_executed), (2, 1));
        assert_eq!(audit.errors["deadline exceeded"], 2);
    }

    #[test]
    fn an_event_that_nobody_sent_is_found() {
        let audit = evidence(1, [(1, true)]).audit(&[replica("node 1", 1..=4)]);
        assert_eq!((audit.invented, audit.clean()), (3, false));
    }

    #[test]
    fn a_board_older_than_one_shown_before_is_found() {
        let query = |sent, answered, number| Record {
            session: 0,
            kind: Kind::Query,
            subject: 9,
            number,
            due: sent,
            sent,
            answered,
            error: None,
        };
        let mut evidence = Evidence::default();
        // The second was asked for before the first was answered: either order is right.
        for record in [query(0, 10, 7), query(5, 15, 6), query(20, 30, 7), query(40, 50, 6)] {
            evidence.add(&record);
        }
        let audit = evidence.audit(&[]);
        assert_eq!((audit.boards, audit.stale_boards), (4, 1));
    }
}
