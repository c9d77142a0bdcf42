//! The passenger information service: written on the public API alone, replicated by Steadfast.
//!
//! For each station it keeps the next departures, the malfunctions and the alarms. It reads no
//! clock: the time of a call is ordered with it, so every replica computes the same boards.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steadfast::{BoxError, Context, State};
use thiserror::Error;

use super::journal::Journal;
use super::network::{LineId, Network, SensorId, StationId};

/// Departures shown for one line in one direction.
pub const DEPARTURES: usize = 3;

/// The three kinds of traffic, the most urgent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Traffic {
    /// Trains come and go, messages are played.
    Normal,
    /// Equipment fails or works again.
    Critical,
    /// Somebody needs help, something lies on the track.
    Alarm,
}

impl Traffic {
    /// The words for people.
    pub fn name(self) -> &'static str {
        match self {
            Traffic::Normal => "normal",
            Traffic::Critical => "critical",
            Traffic::Alarm => "alarm",
        }
    }
}

/// Equipment of a station that can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Equipment {
    /// Between street and platform.
    Lift,
    /// Between street and platform.
    Escalator,
    /// Sells tickets.
    TicketMachine,
    /// Reads tickets.
    Validator,
    /// Speaks.
    Loudspeaker,
}

impl Equipment {
    /// All.
    pub const ALL: [Equipment; 5] = [
        Equipment::Lift,
        Equipment::Escalator,
        Equipment::TicketMachine,
        Equipment::Validator,
        Equipment::Loudspeaker,
    ];

    /// The words for people.
    pub fn name(self) -> &'static str {
        match self {
            Equipment::Lift => "lift",
            Equipment::Escalator => "escalator",
            Equipment::TicketMachine => "ticket machine",
            Equipment::Validator => "ticket validator",
            Equipment::Loudspeaker => "loudspeaker",
        }
    }
}

/// A sensor's observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A train passed the track sensor before the station: it leaves in so many seconds.
    Train {
        /// Its line.
        line: LineId,
        /// Where it goes.
        destination: StationId,
        /// Its number.
        train: u16,
        /// Until it leaves this station.
        leaves_in: u16,
    },
    /// A message was played to the passengers.
    Announcement,
    /// A piece of equipment fails or works again.
    Equipment {
        /// Which.
        equipment: Equipment,
        /// It works.
        works: bool,
    },
    /// Somebody presses the button of the help point, or something lies on the track; or it is
    /// over.
    Alarm {
        /// Not over.
        raised: bool,
    },
}

impl What {
    /// How urgent it is.
    pub fn traffic(self) -> Traffic {
        match self {
            What::Train { .. } | What::Announcement => Traffic::Normal,
            What::Equipment { .. } => Traffic::Critical,
            What::Alarm { .. } => Traffic::Alarm,
        }
    }
}

/// A sensor's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The sensor.
    pub sensor: SensorId,
    /// The sensor's events are numbered from 1, one by one.
    pub number: u64,
    /// Its observation.
    pub what: What,
}

/// A train that will leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// Its line.
    pub line: LineId,
    /// Where it goes.
    pub destination: StationId,
    /// Its number.
    pub train: u16,
    /// When, in ordered time: nanoseconds since the Unix epoch.
    pub leaves: u64,
}

/// The board that a display shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    /// Where.
    pub station: StationId,
    /// Ordered time of the query: nanoseconds since the Unix epoch.
    pub time: u64,
    /// Events of this station so far: never less than on a board shown before.
    pub events: u64,
    /// In order of time.
    pub departures: Vec<Departure>,
    /// Broken equipment.
    pub malfunctions: Vec<Equipment>,
    /// The sensors that have raised an alarm.
    pub alarms: Vec<SensorId>,
}

/// Why a report or query is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum ServiceError {
    /// The network's data file does not know it.
    #[error("there is no sensor {}: sensors are numbered as in the network's file", .0.0)]
    NoSuchSensor(SensorId),
    /// The network's data file does not know it.
    #[error("there is no station {}: stations are numbered as in the network's file", .0.0)]
    NoSuchStation(StationId),
    /// The sensor's numbers have too many holes.
    #[error("the journal of this sensor is full: number its events one by one")]
    JournalFull,
}

/// The service, as its clients see it.
#[steadfast::service]
pub trait Passengers {
    /// Takes a sensor's event; the answer is the number of events of its station so far.
    fn report(&mut self, context: &Context, event: Event) -> Result<u64, ServiceError>;

    /// The board that the displays of a station show. It is the same, whichever replica answers.
    fn display(&self, context: &Context, station: StationId) -> Result<Board, ServiceError>;
}

/// One replica's copy: the state, and the network that it is about (which is not state).
pub struct PassengerInformation {
    network: Arc<Network>,
    state: Information,
}

/// All that a replica knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Information {
    stations: Vec<StationState>,
    /// The executed events.
    pub journal: Journal,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StationState {
    events: u64,
    departures: BTreeMap<(LineId, StationId), Vec<Departure>>,
    malfunctions: Vec<Equipment>,
    alarms: Vec<SensorId>,
}

impl PassengerInformation {
    /// The state of a network of which nothing is known yet.
    pub fn new(network: Arc<Network>) -> Self {
        let state = Information {
            stations: vec![StationState::default(); network.stations.len()],
            journal: Journal::new(network.sensors.len()),
        };
        PassengerInformation { network, state }
    }
}

impl Passengers for PassengerInformation {
    fn report(&mut self, context: &Context, event: Event) -> Result<u64, ServiceError> {
        let unknown = ServiceError::NoSuchSensor(event.sensor);
        let station = self.network.sensor(event.sensor).ok_or(unknown)?.station;
        self.state
            .journal
            .record(usize::from(event.sensor.0), event.number)
            .map_err(|_| ServiceError::JournalFull)?;
        let station = &mut self.state.stations[usize::from(station.0)];
        station.apply(context.now().0, event);
        Ok(station.events)
    }

    fn display(&self, context: &Context, station: StationId) -> Result<Board, ServiceError> {
        let state = self.state.stations.get(usize::from(station.0));
        let state = state.ok_or(ServiceError::NoSuchStation(station))?;
        Ok(state.board(station, context.now().0))
    }
}

impl StationState {
    fn apply(&mut self, now: u64, event: Event) {
        self.events += 1;
        match event.what {
            What::Train { line, destination, train, leaves_in } => {
                let leaves = now + u64::from(leaves_in) * 1_000_000_000;
                let next = self.departures.entry((line, destination)).or_default();
                next.retain(|other| other.train != train && other.leaves > now);
                let place = next.partition_point(|other| other.leaves <= leaves);
                next.insert(place, Departure { line, destination, train, leaves });
                next.truncate(DEPARTURES);
            }
            What::Announcement => {}
            What::Equipment { equipment, works } => {
                set(&mut self.malfunctions, equipment, !works);
            }
            What::Alarm { raised } => set(&mut self.alarms, event.sensor, raised),
        }
    }

    fn board(&self, station: StationId, now: u64) -> Board {
        let ahead = |departure: &&Departure| departure.leaves > now;
        let mut departures: Vec<Departure> =
            self.departures.values().flatten().filter(ahead).cloned().collect();
        departures.sort_by_key(|departure| (departure.leaves, departure.line, departure.train));
        Board {
            station,
            time: now,
            events: self.events,
            departures,
            malfunctions: self.malfunctions.clone(),
            alarms: self.alarms.clone(),
        }
    }
}

/// Puts a thing into a sorted set or takes it out.
fn set<T: Ord>(things: &mut Vec<T>, thing: T, present: bool) {
    match (things.binary_search(&thing), present) {
        (Err(place), true) => things.insert(place, thing),
        (Ok(place), false) => {
            things.remove(place);
        }
        _ => {}
    }
}

impl State for PassengerInformation {
    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(postcard::to_allocvec(&self.state)?)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.state = Information::from_bytes(state)?;
        Ok(())
    }
}

impl Information {
    /// Decodes a replica's snapshot.
    pub fn from_bytes(state: &[u8]) -> Result<Information, String> {
        postcard::from_bytes(state).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station() -> StationState {
        StationState::default()
    }

    fn train(train: u16, leaves_in: u16) -> Event {
        let what = What::Train { line: LineId(0), destination: StationId(22), train, leaves_in };
        Event { sensor: SensorId(0), number: 1, what }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_next_departures_are_shown_and_those_that_left_are_not() {
        let mut station = station();
        for (number, leaves_in) in [(1, 300), (2, 60), (3, 120), (4, 30)] {
            station.apply(0, train(number, leaves_in));
        }
        let trains = |now| -> Vec<u16> {
            let board = station.board(StationId(0), now);
            board.departures.iter().map(|departure| departure.train).collect()
        };
        assert_eq!(trains(0), [4, 2, 3], "the three that leave first");
        assert_eq!(trains(60 * SECOND), [3]);
    }

    #[test]
    fn a_train_stands_on_the_board_once() {
        let mut station = station();
        station.apply(0, train(7, 100));
        station.apply(10 * SECOND, train(7, 95));
        let board = station.board(StationId(0), 11 * SECOND);
        assert_eq!(board.departures.len(), 1);
        assert_eq!(board.departures[0].leaves, 105 * SECOND);
    }

    #[test]
    fn malfunctions_and_alarms_come_and_go() {
        let mut station = station();
        let mut tell = |what| {
            station.apply(0, Event { sensor: SensorId(5), number: 1, what });
            let board = station.board(StationId(0), 0);
            (board.malfunctions, board.alarms.len())
        };
        let lift = |works| What::Equipment { equipment: Equipment::Lift, works };
        assert_eq!(tell(lift(false)), (vec![Equipment::Lift], 0));
        assert_eq!(tell(lift(false)), (vec![Equipment::Lift], 0));
        assert_eq!(tell(What::Alarm { raised: true }), (vec![Equipment::Lift], 1));
        assert_eq!(tell(lift(true)), (vec![], 1));
        assert_eq!(tell(What::Alarm { raised: false }), (vec![], 0));
    }

    #[test]
    fn a_restored_replica_knows_the_same() {
        let network = Arc::new(Network::porto());
        let mut one = PassengerInformation::new(network.clone());
        one.state.stations[0].apply(0, train(1, 60));
        one.state.journal.record(3, 1).unwrap();
        let mut other = PassengerInformation::new(network);
        assert_ne!(one.state, other.state);
        other.restore(&one.snapshot().unwrap()).unwrap();
        assert_eq!(one.state, other.state);
        assert!(other.restore(&[0xff; 3]).is_err());
    }
}
