//! The result of a run: everything that the report shows, and whether it passed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::audit::{Audit, Evidence};
use super::choice::Choice;
use super::clients::SLA;
use super::fault::{Fault, Role};
use super::gaps::Clients;
use super::journal::Journal;
use super::network::Network;
use super::plan::Plan;
use super::process::Who;
use super::record::{self, Kind, Record};
use super::service::{Board, Information};
use super::stage;
use super::timeline::{NodeEvent, Timeline, timeline};

/// The evidence that the conductor collects.
pub struct Findings {
    /// When the traffic began: nanoseconds since the Unix epoch.
    pub start: u64,
    /// The backup that was to take over, and why.
    pub choice: Option<Choice>,
    /// The faults that nodes suffered.
    pub faults: Vec<Fault>,
    /// The events that nodes reported.
    pub seen: Vec<NodeEvent>,
    /// The records that clients wrote.
    pub records: Vec<(Who, PathBuf)>,
    /// The replicas' final states.
    pub replicas: Vec<Replica>,
    /// Boards to show.
    pub boards: Vec<Board>,
}

/// A replica's final state.
#[derive(Clone, Debug, Serialize)]
pub struct Replica {
    /// Its node.
    pub node: u32,
    /// It is the primary.
    pub primary: bool,
    /// Requests executed in the group's history.
    pub executed: u64,
    /// Bytes of its state.
    pub bytes: usize,
    /// SHA-256 of them.
    pub digest: String,
    #[serde(skip)]
    journal: Journal,
}

impl Replica {
    /// Reads the state that a node gave.
    pub fn new(id: u32, primary: bool, executed: u64, state: &[u8]) -> Result<Replica, String> {
        let journal = Information::from_bytes(state)?.journal;
        let digest = node::admin::digest(state);
        Ok(Replica { node: id, primary, executed, bytes: state.len(), digest, journal })
    }
}

/// How long calls of one kind took, from the moment when they were due to their answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Calls that were answered.
    pub count: u64,
    /// Half of them took at most so long.
    pub p50_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
    /// 999 of 1,000.
    pub p999_ms: f64,
    /// All of them.
    pub max_ms: f64,
    /// Slower than the 2 seconds that the network's operator demands, or never answered.
    pub late: u64,
}

/// Everything that the report tells.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Nothing is wrong: the exit status is 0.
    pub passed: bool,
    /// Failed checks, in words.
    pub failures: Vec<String>,
    /// Lost and repeated events.
    #[serde(flatten)]
    pub audit: Audit,
    /// All replicas' states are the same.
    pub digests_equal: bool,
    /// The replicas' states.
    pub replicas: Vec<Replica>,
    /// By kind of traffic; displays' queries beside.
    pub latency: BTreeMap<&'static str, Latency>,
    /// The backup that was to take over, and why; `None` with fewer than two backups.
    pub choice: Option<Choice>,
    /// One for each fault.
    pub faults: Vec<Timeline>,
    /// The run's plan.
    pub plan: Plan,
    /// Boards to look at.
    #[serde(skip)]
    pub boards: Vec<Board>,
    /// Stations, lines, sensors.
    #[serde(skip)]
    pub network: Network,
}

/// Puts everything together.
///
/// # Errors
/// If a client's records cannot be read: then nothing is known.
pub fn evaluate(plan: &Plan, network: Network, findings: Findings) -> io::Result<Outcome> {
    let mut evidence = Evidence::default();
    let mut clients = Clients::around(&findings.faults);
    let mut times: BTreeMap<Kind, (Histogram<u64>, u64)> = BTreeMap::new();
    for (who, path) in &findings.records {
        let mut sessions: BTreeMap<u16, usize> = BTreeMap::new();
        record::read(path, |record| {
            evidence.add(&record);
            let kind = times.entry(record.kind).or_insert_with(|| (histogram(), 0));
            add_time(kind, &record);
            let session = record.session;
            let client = *sessions
                .entry(session)
                .or_insert_with(|| clients.begin(client_name(&network, *who, session)));
            clients.add(client, &record);
        })?;
    }
    let journals: Vec<(String, Journal)> = findings
        .replicas
        .iter()
        .map(|replica| (format!("node {}", replica.node), replica.journal.clone()))
        .collect();
    let faults: Vec<Timeline> = findings
        .faults
        .iter()
        .map(|fault| {
            timeline(fault, plan.replicas as usize, findings.start, &findings.seen, &clients)
        })
        .collect();
    let mut outcome = Outcome {
        passed: false,
        failures: Vec::new(),
        audit: evidence.audit(&journals),
        digests_equal: findings.replicas.windows(2).all(|two| two[0].digest == two[1].digest),
        replicas: findings.replicas,
        choice: findings.choice,
        latency: times.iter().map(|(kind, times)| (kind.name(), latency(times))).collect(),
        faults,
        plan: plan.clone(),
        boards: findings.boards,
        network,
    };
    outcome.failures = failures(&outcome);
    outcome.passed = outcome.failures.is_empty();
    Ok(outcome)
}

fn client_name(network: &Network, who: Who, session: u16) -> String {
    match who {
        Who::Displays => match network.stations.get(usize::from(session)) {
            Some(station) => format!("display {}", station.name),
            None => format!("display {session}"),
        },
        Who::Sensors(line) => match network.lines.get(usize::from(line)) {
            Some(line) => format!("line {} session {session}", line.letter),
            None => format!("line {line} session {session}"),
        },
        Who::Node(..) => stage::name(who),
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are possible")
}

fn add_time((times, late): &mut (Histogram<u64>, u64), record: &Record) {
    let micros = record.answered.saturating_sub(record.due) / 1_000;
    if record.error.is_none() {
        times.record(micros).expect("the histogram grows");
    }
    *late += u64::from(record.error.is_some() || u128::from(micros) > SLA.as_micros());
}

fn latency((times, late): &(Histogram<u64>, u64)) -> Latency {
    let at = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
    Latency {
        count: times.len(),
        p50_ms: at(0.50),
        p99_ms: at(0.99),
        p999_ms: at(0.999),
        max_ms: times.max() as f64 / 1e3,
        late: *late,
    }
}

/// Everything that must be so and is not.
fn failures(outcome: &Outcome) -> Vec<String> {
    let Audit { sent, lost, duplicated, invented, stale_boards, .. } = outcome.audit;
    let mut failures = Vec::new();
    let mut unless = |good: bool, failure: String| {
        if !good {
            failures.push(failure);
        }
    };
    unless(sent > 0, "no event was sent".to_owned());
    unless(lost == 0, format!("{lost} acknowledged events are lost"));
    unless(duplicated == 0, format!("{duplicated} events were executed twice"));
    unless(invented == 0, format!("{invented} events were executed that nobody sent"));
    unless(stale_boards == 0, format!("{stale_boards} boards were older than one shown before"));
    let (replicas, expected) = (outcome.replicas.len(), outcome.plan.replicas as usize);
    unless(replicas == expected, format!("{replicas} of {expected} replicas have the state"));
    unless(outcome.digests_equal, "the replicas' states differ".to_owned());
    let planned = outcome.plan.faults.len();
    unless(outcome.faults.len() == planned, format!("not all {planned} faults were made"));
    let first = outcome.faults.iter().find(|fault| fault.role == Role::Primary);
    if let (Some(Choice { busy, .. }), Some(fault)) = (&outcome.choice, first) {
        unless(fault.primary != Some(*busy), format!("node {busy} took over, which was busy"));
    }
    for fault in &outcome.faults {
        let (node, role) = (fault.node, fault.role.name());
        unless(
            fault.view_ms.is_some(),
            format!("node {node}, the {role}, was away and the group did not go on without it"),
        );
        unless(
            fault.first_reply_ms.is_some(),
            format!("no client got an answer after node {node}, the {role}, was hit"),
        );
        unless(
            fault.synced_ms.is_some(),
            format!(
                "after the loss of node {node}, the {role}, not all replicas came to have the state"
            ),
        );
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_moment_when_a_call_was_due() {
        let mut times = (histogram(), 0);
        for (due, answered, good) in [(0, 1_000_000, true), (0, 2_500_000_000, true), (0, 5, false)]
        {
            let record = Record {
                session: 0,
                kind: Kind::Query,
                subject: 0,
                number: 0,
                due,
                sent: answered,
                answered,
                error: (!good).then(|| "deadline exceeded".to_owned()),
            };
            add_time(&mut times, &record);
        }
        let latency = latency(&times);
        assert_eq!((latency.count, latency.late), (2, 2));
        assert!((0.999..1.001).contains(&latency.p50_ms), "{latency:?}");
    }
}
