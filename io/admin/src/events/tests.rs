//! Every event in its three forms, beside `tests.txt`.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use engine::{Deviation, Event, RosterNews, Suspicion};
use expect_test::expect_file;
use ring::Event as Ring;
use tracing::field::{Field, Visit};
use tracing::{Metadata, Subscriber, span};
use wire::keys::KeyName;
use wire::ordered::{About, GroupOptions, Poison, Style};
use wire::versions::Unfit;
use wire::{
    ClientId, Duration, GroupId, Incarnation, Malformed, Member, MethodId, NodeId, RingId, Share,
    Speaks, VersionRange, ViewNumber,
};

use super::{EventFormatter, EventRecord, Log};

/// Records each log line: level, target and fields.
struct Writer(Arc<Mutex<String>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("strings take all");
    }
}

impl Subscriber for Writer {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = self.0.lock().expect("no test panics here");
        let metadata = event.metadata();
        write!(text, "{} {}", metadata.level(), metadata.target()).expect("strings take all");
        event.record(&mut Fields(&mut text));
        text.push('\n');
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

const A: Member = Member { node: NodeId(1), incarnation: Incarnation(7) };
const B: Member = Member { node: NodeId(2), incarnation: Incarnation(8) };
const RING: RingId = RingId { sequence: 5, representative: NodeId(2) };
const SPAN: Duration = Duration::from_micros(2_500);

fn of_the_ring() -> Vec<Event> {
    let charge = ring::Charge { stopped: SPAN * 8, within: SPAN * 9, limit: SPAN * 4, share: 50 };
    let ours = Speaks { ring: VersionRange::new(2, 3), rules: VersionRange::new(2, 3), level: 2 };
    let speaks = Speaks { ring: VersionRange::new(1, 1), rules: VersionRange::new(1, 1), level: 1 };
    let unfit = |why| Ring::Unfit { member: A, speaks, ours, why };
    let events = vec![
        Ring::TokenLost { ring: RING, silent: SPAN, suspect: Some(A) },
        Ring::TokenLost { ring: RING, silent: SPAN, suspect: None },
        Ring::Gathering { proposed: vec![A, B], failed: vec![A] },
        Ring::Unreachable(A),
        Ring::Silent(A),
        Ring::TooSlow { member: A, by: B, charge: Some(charge) },
        Ring::TooSlow { member: B, by: A, charge: None },
        Ring::HeldOff { member: A, span: SPAN },
        Ring::HeldUp(SPAN),
        unfit(Unfit::Ring),
        unfit(Unfit::TheirRules),
        unfit(Unfit::OurRules),
        unfit(Unfit::With(B.node)),
        Ring::Installed { ring: RING, took: SPAN, recovered: 3 },
        Ring::Retransmitted(4),
        Ring::LinkLost { node: NodeId(1), link: 2 },
        Ring::LinkBack { node: NodeId(1), link: 2 },
        Ring::Left,
    ];
    events.into_iter().map(Event::Ring).collect()
}

fn of_members() -> Vec<Event> {
    let (member, ring, used, capacity) = (A, RING, Share(1_500_000), Share(2_000_000));
    let suspected = |cause| Event::Suspected { member, ring, cause };
    let stamp = wire::ordered::Place { epoch: 4, ring: RING, sequence: 9 };
    let roster = |news| Event::Roster { news, stamp };
    let excluded = |cause, suspected| Event::Excluded { member, ring, cause, suspected };
    vec![
        Event::Malformed(Malformed::Length),
        Event::Quorum { ring, quorate: false, epoch: 3 },
        Event::Configuration { ring, members: vec![A] },
        Event::Quorum { ring, quorate: false, epoch: 3 },
        Event::Configuration { ring, members: vec![A, B] },
        Event::Quorum { ring, quorate: true, epoch: 4 },
        suspected(Suspicion::Silence(SPAN)),
        suspected(Suspicion::Silence(Duration::ZERO)),
        suspected(Suspicion::Gone),
        suspected(Suspicion::NoAnswer),
        suspected(Suspicion::TooSlow),
        excluded(Some(Suspicion::Silence(SPAN)), Some(SPAN)),
        excluded(None, None),
        Event::Restarted { member, before: Incarnation(6), ring },
        Event::Missed(9),
        Event::Overloaded { member, used, capacity },
        Event::Relieved { member, used, capacity },
        Event::Shedding { node: NodeId(1), level: 4, refused: 9 },
        Event::Shedding { node: NodeId(1), level: 0, refused: 9 },
        Event::BenchBegan { by: A, senders: vec![NodeId(1), NodeId(2)], size: 8 },
        Event::BenchEnded { by: A, whole: true },
        Event::Level(2),
        roster(RosterNews::Coming(NodeId(4))),
        roster(RosterNews::Admitted(NodeId(4))),
        roster(RosterNews::Going(NodeId(4))),
        roster(RosterNews::Retired(NodeId(4))),
        roster(RosterNews::Withdrawn(NodeId(4))),
        roster(RosterNews::Dismissed),
        Event::Drained { node: NodeId(1), begins: true },
        Event::Drained { node: NodeId(1), begins: false },
        Event::Left,
    ]
}

fn of_this_node() -> Vec<Event> {
    let key = KeyName { number: 2, fingerprint: [1, 2, 3, 4, 5, 6, 7, 8] };
    let group = || String::from("counter");
    let program = |news| Event::Program { group: group(), news };
    let reserve = |news| Event::Reserve { path: "trial/n1/plane".into(), news };
    let deployment = |news| Event::Deployment { group: group(), news };
    let (node, text) = (NodeId(1), || String::from("./counter"));
    vec![
        Event::KeyOffered(key),
        Event::KeySwitched(key),
        Event::KeyRetired(key),
        Event::KeyAborted(key),
        program(engine::ProgramNews::Started { pid: 11 }),
        program(engine::ProgramNews::Attached { pid: 11 }),
        program(engine::ProgramNews::Ended { pid: 11, how: "by a signal".into() }),
        program(engine::ProgramNews::CrashLoop { ends: 5, wait: SPAN }),
        program(engine::ProgramNews::Recovered),
        program(engine::ProgramNews::Stopped),
        reserve(engine::ReserveNews::InForce { by: "SCHED_DEADLINE".into() }),
        reserve(engine::ReserveNews::Degraded { why: "memory: no control group".into() }),
        reserve(engine::ReserveNews::Overran { overruns: 3, runtime: SPAN }),
        reserve(engine::ReserveNews::Changed { runtime: SPAN }),
        reserve(engine::ReserveNews::Refused { why: "no room".into() }),
        deployment(engine::DeploymentNews::Deployed { replicas: 3 }),
        deployment(engine::DeploymentNews::Placed { on: vec![NodeId(1), NodeId(2)] }),
        deployment(engine::DeploymentNews::Changing { node, program: text() }),
        deployment(engine::DeploymentNews::Changed { program: text() }),
        deployment(engine::DeploymentNews::TakenBack { node, why: "it ended".into() }),
        deployment(engine::DeploymentNews::Failing { node }),
        deployment(engine::DeploymentNews::Withdrawn),
        Event::Storage(engine::StorageNews::Full("no space".into())),
        Event::Storage(engine::StorageNews::Room),
        Event::Storage(engine::StorageNews::Failed("no disk".into())),
    ]
}

fn of_groups() -> Vec<Event> {
    let name = || String::from("counter");
    let (group, style, view, asked) =
        (GroupId::of("counter"), Style::SemiActive, ViewNumber(4), ViewNumber(3));
    let (member, from, to, ring, sequence) = (A, A, B, RING, 12);
    let reason = || String::from("no such state");
    let replicas = |primary| Event::View {
        group,
        name: name(),
        style,
        view,
        replicas: vec![(A, true), (B, false)],
        primary,
    };
    let deviated = |cause| Event::Deviated { group, name: name(), member, position: 6, cause };
    let noted = |about, text| Event::StateNote { group, name: name(), member, about, text };
    let hung = |alone| Event::Hung { group, name: name(), member, misses: 3, ran: SPAN, alone };
    let demoted = |was_primary| Event::Demoted { group, name: name(), member, was_primary, asked };
    vec![
        Event::TransferStarted { group, to },
        replicas(None),
        replicas(Some(A)),
        Event::JoinRefused { name: name(), options: GroupOptions::default() },
        Event::TransferStarted { group, to },
        Event::TransferFailed { group, reason: reason() },
        noted(About::Give, Some(reason())),
        noted(About::Read, Some(reason())),
        noted(About::Dropped, Some("credit".into())),
        noted(About::ReadBack, None),
        noted(About::Apart, Some(reason())),
        noted(About::Apart, None),
        noted(About::Discarded, Some("3 acknowledged calls".into())),
        Event::Discarded { group, name: name(), calls: 3 },
        Event::Merged { group, name: name(), calls: 3 },
        Event::WentBack { group, name: name(), member },
        Event::UpdateFailed { group, reason: reason() },
        Event::Promoted { group, name: name(), requests: 5, restore: SPAN, replay: SPAN * 2 },
        Event::PromotionFailed { group, reason: reason() },
        Event::Checkpointed { group, number: 7, bytes: 90 },
        Event::CheckpointFailed { group, reason: reason() },
        Event::Transferred { group, bytes: 90 },
        Event::Resumed { group, name: name(), view, after: SPAN },
        deviated(Deviation::Outcome { told: 1, agreed: 2, voters: 3 }),
        deviated(Deviation::Silent),
        deviated(Deviation::Behind),
        hung(false),
        hung(true),
        demoted(false),
        demoted(true),
        Event::Split { group, name: name(), position: 6, answers: 3 },
        Event::Moved { group, name: name(), ring, sequence, from, to, asked, view },
        Event::Restyled {
            group,
            name: name(),
            ring,
            sequence,
            from: style,
            to: Style::Voting,
            asked,
            view,
        },
        Event::Deposited { group, name: name(), holder: A, replaced: true, view },
        Event::Ended { group, name: name(), view },
        Event::Ranked { group, name: name(), ring, sequence, order: vec![B, A], asked, view },
    ]
}

fn of_calls() -> Vec<Event> {
    let (group, client, number) = (GroupId::of("counter"), ClientId(7), 9);
    let poison = Poison {
        number: 5,
        client,
        call: number,
        method: MethodId(3),
        json: false,
        time: wire::Time(1),
        nodes: vec![NodeId(1), NodeId(3)],
        size: 6,
        body: b"secret".to_vec(),
    };
    vec![
        Event::Executed { group, client, number, position: 2 },
        Event::Poisoned { group, poison: Box::new(poison) },
        Event::Copy { group, client, number },
        Event::NestedCopy { group },
        Event::NestedEnded { group, by: A },
        Event::Replied { group, client, number },
    ]
}

#[test]
fn every_event_has_its_three_forms() {
    let logged = Arc::default();
    let (mut log, mut formatter) =
        (Log::new(NodeId(2), vec![NodeId(1), NodeId(2)]), EventFormatter::new());
    let mut told = String::new();
    let events = [of_the_ring(), of_members(), of_groups(), of_this_node(), of_calls()]
        .into_iter()
        .flatten();
    tracing::subscriber::with_default(Writer(Arc::clone(&logged)), || {
        for (index, event) in events.enumerate() {
            let record = EventRecord::new(index as u64 * 10_000_000_000, NodeId(2), &event);
            let json = serde_json::to_string(&record).expect("an event has a JSON form");
            assert_eq!(serde_json::from_str::<EventRecord>(&json).expect("it is read"), record);
            log.write(&event);
            let logged = std::mem::take(&mut *logged.lock().expect("no test panics here"));
            let line = formatter.line(&record);
            write!(told, "{json}\n{line}\n{logged}\n").expect("strings take all");
        }
    });
    expect_file!["tests.txt"].assert_eq(&told);
}

#[test]
fn the_manual_tells_of_events_that_there_are() {
    let manual = include_str!("../../../../docs/operating.md");
    let (_, table) = manual.split_once("| event | means | told by |").expect("a table of events");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names = rows.filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split(','));
    let names: Vec<&str> = names.map(|name| name.trim_matches([' ', '`'])).collect();
    assert!(names.contains(&"suspected") && names.contains(&"missed"), "{names:?}");
    for name in names {
        let form = format!(r#""event":"{name}""#);
        assert!(include_str!("tests.txt").contains(&form), "no event is called {name}");
    }
}
