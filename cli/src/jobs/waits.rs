//! The reason for which a rank waits, for people.

use std::collections::BTreeSet;

use job::{Host, Job, JobState, Jobs, Rank, RankState};

/// A line for each rank that waits for something that a user may have to do.
pub fn reasons(jobs: &Jobs, job: &Job) -> Vec<String> {
    if job.state != JobState::Running {
        return Vec::new();
    }
    let waiting = job.ranks.iter().enumerate().filter(|(_, it)| it.state == RankState::Waiting);
    let told = |(number, rank)| Some(format!("rank {number} waits: {}", reason(jobs, job, rank)?));
    waiting.filter_map(told).collect()
}

fn reason(jobs: &Jobs, job: &Job, rank: &Rank) -> Option<String> {
    let hosts: Vec<_> = jobs.hosts().collect();
    if hosts.is_empty() {
        return Some("no node's agent is there: has a node a [jobs] section?".into());
    }
    if !hosts.iter().any(|(_, host)| job.fits(host)) {
        return Some(unsuitable(job, &hosts.iter().map(|(_, host)| *host).collect::<Vec<_>>()));
    }
    if rank.images.generations().next().is_some() && rank.images.restorable().next().is_none() {
        let away = rank.images.generations().flat_map(|image| image.away.iter());
        let away: BTreeSet<String> = away.map(ToString::to_string).collect();
        let nodes = away.into_iter().collect::<Vec<_>>().join(", ");
        return Some(format!("its state is at {nodes} alone, which is away"));
    }
    let newest = rank.images.restorable().next()?;
    let has = |node| newest.iter().all(|image| image.holders.contains(&node));
    let fits = hosts.iter().any(|(node, host)| job.fits(host) && has(*node));
    (!fits).then(|| "its state is on its way to a node that may have it".into())
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
    use job::{Command, Spec};
    use wire::{Incarnation, Member, NodeId, Time};

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
        reasons(&jobs, jobs.job(job).unwrap()).concat()
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
}
