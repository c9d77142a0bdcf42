//! The displays of all stations, in a process of their own: each is a client with a session of
//! its own that asks for its station's board now and then.

use std::sync::Arc;

use steadfast::Random;
use tokio::sync::{Semaphore, oneshot};

use super::clients::{Assignment, Calls, Failure, Intent, WINDOW};
use super::clock::Alarm;
use super::message::Tale;
use super::network::{Network, StationId};
use super::plan::GROUP;
use super::record::Kind;
use super::service::PassengersAsyncClient;
use super::{child, clients};

/// Runs the process.
pub fn run(assignment: Assignment) -> Result<(), Failure> {
    clients::run(|start| ask(assignment, start))
}

async fn ask(assignment: Assignment, start: oneshot::Receiver<u64>) -> Result<(), Failure> {
    let stations = Network::porto().stations.len();
    let mut displays = Vec::new();
    for _ in 0..stations {
        let client = assignment.connect().await?;
        let client = PassengersAsyncClient::new(&client, GROUP);
        displays.push((client, Arc::new(Semaphore::new(WINDOW))));
    }
    let calls = Calls::new(&assignment.records)?;
    let mut alarm = Alarm::new()?;
    let mut jitter = Random::new(assignment.seed);
    child::tell(&Tale::Ready(None));
    let Ok(start) = start.await else { return Ok(()) };

    let spacing = 1e9 / assignment.rate;
    for slot in 0u64.. {
        let due = start + (slot as f64 * spacing) as u64 + jitter.below(spacing as u64 + 1);
        if due >= start + assignment.nanos {
            break;
        }
        alarm.at(due).await?;
        calls.tell(due);
        let station = StationId((slot % stations as u64) as u16);
        let (client, window) = &displays[usize::from(station.0)];
        let client = client.clone();
        let (session, subject) = (station.0, station.0);
        let intent = Intent { session, kind: Kind::Query, subject, due };
        calls.make(window, intent, 0, move |deadline| async move {
            client.within(deadline).display(station).await.map(|board| board.events)
        });
    }
    Ok(calls.settled().await?)
}
