//! Events as lines of the log: one fact a line, nodes by their short names.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::{DeploymentNews, Event, ProgramNews, StorageNews};
use wire::limits::MAX_GROUPS;
use wire::ordered::Poison;
use wire::{GroupId, Member, NodeId};

use admin::status::{ChargeStatus, SLOW_REMEDY, absent, no_quorum, owed};

/// Writes the log, and remembers what it takes to write it for people.
#[derive(Debug, Default)]
pub(super) struct Log {
    me: Option<NodeId>,
    configured: Vec<NodeId>,
    /// Those of the configuration that was installed last.
    members: Vec<Member>,
    /// Names of the groups whose views were seen.
    names: BTreeMap<GroupId, String>,
}

impl Log {
    pub fn new(me: NodeId, configured: Vec<NodeId>) -> Self {
        Log { me: Some(me), configured, ..Log::default() }
    }

    pub fn write(&mut self, event: &Event) {
        use ring::Event as Ring;
        match event {
            Event::Configuration { ring, members } => {
                self.members.clone_from(members);
                let missing = list(absent(&self.configured, members));
                let members = list(members.iter().map(|member| member.node));
                tracing::info!(%ring, %members, %missing, "configuration installed");
            }
            Event::Quorum { quorate: true, epoch, .. } => {
                tracing::info!(epoch, "the configuration has the quorum");
            }
            Event::Quorum { quorate: false, .. } => {
                tracing::warn!("{}", no_quorum(&self.configured, &self.members));
            }
            Event::View { group, name, view, replicas, primary, .. } => {
                if self.names.len() >= MAX_GROUPS {
                    // Groups come and go; names of those that are gone are worth nothing.
                    self.names.clear();
                }
                self.names.insert(*group, name.clone());
                let primary = primary.map_or("none".to_owned(), |it| it.node.to_string());
                let replicas = ranks(replicas);
                tracing::info!(group = name, %view, %primary, %replicas, "view installed");
            }
            Event::JoinRefused { name, options } => {
                tracing::warn!(
                    group = name,
                    ?options,
                    "the group has other options: correct this node's"
                );
            }
            Event::TransferFailed { group, reason } => {
                let group = self.name(*group);
                tracing::error!(group, reason, "a replica cannot be given the state");
            }
            Event::UpdateFailed { group, reason } => {
                let group = self.name(*group);
                tracing::error!(
                    group,
                    reason,
                    "what a passive group's calls have changed is lost here"
                );
            }
            Event::Promoted { name, requests, restore, replay, .. } => {
                tracing::info!(
                    group = name,
                    requests,
                    ?restore,
                    ?replay,
                    "the replica here is primary: it has its checkpoint, and has executed its log"
                );
            }
            Event::PromotionFailed { group, reason } => {
                let group = self.name(*group);
                tracing::error!(group, reason, "the replica here is primary and cannot begin");
            }
            Event::CheckpointFailed { group, reason } => {
                let group = self.name(*group);
                tracing::error!(group, reason, "no checkpoint can be taken: the log grows");
            }
            Event::Transferred { group, bytes } => {
                let group = self.name(*group);
                tracing::info!(group, bytes, "the replica has the state");
            }
            Event::Excluded { member, cause, suspected, .. } => {
                tracing::warn!(node = %member.node, ?cause, ?suspected, "excluded from the ring");
            }
            Event::Restarted { member, .. } => {
                tracing::info!(node = %member.node, "the node is back in a new life");
            }
            Event::Resumed { name, view, after, .. } => {
                tracing::info!(group = name, %view, ?after, "the group is answered for again");
            }
            Event::Deviated { name, member, position, cause, .. } => {
                let member = member.node;
                let said =
                    "a replica of a voting group is taken out, and is to be given the state anew";
                tracing::warn!(group = name, of = %member, vote = position, ?cause, "{said}");
            }
            Event::Hung { name, misses, ran, alone, .. } => {
                let said = match alone {
                    false => {
                        "the service of this node's replica is hung: the replica leaves its group, and comes anew"
                    }
                    true => {
                        "the service of this node's replica is hung, and stays: no other replica has the state"
                    }
                };
                tracing::error!(group = name, misses, ?ran, "{said}");
            }
            Event::Demoted { name, member, was_primary, .. } => {
                let said = "a replica is out of its group: its service is hung";
                tracing::warn!(group = name, of = %member.node, was_primary, "{said}");
            }
            Event::Split { name, position, answers, .. } => {
                let said = "no majority of the replicas has the same outcome of a call, or asks the same of another group";
                tracing::error!(group = name, vote = position, answers, "{said}");
            }
            Event::Poisoned { group, poison } => {
                let (group, on) = (self.name(*group), list(poison.nodes.iter().copied()));
                let Poison { number, client, call, method, .. } = &**poison;
                tracing::error!(
                    group,
                    number,
                    %client,
                    call,
                    %method,
                    %on,
                    "services died of a call: nobody executes it any more, and its caller is refused"
                );
            }
            Event::Moved { name, from, to, view, .. } => {
                tracing::info!(group = name, %view, from = %from.node, to = %to.node, "the primary has moved");
            }
            Event::Restyled { name, from, to, view, .. } => {
                tracing::info!(group = name, %view, %from, %to, "the group has another style");
            }
            Event::Deposited { name, holder, replaced, view, .. } => {
                tracing::info!(group = name, %view, of = %holder.node, replaced, "the group begins with a state that was saved");
            }
            Event::Ended { name, view, .. } => {
                tracing::info!(group = name, %view, "the last replica has left the group");
            }
            Event::Ranked { name, view, order, .. } => {
                let order = list(order.iter().map(|member| member.node));
                tracing::info!(group = name, %view, %order, "the backups are tried in this order");
            }
            Event::Overloaded { member, used, capacity } => {
                let (used, capacity) = (used.to_string(), capacity.to_string());
                tracing::warn!(node = %member.node, used, capacity, "the host has much to do");
            }
            Event::Relieved { member, used, capacity } => {
                let (used, capacity) = (used.to_string(), capacity.to_string());
                tracing::info!(node = %member.node, used, capacity, "the host has room again");
            }
            Event::Shedding { node, level: 0, refused } => {
                tracing::info!(%node, refused, "the host refuses no calls any more");
            }
            Event::Shedding { node, level, .. } => {
                tracing::warn!(%node, level, "the host has too much to do, and refuses calls less critical than this");
            }
            Event::BenchBegan { by, senders, size } => {
                let senders = list(senders.iter().copied());
                tracing::warn!(by = %by.node, %senders, size, "a benchmark loads the ring");
            }
            Event::BenchEnded { by, whole } => {
                tracing::info!(by = %by.node, whole, "the benchmark is over");
            }
            Event::KeyOffered(key) => {
                tracing::info!(key = key.number, "a new cluster key: every node keeps it");
            }
            Event::KeySwitched(key) => {
                tracing::info!(key = key.number, "the new cluster key seals from here on");
            }
            Event::KeyRetired(key) => {
                tracing::info!(key = key.number, "the last cluster key is forgotten");
            }
            Event::KeyAborted(key) => {
                tracing::warn!(key = key.number, "the change of the cluster key was given up");
            }
            Event::Program { group, news } => program(group, news),
            Event::Deployment { group, news } => deployment(group, news),
            Event::Drained { node, begins: true } => {
                tracing::info!(%node, "the node is to be emptied")
            }
            Event::Drained { node, begins: false } => {
                tracing::info!(%node, "the node may have replicas again")
            }
            Event::Storage(news @ (StorageNews::Full(_) | StorageNews::Failed(_))) => {
                tracing::error!("{news}");
            }
            Event::Storage(news) => tracing::info!("{news}"),
            Event::Left => tracing::info!("left the ring"),
            Event::Ring(Ring::TokenLost { ring, silent, suspect }) => {
                let suspect = suspect.map(|member| member.node.0);
                tracing::warn!(%ring, ?silent, suspect, "token lost");
            }
            Event::Ring(Ring::Unreachable(member)) => {
                tracing::warn!(node = %member.node, "the node's process is gone");
            }
            Event::Ring(Ring::Silent(member)) => {
                tracing::warn!(node = %member.node, "the node does not answer");
            }
            Event::Ring(Ring::TooSlow { member, by, charge }) => {
                self.too_slow(*member, *by, *charge);
            }
            Event::Ring(Ring::HeldOff { member, span }) => {
                let node = member.node.0;
                tracing::warn!(
                    node,
                    ?span,
                    "the node was lost again, or did not keep up: it is held off"
                );
            }
            Event::Ring(Ring::HeldUp(span)) => {
                tracing::warn!(?span, "this node was held up: it does not trust its suspicion");
            }
            Event::Ring(Ring::LinkLost { node, link }) => {
                tracing::warn!(%node, link, "link lost: the node is reached by another");
            }
            Event::Ring(Ring::LinkBack { node, link }) => {
                tracing::info!(%node, link, "link back: it carries again");
            }
            Event::Ring(Ring::Installed { took, recovered, .. }) => {
                tracing::info!(?took, recovered, "ring installed");
            }
            // Two for each call: they would bury the rest.
            Event::Executed { .. }
            | Event::Replied { .. }
            | Event::Copy { .. }
            | Event::NestedEnded { .. }
            | Event::NestedCopy { .. } => {
                tracing::trace!(?event);
            }
            other => tracing::debug!(event = ?other),
        }
    }

    fn too_slow(&self, member: Member, by: Member, charge: Option<ring::Charge>) {
        let (slow, by) = (member.node, by.node);
        let owed = owed(by, charge.map(ChargeStatus::from).as_ref());
        if Some(slow) == self.me {
            tracing::error!(
                "this node is excluded: it could not keep up; {owed}. It comes back by itself. {SLOW_REMEDY}"
            );
        } else {
            tracing::warn!("{slow} is excluded: it could not keep up; {owed}. {SLOW_REMEDY}");
        }
    }

    fn name(&self, group: GroupId) -> String {
        self.names.get(&group).cloned().unwrap_or_else(|| group.to_string())
    }
}

fn deployment(group: &str, news: &DeploymentNews) {
    match news {
        DeploymentNews::Deployed { replicas } => tracing::info!(group, replicas, "deployed"),
        DeploymentNews::Placed { on } => {
            let on = on.iter().map(NodeId::to_string).collect::<Vec<_>>().join(",");
            tracing::info!(group, on, "replicas are to be on these nodes");
        }
        DeploymentNews::Changing { node, program } => {
            tracing::info!(group, %node, program, "the replica there is to run another program");
        }
        DeploymentNews::Changed { program } => {
            tracing::info!(
                group,
                program,
                "all replicas run the program that they were to change to"
            );
        }
        DeploymentNews::TakenBack { node, why } => {
            tracing::warn!(group, %node, why, "the new program is taken back");
        }
        DeploymentNews::Failing { node } => {
            tracing::warn!(group, %node, "the program ends again and again there: it is tried elsewhere");
        }
        DeploymentNews::Withdrawn => tracing::info!(group, "withdrawn: all replicas end"),
    }
}

fn program(group: &str, news: &ProgramNews) {
    match news {
        ProgramNews::Started { pid } => tracing::info!(group, pid, "program started"),
        ProgramNews::Attached { pid } => tracing::info!(group, pid, "program attached"),
        ProgramNews::Ended { pid, how } => tracing::warn!(group, pid, how, "program ended"),
        ProgramNews::CrashLoop { ends, wait } => tracing::error!(
            group,
            ends,
            ?wait,
            "the program ends again and again: it is started ever more seldom; its last lines above say why"
        ),
        ProgramNews::Recovered => tracing::info!(group, "the program serves well again"),
        ProgramNews::Stopped => tracing::info!(group, "program stopped"),
    }
}

fn list(nodes: impl IntoIterator<Item = NodeId>) -> String {
    let names: Vec<String> = nodes.into_iter().map(|node| node.to_string()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(",") }
}

/// As `steadfast status` shows them: in order of rank, those without the state in brackets.
fn ranks(replicas: &[(Member, bool)]) -> String {
    let mut text = String::new();
    for (member, synced) in replicas {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match synced {
            true => write!(text, "{comma}{}", member.node),
            false => write!(text, "{comma}({})", member.node),
        };
    }
    text
}
