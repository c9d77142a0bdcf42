//! What there is to say of a deployment's places: to people, who ask why it is where it is, and where it would go.

use alloc::string::String;
use alloc::vec::Vec;

use wire::{Duration, NodeId, Time};

use super::Placer;
use super::policy::{self, Cost};
use super::site::Site;
use crate::book::{Book, Command, Deployment, Placed, Refusal};
use crate::bug::Planted;
use crate::picture::Picture;

/// A node, as a place for a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The node.
    pub node: NodeId,
    /// It is to have a replica.
    pub on: bool,
    /// It has one, with the state.
    pub synced: bool,
    /// Why it is not to have one, or not to keep it.
    pub objection: Option<String>,
    /// What it costs there, by the policy, beside the others that are placed.
    pub cost: Option<Cost>,
}

/// All nodes that ever told of themselves, in order of id. `wall` is the clock of ordered time.
pub fn survey(wall: Time, picture: &Picture, book: &Book, placed: &Placed) -> Vec<Seat> {
    let site = Site { picture, book, wall, planted: Planted::default() };
    let deployment = &placed.deployment;
    let policy = policy::distribution(deployment);
    let seat = |node: NodeId| {
        let others = placed.on.iter().filter(|other| **other != node);
        let beside: Vec<_> = others.filter_map(|other| site.host(*other, deployment)).collect();
        let on = placed.on.contains(&node);
        let room = on || book.has_room(deployment, node);
        let objection = site.objection(placed, node);
        let full = || String::from("what is placed there leaves too little of its processors");
        Seat {
            node,
            on,
            synced: site.is_synced(deployment, node),
            objection: objection.or_else(|| (!room).then(full)),
            cost: site.host(node, deployment).and_then(|host| policy.cost(&host, &beside)),
        }
    };
    book.nodes().map(|(node, _)| seat(node)).collect()
}

/// Where replicas would be if this was deployed now, and what each node is as a place.
///
/// # Errors
/// It would be refused.
pub fn preview(
    wall: Time,
    picture: &Picture,
    book: &Book,
    deployment: Deployment,
) -> Result<Vec<Seat>, Refusal> {
    let (mut book, group) = (book.clone(), deployment.group.clone());
    book.apply(wall, Command::Deploy(deployment))?;
    let mut now = Time::ZERO;
    for _ in 0..picture.nodes.len() {
        now += Duration::from_secs(3_600);
        for (_, command) in Placer::default().look(now, wall, picture, &book) {
            if matches!(&command, Command::Place { group: of, .. } if *of == group) {
                book.apply(wall, command)?;
            }
        }
    }
    Ok(book.of(&group).map(|placed| survey(wall, picture, &book, placed)).unwrap_or_default())
}
