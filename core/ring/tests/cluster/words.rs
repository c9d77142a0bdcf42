//! Datagrams in words, for golden traces.

use steadfast_ring::Level;
use wire::Member;
use wire::ring::{Charge, CommitMember, CommitStep, Message};

pub fn kind(message: &Message) -> &'static str {
    match message {
        Message::Data(_) => "data",
        Message::Token(_) => "token",
        Message::Ack(_) => "ack",
        Message::Want(_) => "want",
        Message::Join(_) => "join",
        Message::Commit(_) => "commit",
        Message::Beacon(_) => "beacon",
        Message::Stable(_) => "stable",
        Message::Pulse(_) => "pulse",
        Message::Stored(_) => "stored",
        Message::Confirm(_) => "confirm",
        Message::Confirmed(_) => "confirmed",
        Message::RosterPart(_) => "roster",
    }
}

pub fn describe(message: &Message) -> String {
    let nodes = |members: &[Member]| {
        members.iter().map(|m| m.node.to_string()).collect::<Vec<_>>().join(",")
    };
    match message {
        Message::Data(data) => {
            let ack = if data.ack_wanted { " ack!" } else { "" };
            let complete = if data.complete { "" } else { " incomplete" };
            let origin = data
                .origin
                .map(|o| format!(" was {}/{} of {}", o.ring, o.sequence, o.sender.node))
                .unwrap_or_default();
            let safe = if data.level() == Level::Safe { " safe" } else { "" };
            format!(
                "data #{}{safe} hop={} stable={}{ack}{complete}{origin}",
                data.sequence, data.hop, data.stable
            )
        }
        Message::Token(token) => {
            let all = u64::MAX >> (64 - token.arus.len());
            let following = match token.following {
                0 => String::new(),
                n => format!(" following={n}"),
            };
            let recovery = if token.received == all {
                String::new()
            } else {
                format!(" done={:b} received={:b}", token.done, token.received)
            };
            format!(
                "token hop={} #{} arus={:?} wants={:b} home={} missing={:?}{following}{recovery}",
                token.hop, token.sequence, token.arus, token.wants, token.home, token.missing
            )
        }
        Message::Ack(ack) => {
            format!("ack hop={} aru={} missing={:?}", ack.hop, ack.aru, ack.missing)
        }
        Message::Want(_) => "want".to_owned(),
        Message::Join(join) => {
            let failed: Vec<_> = join.those(join.failed).collect();
            let slow: Vec<_> = join.those(join.slow).collect();
            let slow =
                if slow.is_empty() { String::new() } else { format!(" slow [{}]", nodes(&slow)) };
            let node = |place: u8| join.proposed[usize::from(place)].node;
            let charge = |charge: &Charge| {
                let Charge { member, by, stopped_us, within_us, limit_us, share } = *charge;
                let (member, by) = (node(member), node(by));
                format!(
                    " ({member} stopped {by} {stopped_us} of {within_us} us, granted {limit_us} us and {share} %)"
                )
            };
            let charges: String = join.charges.iter().map(charge).collect();
            format!("join [{}] failed [{}]{slow}{charges}", nodes(&join.proposed), nodes(&failed))
        }
        Message::Commit(commit) => {
            let entry = |e: &CommitMember| {
                let CommitMember { member, old_ring, aru, high, stable, .. } = e;
                format!("{} {old_ring} {stable}/{aru}..{high}", member.node)
            };
            let step = match &commit.step {
                CommitStep::Call(members) => format!("call [{}]", nodes(members)),
                CommitStep::Entry(mine) => format!("entry [{}]", entry(mine)),
                CommitStep::Entries(all) => {
                    let all: Vec<_> = all.iter().map(entry).collect();
                    format!("entries [{}]", all.join("; "))
                }
            };
            format!("commit {} {step}", commit.ring)
        }
        Message::Beacon(beacon) => format!("beacon {}", beacon.ring),
        Message::Stable(stable) => format!("stable #{} hop={}", stable.stable, stable.hop),
        Message::Confirm(question) => format!("confirm {}", question.round),
        Message::RosterPart(part) => {
            format!("roster of {} {}/{}", part.stamp.epoch, part.part, part.parts)
        }
        Message::Confirmed(answer) => format!("confirmed {} aru={}", answer.round, answer.aru),
        Message::Pulse(pulse) => {
            let wire::ring::Pulse { number, hop, home, stable, sequence, next, .. } = pulse;
            format!("pulse {number} of n{home} hop={hop} #{sequence} stable={stable} next={next}us")
        }
        Message::Stored(stored) => {
            let question = if stored.question { "?" } else { "" };
            format!("stored #{}{question}", stored.stored)
        }
    }
}
