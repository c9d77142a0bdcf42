//! The sensors of one line, in a process of their own: events at a rate that does not wait for
//! answers, through a handful of sessions.

use std::sync::Arc;

use steadfast::Random;
use tokio::sync::{Semaphore, oneshot};

use super::clients::{Assignment, Calls, Failure, Intent, WINDOW};
use super::clock::Alarm;
use super::message::Tale;
use super::network::{LineId, Network};
use super::plan::GROUP;
use super::record::Kind;
use super::service::PassengersAsyncClient;
use super::traffic::Generator;
use super::{child, clients};

/// The conductor's command line.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    assignment: Assignment,
    /// Which line.
    #[arg(long)]
    line: u8,
}

/// A session, and the calls that it may have under way.
struct Session {
    client: PassengersAsyncClient,
    window: Arc<Semaphore>,
}

/// Runs the process.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    clients::run(|start| generate(arguments, start))
}

async fn generate(arguments: Arguments, start: oneshot::Receiver<u64>) -> Result<(), Failure> {
    let Arguments { assignment, line } = arguments;
    let network = Network::porto();
    let mut events = Generator::new(&network, LineId(line), assignment.seed);
    // A second's events of this process fit into the windows of its sessions.
    let sessions = (assignment.rate / WINDOW as f64).ceil().max(1.0) as usize;
    let sessions = connect(&assignment, sessions.min(events.sensors())).await?;
    let calls = Calls::new(&assignment.records)?;
    let mut alarm = Alarm::new()?;
    let mut jitter = Random::new(assignment.seed ^ u64::from(line));
    child::tell(&Tale::Ready(None));
    let Ok(start) = start.await else { return Ok(()) };

    let spacing = 1e9 / assignment.rate;
    for slot in 0u64.. {
        // One event in each slot, anywhere in it: a steady rate without lockstep between lines.
        let slot_start = (slot as f64 * spacing) as u64;
        let due = start + slot_start + jitter.below(spacing as u64 + 1);
        if due >= start + assignment.nanos {
            break;
        }
        alarm.at(due).await?;
        calls.tell(due);
        let event = events.event((due - start) / 1_000_000_000);
        // A sensor stays with its session, so its events are executed in the order of their
        // numbers.
        let place = usize::from(event.sensor.0) % sessions.len();
        let Session { client, window } = &sessions[place];
        let client = client.clone();
        let intent = Intent {
            session: place as u16,
            kind: Kind::Event(event.what.traffic()),
            subject: event.sensor.0,
            due,
        };
        calls.make(window, intent, event.number, move |deadline| async move {
            client.within(deadline).report(event).await.map(|_| event.number)
        });
    }
    Ok(calls.settled().await?)
}

async fn connect(assignment: &Assignment, count: usize) -> Result<Vec<Session>, Failure> {
    let mut sessions = Vec::new();
    for _ in 0..count {
        let client = assignment.connect().await?;
        let client = PassengersAsyncClient::new(&client, GROUP);
        sessions.push(Session { client, window: Arc::new(Semaphore::new(WINDOW)) });
    }
    Ok(sessions)
}
