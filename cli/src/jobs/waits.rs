//! The reason for which a rank waits, for people.

use std::collections::BTreeSet;

use job::{Host, Job, JobState, Jobs, Rank, RankState};
use wire::{Member, NodeId};

/// A line for each rank that waits for something that a user may have to do. `drained`: nodes that are
/// being emptied.
pub fn reasons(jobs: &Jobs, job: &Job, drained: &BTreeSet<NodeId>) -> Vec<String> {
    if job.state != JobState::Running {
        return Vec::new();
    }
    let waiting = job.ranks.iter().enumerate().filter(|(_, it)| it.state == RankState::Waiting);
    let told = |(number, rank)| {
        Some(format!("rank {number} waits: {}", reason(jobs, job, rank, drained)?))
    };
    waiting.filter_map(told).collect()
}

fn reason(jobs: &Jobs, job: &Job, rank: &Rank, drained: &BTreeSet<NodeId>) -> Option<String> {
    let hosts: Vec<_> = jobs.hosts().collect();
    if hosts.is_empty() {
        return Some("no node's agent is there: has a node a [jobs] section?".into());
    }
    let fitting: Vec<_> = hosts.iter().filter(|(_, host)| job.fits(host)).collect();
    if fitting.is_empty() {
        return Some(unsuitable(job, &hosts.iter().map(|(_, host)| *host).collect::<Vec<_>>()));
    }
    let offered: Vec<Member> =
        fitting.iter().map(|(node, _)| *node).filter(|it| !drained.contains(&it.node)).collect();
    if offered.is_empty() {
        let nodes = list(fitting.iter().map(|(node, _)| node.node));
        return Some(format!(
            "all hosts that may have it are drained: `steadfast return` of {nodes}"
        ));
    }
    let unfit = list(fitting.iter().map(|(node, _)| node.node).filter(|it| rank.is_unfit(*it)));
    let began =
        (!unfit.is_empty()).then(|| format!("it could not begin at {unfit} (the reason is below)"));
    if rank.images.generations().next().is_none() {
        return began;
    }
    let Some(newest) = rank.images.restorable().next() else {
        let away = rank.images.generations().flat_map(|image| image.away.iter().copied());
        let away = list(away);
        return Some(format!("its state is at {away} alone, which is away"));
    };
    let has = |node: &Member| newest.iter().all(|image| image.holders.contains(node));
    match offered.iter().any(has) {
        true => began,
        false => Some("its state is on its way to a node that may have it".into()),
    }
}

fn list(nodes: impl Iterator<Item = NodeId>) -> String {
    let nodes: BTreeSet<NodeId> = nodes.collect();
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The demand that no host meets, the first of them.
fn unsuitable(job: &Job, hosts: &[&Host]) -> String {
    let lacking = |label: &&String| hosts.iter().all(|host| !host.labels.contains(label));
    if let Some(label) = job.spec.labels.iter().find(lacking) {
        return format!("no host has the label {label}");
    }
    if hosts.iter().all(|host| host.memory < job.spec.memory) {
        return format!("no host has {} MiB of memory", job.spec.memory >> 20);
    }
    if let Some(kind) = &job.kind
        && !job.spec.any_processor
        && hosts.iter().all(|host| host.kind != *kind)
    {
        return format!(
            "no host has the processors with which the job began ({kind}): `steadfast job resume {} --any-processor` takes any",
            job.spec.name
        );
    }
    "no host has all that it needs: labels, memory and processors".into()
}

#[cfg(test)]
mod tests {
    use job::{Command, End, Spec};
    use wire::{Incarnation, Time};

    use super::*;

    /// The reasons, with this one host.
    fn told(spec: Spec, host: Host, then: Option<Host>) -> String {
        let mut jobs = Jobs::default();
        let node = |life| Member { node: NodeId(1), incarnation: Incarnation(life) };
        let mut take = |command: &Command| jobs.take(Time(1), command).unwrap();
        let spec =
            Spec { name: "sum".into(), command: vec!["sum".into()], ranks: 1, copies: 1, ..spec };
        let job = take(&Command::Submit(spec)).job.unwrap();
        take(&Command::Introduce { node: node(1), host });
        if let Some(host) = then {
            take(&Command::Start { job, rank: 0, start: 1, node: node(1) });
            take(&Command::Gone { node: node(1) });
            take(&Command::Introduce { node: node(2), host });
        }
        reasons(&jobs, jobs.job(job).unwrap(), &BTreeSet::new()).concat()
    }

    #[test]
    fn a_rank_that_waits_says_for_what() {
        let amd = || Host { kind: "AMD avx2".into(), ..Host::default() };
        let labels = vec!["gpu=a100".into()];
        let spec = Spec { labels, ..Spec::default() };
        assert_eq!(told(spec, amd(), None), "rank 0 waits: no host has the label gpu=a100");
        let spec = Spec { memory: 64 << 30, ..Spec::default() };
        assert!(told(spec, amd(), None).contains("no host has 65536 MiB"));
        let text = told(Spec::default(), amd(), Some(Host::default()));
        assert!(text.contains("(AMD avx2): `steadfast job resume sum --any-processor`"), "{text}");
        assert_eq!(told(Spec::default(), amd(), Some(amd())), "");
    }

    #[test]
    fn a_rank_that_could_not_begin_or_has_only_drained_hosts_says_so() {
        let mut jobs = Jobs::default();
        let node = |number| Member { node: NodeId(number), incarnation: Incarnation(1) };
        let mut take = |command: &Command| jobs.take(Time(1), command).unwrap();
        let (name, command) = ("sum".into(), vec!["sum".into()]);
        let spec = Spec { name, command, ranks: 1, copies: 1, ..Spec::default() };
        let job = take(&Command::Submit(spec)).job.unwrap();
        for number in 1..=2 {
            take(&Command::Introduce { node: node(number), host: Host::default() });
        }
        take(&Command::Start { job, rank: 0, start: 1, node: node(1) });
        let end = End::NotStarted("no such program".into());
        take(&Command::Ended { job, rank: 0, start: 1, end, at: Time(1) });
        let told = |drained: &[u32]| {
            let drained = drained.iter().copied().map(NodeId).collect();
            reasons(&jobs, jobs.job(job).unwrap(), &drained).concat()
        };
        assert!(told(&[]).contains("could not begin at n1 "), "{}", told(&[]));
        assert!(told(&[1, 2]).contains("`steadfast return` of n1, n2"), "{}", told(&[1, 2]));
    }
}
