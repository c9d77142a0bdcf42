//! The table of all events: JSON form, source, log line and sentence of each.

use engine::{DeploymentNews, Event, ProgramNews, ReserveNews, RosterNews, StorageNews};
use ring::Event as Ring;
use serde::{Deserialize, Serialize};
use wire::keys::KeyName;
use wire::ordered::{About, GroupOptions, Style};
use wire::versions::Unfit;
use wire::{
    ClientId, GroupId, Incarnation, Member, MethodId, NodeId, RingId, Share, Speaks, ViewNumber,
};

use super::known::{Known, Names};
use super::parts::{DeviationCause, FaultCause, ReplicaRecord, ns, records, shown, silent};
use super::rows::{TARGET, events};
use super::words::{
    charged, deviation, joined, list, ms, nodes, noted, or_none, quorum, ranks, refuses,
    state_remedy, unfit, why, why_excluded,
};
use crate::status::{ChargeStatus, SLOW_REMEDY};

events! {
    (event, known)

    event TokenLost { ring: RingId, silent_ns: u64 = ns(silent), suspect: Option<Member> }
    from Event::Ring(Ring::TokenLost { ring, silent, suspect }),
    log warn(%ring, ?silent, suspect = suspect.map(|member| member.node.0), "token lost"),

    event Gathering { proposed: Vec<Member>, failed: Vec<Member> }
    from Event::Ring(Ring::Gathering { proposed, failed }),

    event Unreachable { member: Member } from Event::Ring(Ring::Unreachable(member)),
    log warn(node = %member.node, "the node's process has ended"),

    event Silent { member: Member } from Event::Ring(Ring::Silent(member)),
    log warn(node = %member.node, "the node does not answer"),

    event HeldUp { span_ns: u64 = ns(span) } from Event::Ring(Ring::HeldUp(span)),
    log warn(?span, "this node was held up: it ignores its own suspicion"),

    event TooSlow {
        member: Member,
        by: Member,
        charge: Option<ChargeStatus> = charge.map(Into::into),
    } from Event::Ring(Ring::TooSlow { member, by, charge }),
    log error if { known.is_me(member) } (
        "this node is excluded: it could not keep up; {}. It rejoins by itself. {SLOW_REMEDY}",
        charged(by, *charge)
    ),
    log warn(
        "{} is excluded: it could not keep up; {}. {SLOW_REMEDY}",
        member.node,
        charged(by, *charge)
    ),

    event HeldOff { member: Member, span_ns: u64 = ns(span) }
    from Event::Ring(Ring::HeldOff { member, span }),
    log warn(
        node = member.node.0,
        ?span,
        "the node was lost repeatedly, or was too slow: it may rejoin after this span"
    ),

    event Unfit { member: Member, speaks: Speaks, ours: Speaks, why: Unfit }
    from Event::Ring(Ring::Unfit { member, speaks, ours, why }),
    log error("{}", unfit(member.node, *speaks, *ours, *why)),
    says("{}", unfit(member.node, *speaks, *ours, *why)),

    event Installed { ring: RingId, took_ns: u64 = ns(took), recovered: u64 }
    from Event::Ring(Ring::Installed { ring, took, recovered }),
    log info(?took, recovered, "ring installed"),
    says("ring {ring} installed within {}", ms(*took_ns)),

    event Retransmitted { datagrams: u64 } from Event::Ring(Ring::Retransmitted(datagrams)),

    event LinkLost { peer: NodeId, link: usize }
    from Event::Ring(Ring::LinkLost { node: peer, link }),
    log warn(node = %peer, link, "link lost: traffic to the node uses another link"),

    event LinkBack { peer: NodeId, link: usize }
    from Event::Ring(Ring::LinkBack { node: peer, link }),
    log info(node = %peer, link, "link restored"),

    event Malformed { reason: String = reason.to_string() } from Event::Malformed(reason),

    event Configuration { ring: RingId, members: Vec<Member> },
    log info(
        %ring,
        members = %list(&nodes(members)),
        missing = %list(&known.absent()),
        "configuration installed"
    ),
    says("configuration {ring}: {}", joined(&nodes(members), " ")),

    event Quorum { ring: RingId, quorate: bool, epoch: u64 },
    log info if { *quorate } (epoch, "the configuration has the quorum"),
    log warn("{}", known.no_quorum()),
    says("{}", quorum(*quorate, *epoch)),

    event View {
        group: String,
        view: ViewNumber,
        replicas: Vec<ReplicaRecord> = records(replicas),
        primary: Option<Member>,
    } from Event::View { name: group, view, replicas, primary, .. },
    log info(
        group,
        %view,
        primary = %or_none(primary),
        replicas = %ranks(&records(replicas), ","),
        "view installed"
    ),
    says("{group}: {view}, primary {}, replicas {}", or_none(primary), ranks(replicas, " ")),

    event JoinRefused { group: String, options: GroupOptions }
    from Event::JoinRefused { name: group, options },
    log warn(group, ?options, "the group has other options: correct the options at this node"),

    event TransferStarted { group: GroupId, to: Member },
    says("{}: state transfer to {} started", known.name(group), to.node),

    event TransferFailed { group: GroupId, reason: String },
    log error(group = known.name(group), reason, "the state transfer failed"),
    says("{}: the state transfer failed: {reason}", known.name(group)),

    event StateNote { group: String, member: Member, about: About, text: Option<String> }
    from Event::StateNote { group: _, name: group, member, about, text },
    log info if { text.is_none() || !about.is_trouble() } (
        group,
        of = %member.node,
        "{}",
        noted(*about, text.as_deref())
    ),
    log error(
        group,
        of = %member.node,
        "{}: {}",
        noted(*about, text.as_deref()),
        state_remedy(*about)
    ),
    says("{group}: {} {}", member.node, noted(*about, text.as_deref())),

    event Discarded { group: String, calls: u64 }
    from Event::Discarded { group: _, name: group, calls },
    log error(
        group,
        calls,
        "two histories met, and the other one stayed: acknowledged calls of this node's replica are gone: {}",
        state_remedy(About::Discarded)
    ),
    says("{group}: {calls} acknowledged calls are gone, since another history stayed"),

    event Merged { group: String, calls: u64 }
    from Event::Merged { group: _, name: group, calls },
    log warn(
        group,
        calls,
        "two histories met: the service has merged the state of the one that was given up"
    ),
    says("{group}: {calls} calls of a history that was given up are merged"),

    event WentBack { group: String, member: Member }
    from Event::WentBack { group: _, name: group, member },
    log error(
        group,
        from = %member.node,
        "the group's replicas with its last state are gone: it goes on from an older one, and answered \
         calls may be lost. Compare it with its callers' records, or put a save back with `steadfast restore`"
    ),
    says(
        "{group}: goes on from the state of {}; later calls, answered ones among them, may be lost",
        member.node
    ),

    event UpdateFailed { group: GroupId, reason: String },
    log error(
        group = known.name(group),
        reason,
        "an update of a passive group could not be made or applied"
    ),

    event Promoted {
        group: String,
        requests: u64,
        restore_ns: u64 = ns(restore),
        replay_ns: u64 = ns(replay),
    } from Event::Promoted { group: _, name: group, requests, restore, replay },
    log info(
        group,
        requests,
        ?restore,
        ?replay,
        "this node's replica is primary: it has restored its checkpoint and executed its log"
    ),
    says(
        "{group}: this node's replica is primary; it restored its checkpoint in {}, and executed {requests} logged requests in {}",
        ms(*restore_ns),
        ms(*replay_ns)
    ),

    event PromotionFailed { group: GroupId, reason: String },
    log error(group = known.name(group), reason, "this node's replica is primary, but cannot restore its checkpoint"),

    event Checkpointed { group: GroupId, number: u64, bytes: usize },

    event CheckpointFailed { group: GroupId, reason: String },
    log error(group = known.name(group), reason, "the checkpoint failed: the log grows"),

    event Transferred { group: GroupId, bytes: usize },
    log info(group = known.name(group), bytes, "this node's replica has the state"),
    says("{}: this node's replica has the state, {bytes} bytes", known.name(group)),

    event Suspected {
        member: Member,
        ring: RingId,
        cause: FaultCause = (*cause).into(),
        silent_ns: Option<u64> = silent(Some(*cause)),
    } from Event::Suspected { member, ring, cause },
    says("{} is suspected: {}", member.node, why(*cause, *silent_ns)),

    event Excluded {
        member: Member,
        ring: RingId,
        cause: Option<FaultCause> = cause.map(Into::into),
        silent_ns: Option<u64> = silent(*cause),
        suspected_ns: Option<u64> = suspected.as_ref().map(ns),
    } from Event::Excluded { member, ring, cause, suspected },
    log warn(node = %member.node, ?cause, ?suspected, "the node is excluded from the ring"),
    says(
        "{} is excluded: {}{}; {ring}",
        member.node,
        why_excluded(*cause, *silent_ns),
        suspected_ns.map_or(String::new(), |span| format!(", suspected {} earlier", ms(span)))
    ),

    event Restarted { member: Member, before: Incarnation, ring: RingId },
    log info(node = %member.node, "the node has restarted"),
    says("{} has restarted", member.node),

    event Resumed { group: String, view: ViewNumber, after_ns: u64 = ns(after) }
    from Event::Resumed { name: group, view, after, .. },
    log info(group, %view, ?after, "the group answers calls again"),
    says(
        "{group} answers again ({view}), {} after the last sign of life of its old primary",
        ms(*after_ns)
    ),

    event Deviated {
        group: String,
        member: Member,
        position: u64,
        cause: DeviationCause = (*cause).into(),
    } from Event::Deviated { name: group, member, position, cause, .. },
    log warn(
        group,
        of = %member.node,
        vote = position,
        ?cause,
        "a voting group removes a deviating replica: it rejoins and receives the state again"
    ),
    says("{group}: the replica at {} is replaced: {}", member.node, deviation(cause, *position)),

    event Hung { group: String, member: Member, misses: u32, ran_ns: u64 = ns(ran), alone: bool }
    from Event::Hung { name: group, member, misses, ran, alone, .. },
    log error if { *alone } (
        group,
        misses,
        ?ran,
        "the service of this node's replica is hung; the replica stays: no other replica has the state"
    ),
    log error(
        group,
        misses,
        ?ran,
        "the service of this node's replica is hung; the replica leaves its group, and rejoins with a new service"
    ),
    says(
        "{group}: the service at {} is hung: it missed {misses} deadlines in a row, and its last call has run for {}; {}",
        member.node,
        ms(*ran_ns),
        match alone {
            true => "its replica stays: no other replica has the state",
            false => "its replica leaves the group, and rejoins with a new service",
        }
    ),

    event Demoted { group: String, member: Member, was_primary: bool, asked: ViewNumber }
    from Event::Demoted { name: group, member, was_primary, asked, .. },
    log warn(
        group,
        of = %member.node,
        was_primary,
        "a replica was removed from its group: its service is hung"
    ),
    says(
        "{group}: the {} at {} was removed: its service is hung",
        if *was_primary { "primary" } else { "replica" },
        member.node
    ),

    event Split { group: String, position: u64, answers: usize }
    from Event::Split { name: group, position, answers, .. },
    log error(
        group,
        vote = position,
        answers,
        "no majority of the replicas agrees on the outcome of a call, or on a nested call"
    ),
    says(
        "{group}: vote {position} has no majority: the replicas sent {answers} different digests"
    ),

    event Missed { events: u64 } from Event::Missed(events),
    says("{events} events were dropped: the reader was too slow"),

    event Moved {
        group: String,
        ring: RingId,
        sequence: u64,
        from: Member,
        to: Member,
        asked: ViewNumber,
        view: ViewNumber,
    } from Event::Moved { name: group, ring, sequence, from, to, asked, view, .. },
    log info(group, %view, from = %from.node, to = %to.node, "the primary has moved"),
    says("{group}: the primary moved from {} to {} ({view})", from.node, to.node),

    event Restyled {
        group: String,
        ring: RingId,
        sequence: u64,
        from: Style,
        to: Style,
        asked: ViewNumber,
        view: ViewNumber,
    } from Event::Restyled { name: group, ring, sequence, from, to, asked, view, .. },
    log info(group, %view, %from, %to, "the group's style has changed"),
    says("{group}: the style changed from {from} to {to} ({view})"),

    event Deposited { group: String, holder: Member, replaced: bool, view: ViewNumber }
    from Event::Deposited { name: group, holder, replaced, view, .. },
    log info(
        group,
        %view,
        of = %holder.node,
        replaced,
        "the group begins with a state from a file"
    ),
    says("{group}: begins with a state from a file at {} ({view})", holder.node),

    event Ended { group: String, view: ViewNumber } from Event::Ended { name: group, view, .. },
    log info(group, %view, "the last replica has left the group"),
    says("{group}: ended, its last replica has left ({view})"),

    event Ranked {
        group: String,
        ring: RingId,
        sequence: u64,
        order: Vec<Member>,
        asked: ViewNumber,
        view: ViewNumber,
    } from Event::Ranked { name: group, ring, sequence, order, asked, view, .. },
    log info(group, %view, order = %list(&nodes(order)), "clients try the backups in this order"),
    says("{group}: clients try the backups in the order {} ({view})", joined(&nodes(order), " ")),

    event Overloaded { member: Member, used: Share, capacity: Share },
    log warn(
        node = %member.node,
        used = used.to_string(),
        capacity = capacity.to_string(),
        "the host is overloaded"
    ),
    says("{}: the host is overloaded: {used} of {capacity} used", member.node),

    event Relieved { member: Member, used: Share, capacity: Share },
    log info(
        node = %member.node,
        used = used.to_string(),
        capacity = capacity.to_string(),
        "the host is no longer overloaded"
    ),
    says("{}: the host is no longer overloaded: {used} of {capacity} used", member.node),

    event Deployed { group: String, replicas: u32 }
    from Event::Deployment { group, news: DeploymentNews::Deployed { replicas } },
    log info(group, replicas, "deployed"),
    says("{group}: deployed, {replicas} replicas wanted"),

    event Placed { group: String, on: Vec<NodeId> }
    from Event::Deployment { group, news: DeploymentNews::Placed { on } },
    log info(group, on = joined(on, ","), "replicas are placed on these nodes"),
    says("{group}: replicas are placed on {}", joined(on, " ")),

    event Upgrading { group: String, at: NodeId, program: String }
    from Event::Deployment { group, news: DeploymentNews::Changing { node: at, program } },
    log info(group, node = %at, program, "the node's replica changes to another program"),
    says("{group}: the replica at {at} changes to `{program}`"),

    event Upgraded { group: String, program: String }
    from Event::Deployment { group, news: DeploymentNews::Changed { program } },
    log info(group, program, "all replicas run the new program"),
    says("{group}: all replicas run `{program}`"),

    event TakenBack { group: String, at: NodeId, why: String }
    from Event::Deployment { group, news: DeploymentNews::TakenBack { node: at, why } },
    log warn(group, node = %at, why, "the upgrade is rolled back"),
    says("{group}: the upgrade is rolled back: at {at} {why}"),

    event Failing { group: String, at: NodeId }
    from Event::Deployment { group, news: DeploymentNews::Failing { node: at } },
    log warn(group, node = %at, "the program ends again and again on the node: the cluster tries other nodes"),
    says("{group}: the program ends again and again at {at}: the cluster tries other nodes"),

    event Withdrawn { group: String }
    from Event::Deployment { group, news: DeploymentNews::Withdrawn },
    log info(group, "withdrawn: all replicas end"),
    says("{group}: withdrawn, all replicas end"),

    event DrainBegan { host: NodeId } from Event::Drained { node: host, begins: true },
    log info(node = %host, "the node is being drained"),
    says("{host} is being drained"),

    event DrainEnded { host: NodeId } from Event::Drained { node: host, begins: false },
    log info(node = %host, "the node may have replicas again"),
    says("{host} may have replicas again"),

    event Shedding { host: NodeId, level: u8, refused: u64 }
    from Event::Shedding { node: host, level, refused },
    log info if { *level == 0 } (node = %host, refused, "the host accepts calls of every priority again"),
    log warn(
        node = %host,
        level,
        "the host is overloaded: it refuses calls of a priority below this level"
    ),
    says("{host}: the host {}", refuses(*level, *refused)),

    event Executed { group: GroupId, client: ClientId, number: u64, position: u64 },
    log trace(),

    event Poisoned {
        group: GroupId,
        number: u64 = poison.number,
        client: ClientId = poison.client,
        call: u64 = poison.call,
        method: MethodId = poison.method,
        nodes: Vec<NodeId> = poison.nodes.clone(),
    } from Event::Poisoned { group, poison },
    log error(
        group = known.name(group),
        number = poison.number,
        client = %poison.client,
        call = poison.call,
        method = %poison.method,
        on = %list(&poison.nodes),
        "a poisonous call killed services on these nodes: every replica refuses it"
    ),
    says(
        "{}: request {number} killed the services at {} (call {call} of {client}, method {method}): every replica refuses it",
        known.name(group),
        joined(nodes, " ")
    ),

    event Copy { group: GroupId, client: ClientId, number: u64 },
    log trace(),

    event NestedEnded { group: GroupId, by: Member },
    log trace(),

    event NestedCopy { group: GroupId },
    log trace(),

    event Replied { group: GroupId, client: ClientId, number: u64 },
    log trace(),

    event BenchBegan { by: Member, senders: Vec<NodeId>, size: u32 },
    log warn(by = %by.node, senders = %list(senders), size, "a benchmark loads the ring"),

    event BenchEnded { by: Member, whole: bool },
    log info(by = %by.node, whole, "the benchmark is over"),

    event KeyOffered { key: u8, fingerprint: String = shown(*fingerprint) }
    from Event::KeyOffered(KeyName { number: key, fingerprint }),
    log info(key, "a new cluster key is offered: every node stores it"),

    event KeySwitched { key: u8, fingerprint: String = shown(*fingerprint) }
    from Event::KeySwitched(KeyName { number: key, fingerprint }),
    log info(key, "the new cluster key now seals all datagrams"),

    event KeyRetired { key: u8, fingerprint: String = shown(*fingerprint) }
    from Event::KeyRetired(KeyName { number: key, fingerprint }),
    log info(key, "the old cluster key is retired: only this key remains"),

    event Level { level: u8 } from Event::Level(level),
    log warn("rules of level {level} are in force: there is no way back to the program before"),
    says("rules of level {level} are in force"),

    event NodeComing { peer: NodeId }
    from Event::Roster { news: RosterNews::Coming(peer), .. },
    log info("{peer} is to come"),
    says("{peer} is to come: it counts once most nodes and it have that on their disks"),

    event NodeAdmitted { peer: NodeId }
    from Event::Roster { news: RosterNews::Admitted(peer), .. },
    log info("{peer} is one of the cluster's nodes"),
    says("{peer} is one of the cluster's nodes"),

    event NodeGoing { peer: NodeId } from Event::Roster { news: RosterNews::Going(peer), .. },
    log info("{peer} is to go"),
    says("{peer} is to go: it counts until most nodes have that on their disks"),

    event NodeRetired { peer: NodeId }
    from Event::Roster { news: RosterNews::Retired(peer), .. },
    log warn("{peer} is none of the cluster's nodes any more"),
    says("{peer} is none of the cluster's nodes any more"),

    event NodeWithdrawn { peer: NodeId }
    from Event::Roster { news: RosterNews::Withdrawn(peer), .. },
    log info("the change about {peer} was given up"),
    says("the change about {peer} was given up"),

    event Dismissed from Event::Roster { news: RosterNews::Dismissed, .. },
    log error("this node was retired: it ends; to join anew, give it another number and an empty data_dir"),
    says("this node was retired, and ends"),

    event KeyAborted { key: u8, fingerprint: String = shown(*fingerprint) }
    from Event::KeyAborted(KeyName { number: key, fingerprint }),
    log warn(key, "the change of the cluster key was aborted"),

    event StorageFull { reason: String } from Event::Storage(news @ StorageNews::Full(reason)),
    log error("{news}"),

    event StorageRoom from Event::Storage(news @ StorageNews::Room),
    log info("{news}"),

    event StorageFailed { reason: String } from Event::Storage(news @ StorageNews::Failed(reason)),
    log error("{news}"),

    event ProgramStarted { group: String, pid: u32 }
    from Event::Program { group, news: ProgramNews::Started { pid } },
    log info(group, pid, "program started"),

    event ProgramAttached { group: String, pid: u32 }
    from Event::Program { group, news: ProgramNews::Attached { pid } },
    log info(group, pid, "program attached"),

    event ProgramEnded { group: String, pid: u32, how: String }
    from Event::Program { group, news: ProgramNews::Ended { pid, how } },
    log warn(group, pid, how, "program ended"),

    event ProgramCrashLoop { group: String, ends: u32, wait_ns: u64 = ns(wait) }
    from Event::Program { group, news: ProgramNews::CrashLoop { ends, wait } },
    log error(
        group,
        ends,
        ?wait,
        "the program ends again and again: each restart waits longer; the program's last lines above show why"
    ),

    event ProgramRecovered { group: String }
    from Event::Program { group, news: ProgramNews::Recovered },
    log info(group, "the program serves again"),

    event ProgramStopped { group: String }
    from Event::Program { group, news: ProgramNews::Stopped },
    log info(group, "program stopped"),

    event ReserveInForce { path: String, by: String }
    from Event::Reserve { path, news: ReserveNews::InForce { by } },
    log info(path, by, "the reserve is in force"),
    says("{path}: reserved, by {by}"),

    event ReserveDegraded { path: String, why: String }
    from Event::Reserve { path, news: ReserveNews::Degraded { why } },
    log warn(path, why, "degraded: the reserve is not in force as a whole"),
    says("{path}: degraded: {why}"),

    event ReserveOverran { path: String, overruns: u64, runtime_ns: u64 = ns(runtime) }
    from Event::Reserve { path, news: ReserveNews::Overran { overruns, runtime } },
    log warn(path, overruns, ?runtime, "the reserved time was used up: more is asked for"),
    says("{path}: used up in {overruns} periods: {} us are asked for", runtime_ns / 1_000),

    event ReserveChanged { path: String, runtime_ns: u64 = ns(runtime) }
    from Event::Reserve { path, news: ReserveNews::Changed { runtime } },
    log info(path, ?runtime, "the use of reserved time has drifted: another is asked for"),
    says("{path}: {} us are asked for, as its use has drifted", runtime_ns / 1_000),

    event ReserveRefused { path: String, why: String }
    from Event::Reserve { path, news: ReserveNews::Refused { why } },
    log warn(path, why, "the host refuses the reserve"),
    says("{path}: refused: {why}"),

    event Left from Event::Left | Event::Ring(Ring::Left),
    log debug if { matches!(event, Event::Ring(_)) } (),
    log info("left the ring"),
}
