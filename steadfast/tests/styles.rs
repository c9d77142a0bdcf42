//! A group gets other styles while clients call it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fixture::{Stops, cluster};
use steadfast::{BoxError, Client, HostOptions, State, Style};

const GROUP: &str = "tally";
const LONG: Duration = Duration::from_secs(60);

#[steadfast::service]
trait Tally {
    fn count(&mut self) -> u64;
    fn counted(&self) -> u64;
}

/// In its own words: what is told twice is counted twice.
#[derive(Default)]
struct Count {
    all: u64,
    untold: u64,
}

impl Tally for Count {
    fn count(&mut self) -> u64 {
        self.all += 1;
        self.untold += 1;
        self.all
    }

    fn counted(&self) -> u64 {
        self.all
    }
}

fn number(bytes: &[u8]) -> Result<u64, String> {
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| "eight bytes".into())
}

impl State for Count {
    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.all.to_le_bytes().to_vec())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        *self = Count { all: number(state)?, untold: 0 };
        Ok(())
    }

    fn delta(&mut self) -> Result<Option<Vec<u8>>, BoxError> {
        Ok(Some(std::mem::take(&mut self.untold).to_le_bytes().to_vec()))
    }

    fn apply(&mut self, delta: &[u8]) -> Result<(), BoxError> {
        self.all += number(delta)?;
        Ok(())
    }
}

/// Calls until it is told to stop. Returns the answers.
fn calls(addresses: Vec<SocketAddr>, stop: &AtomicBool) -> Vec<u64> {
    let client = Client::connect(addresses).expect("the nodes are up");
    let tally = TallyClient::new(&client, GROUP).within(LONG);
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        answers.push(tally.count().expect("no call is lost"));
    }
    answers
}

#[test]
fn a_group_goes_through_its_styles_under_load_and_counts_each_call_once() {
    let nodes = cluster::start(3);
    for node in &nodes {
        let host = || TallyService::new(Count::default());
        node.host(GROUP, HostOptions::default(), host).expect("a new group");
    }
    for node in &nodes {
        cluster::wait_for_replicas(node, GROUP, 3);
    }
    let (addresses, stop) = (cluster::addresses(&nodes), AtomicBool::new(false));
    let mut answers = thread::scope(|scope| {
        let call = || scope.spawn(|| calls(addresses.clone(), &stop));
        let callers: Vec<_> = (0..4).map(|_| call()).collect();
        let running = Stops(&stop);
        let styles = [
            Style::Active,
            Style::WarmPassive,
            Style::ColdPassive,
            Style::Voting,
            Style::SemiActive,
            Style::ColdPassive,
            Style::WarmPassive,
            Style::Active,
        ];
        for (round, style) in styles.into_iter().cycle().take(24).enumerate() {
            let asked = &nodes[round % nodes.len()];
            let view = asked.restyle(GROUP, style).expect("it can");
            let group = cluster::wait_for(asked, GROUP, |group| group.view >= view);
            assert_eq!(group.style, style);
        }
        drop(running);
        let joined = callers.into_iter().flat_map(|caller| caller.join().expect("it calls"));
        joined.collect::<Vec<u64>>()
    });
    answers.sort_unstable();
    let each_once: Vec<u64> = (1..=answers.len() as u64).collect();
    assert_eq!(answers, each_once, "nothing is lost, and nothing is executed twice");
    let client = Client::connect(cluster::addresses(&nodes)).expect("the nodes are up");
    let tally = TallyClient::new(&client, GROUP).within(LONG);
    assert_eq!(tally.counted(), Ok(answers.len() as u64));
    for node in &nodes {
        let group = cluster::wait_for_replicas(node, GROUP, 3);
        assert_eq!(group.style, Style::Active);
    }
}
