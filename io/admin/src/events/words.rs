//! Parts of sentences and of log lines.

use wire::ordered::About;
use wire::versions::Unfit;
use wire::{Member, NodeId, Speaks};

use super::parts::{DeviationCause, FaultCause, ReplicaRecord};
use crate::status::{ChargeStatus, owed};

pub(super) fn why(cause: FaultCause, silent_ns: Option<u64>) -> String {
    match (cause, silent_ns) {
        (FaultCause::Silence, Some(span)) => format!("no sign of the token for {}", ms(span)),
        (FaultCause::Silence, None) => "no sign of the token".to_owned(),
        (FaultCause::Gone, _) => "its host reports that its process has ended".to_owned(),
        (FaultCause::NoAnswer, _) => "it did not answer in time".to_owned(),
        (FaultCause::TooSlow, _) => "it did not keep up".to_owned(),
    }
}

pub(super) fn why_excluded(cause: Option<FaultCause>, silent_ns: Option<u64>) -> String {
    cause.map_or("it left, or another node detected its failure".to_owned(), |cause| {
        why(cause, silent_ns)
    })
}

pub(super) fn deviation(cause: &DeviationCause, position: u64) -> String {
    match cause {
        DeviationCause::Outcome { voters, .. } => format!(
            "its outcome or nested call differs from the majority's among {voters} replicas (vote {position})"
        ),
        DeviationCause::Silent => format!("its vote {position} is missing"),
        DeviationCause::Behind => format!("its votes are too far behind, at vote {position}"),
    }
}

pub(super) fn quorum(quorate: bool, epoch: u64) -> String {
    match quorate {
        true => format!("quorum (epoch {epoch})"),
        false => "no quorum: nothing is answered".to_owned(),
    }
}

pub(super) fn refuses(level: u8, refused: u64) -> String {
    match level {
        0 => format!("accepts calls of every priority again ({refused} refused since its start)"),
        level => format!("refuses calls of priority below {level}"),
    }
}

/// The ring's accusation of an excluded node: how long it stopped `by`'s sending.
pub(super) fn charged(by: &Member, charge: Option<ring::Charge>) -> String {
    owed(by.node, charge.map(ChargeStatus::from).as_ref())
}

/// Why two nodes cannot be in one ring, with the remedy.
pub fn unfit(node: NodeId, speaks: Speaks, ours: Speaks, why: Unfit) -> String {
    match why {
        Unfit::Ring if speaks.ring.greatest < ours.ring.least => format!(
            "{node} is not taken in, its program is too old: it speaks version {} of the ring, \
             this node {}; upgrade {node}",
            speaks.ring, ours.ring
        ),
        Unfit::Ring => format!(
            "{node} does not take this node in, whose program is too old: it speaks version {} \
             of the ring, this node {}; upgrade this node",
            speaks.ring, ours.ring
        ),
        Unfit::TheirRules => format!(
            "{node} is not taken in: the cluster has rules of level {}, its program knows {}; \
             have it run the cluster's program",
            ours.level.max(speaks.level),
            speaks.rules
        ),
        Unfit::OurRules => format!(
            "{node} does not take this node in: the cluster has rules of level {}, this node's \
             program knows {}; have this node run the cluster's program",
            ours.level.max(speaks.level),
            ours.rules
        ),
        Unfit::With(other) => format!(
            "{node} is not taken in: it has no version of the ring or of the rules in common with \
             {other}; upgrade the older of the two"
        ),
    }
}

pub(super) fn ms(nanoseconds: u64) -> String {
    format!("{:.1} ms", nanoseconds as f64 / 1e6)
}

pub(super) fn nodes(members: &[Member]) -> Vec<NodeId> {
    members.iter().map(|member| member.node).collect()
}

pub(super) fn joined(nodes: &[NodeId], separator: &str) -> String {
    let names: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
    names.join(separator)
}

/// The nodes, separated by commas, or `none`.
pub(super) fn list(nodes: &[NodeId]) -> String {
    if nodes.is_empty() { "none".to_owned() } else { joined(nodes, ",") }
}

pub(super) fn or_none(member: &Option<Member>) -> String {
    member.map_or("none".to_owned(), |member| member.node.to_string())
}

/// The replicas as `steadfast status` shows them: in order of rank, unsynced ones in brackets.
pub(super) fn ranks(replicas: &[ReplicaRecord], separator: &str) -> String {
    let rank = |replica: &ReplicaRecord| match replica.synced {
        true => replica.member.node.to_string(),
        false => format!("({})", replica.member.node),
    };
    let ranks: Vec<String> = replicas.iter().map(rank).collect();
    ranks.join(separator)
}

/// A thing that a replica cannot do with its group's state, or can again.
pub(super) fn noted(about: About, text: Option<&str>) -> String {
    match (about, text) {
        (_, Some(text)) => format!("{about}: {text}"),
        (About::Give, None) => "can give the state again".into(),
        (About::Read, None) => "has the state, or waits for it no more".into(),
        (About::ReadBack, None) => "can read its own state back again".into(),
        (About::Dropped, None) => "runs no program any more that dropped fields".into(),
        (About::Apart, None) => "has the same state as the others again".into(),
        (About::Discarded, None) => "has begun anew since a history was given up".into(),
    }
}

/// The remedy.
pub(super) fn state_remedy(about: About) -> &'static str {
    match about {
        About::Apart => {
            "make the service deterministic, with the clock and the random numbers of its context; a replica that begins anew gets the others' state"
        }
        About::Discarded => {
            "have their callers make them again; with `quorum = \"majority\"` nothing is given up, and a service with `merge` takes such calls in"
        }
        About::Read => "deploy a program that reads the state, or the former one",
        _ => {
            "take it out of the state by a call, or deploy a program that writes it; keep the node running"
        }
    }
}
