//! The differences between two cluster states, as events.

use engine::{DeploymentNews, Event};
use manager::cluster_state::{ClusterState, Placed};

/// The events between two cluster states. Each node reports what its own replica of the cluster
/// state has seen.
pub(super) fn news(before: &ClusterState, now: &ClusterState) -> Vec<Event> {
    let mut news = Vec::new();
    for (node, _) in now.nodes() {
        if before.is_drained(node) != now.is_drained(node) {
            news.push(Event::Drained { node, begins: now.is_drained(node) });
        }
    }
    for placed in now.placed() {
        let group = &placed.deployment.group;
        let of_it = of_one(before.of(group), placed).into_iter();
        news.extend(of_it.map(|news| Event::Deployment { group: group.clone(), news }));
    }
    let gone = before.placed().map(|placed| &placed.deployment.group);
    let gone = gone.filter(|group| now.of(group).is_none());
    news.extend(
        gone.map(|group| Event::Deployment {
            group: group.clone(),
            news: DeploymentNews::Withdrawn,
        }),
    );
    news
}

fn of_one(before: Option<&Placed>, now: &Placed) -> Vec<DeploymentNews> {
    let mut news = Vec::new();
    if before.is_none_or(|before| before.deployment != now.deployment) && now.undone.is_none() {
        news.push(DeploymentNews::Deployed { replicas: now.deployment.replicas });
    }
    if before.is_none_or(|before| before.on != now.on) && !now.on.is_empty() {
        news.push(DeploymentNews::Placed { on: now.on.clone() });
    }
    for (node, failing) in &now.failing {
        let known = before.and_then(|before| before.failing.get(node));
        if known != Some(failing) {
            news.push(DeploymentNews::Failing { node: *node });
        }
    }
    if let Some(undone) = &now.undone
        && before.is_none_or(|before| before.undone.is_none())
    {
        let why = undone.fault.to_string();
        news.push(DeploymentNews::TakenBack { node: undone.node, why });
    }
    let under_way = |placed: &Placed| placed.upgrade.as_ref().and_then(|it| it.under_way);
    let node = under_way(now).filter(|node| before.and_then(under_way) != Some(*node));
    let program = || now.deployment.program.command.join(" ");
    news.extend(node.map(|node| DeploymentNews::Changing { node, program: program() }));
    if before.is_some_and(|before| before.upgrade.is_some()) && now.upgrade.is_none() {
        news.push(DeploymentNews::Changed { program: program() });
    }
    news
}
