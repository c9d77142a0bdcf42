//! Samples how much of the processors the host and this node's replicas use.

use std::collections::BTreeMap;

use admin::status::ProgramStatus;
use config::ManagerKnobs;
use monitor::MonitorError;
use monitor::budget::Budget;
use monitor::clock::Process;
use monitor::gauge::Gauge;
use monitor::host::Host;
use monitor::watch::{Use, Watch};
use rustix::process::Pid;
use supervisor::Programs;
use wire::limits::MAX_USAGE_REPLICAS;
use wire::ordered::Usage;
use wire::{Duration, GroupId, Share, Time};

use super::clocks::Clocks;
use super::own::Own;

/// A report leaves out replicas that use less of a processor than this.
const LEAST_TOLD: Share = Share(1_000);

/// The counters that are read.
#[derive(Debug)]
enum Source {
    /// All processes of the host, and those of this node's control group, if it has a quota.
    Host { host: Host, budget: Budget, gauge: Gauge },
    /// Only this node and its programs: the configuration grants them a share of the host.
    Own(Own),
}

/// Samples the use, and decides when a report is due.
#[derive(Debug)]
pub(super) struct Sampler {
    window: Duration,
    /// How often the list of running programs is renewed.
    period: Duration,
    /// The use of the host, or of this node's share of it.
    gauge: Gauge,
    source: Source,
    clocks: Clocks,
    programs: BTreeMap<GroupId, (u32, Process)>,
    programs_at: Option<Time>,
    replicas: BTreeMap<GroupId, (Gauge, Share)>,
    watch: Watch,
    seen: Option<(Use, Option<Use>)>,
}

impl Sampler {
    pub fn open(knobs: &ManagerKnobs, clocks: Clocks) -> Result<Sampler, MonitorError> {
        let window = knobs.window;
        let source = match knobs.own {
            Some(capacity) => Source::Own(Own::open(capacity)?),
            None => Source::Host {
                host: Host::open()?,
                budget: Budget::open()?,
                gauge: Gauge::new(window),
            },
        };
        Ok(Sampler {
            window,
            period: knobs.period,
            gauge: Gauge::new(window),
            source,
            clocks,
            programs: BTreeMap::new(),
            programs_at: None,
            replicas: BTreeMap::new(),
            watch: Watch::new(knobs.watch()),
            seen: None,
        })
    }

    /// Takes a sample. Returns true if a report to the other nodes is due.
    pub fn look(&mut self, now: Time, programs: Option<&Programs>) -> Result<bool, MonitorError> {
        self.look_at_replicas(now, programs);
        let (used, capacity, budget) = match &mut self.source {
            Source::Host { host, budget, gauge } => {
                let host = host.read()?;
                let budget = budget.read()?.and_then(|budget| {
                    let used = gauge.read(now, budget.used)?;
                    Some(Use { used, capacity: budget.capacity })
                });
                (host.used, host.capacity, budget)
            }
            Source::Own(own) => (own.read(&self.programs)?, own.capacity, None),
        };
        // A rate needs two samples.
        let Some(used) = self.gauge.read(now, used) else { return Ok(false) };
        let host = Use { used: used.min(capacity), capacity };
        self.seen = Some((host, budget));
        Ok(self.watch.handle(now, host, budget).is_some())
    }

    fn look_at_replicas(&mut self, now: Time, programs: Option<&Programs>) {
        if self.programs_at.is_none_or(|at| now >= at + self.period) {
            self.programs_at = Some(now);
            self.know_programs(&programs.map(Programs::status).unwrap_or_default());
        }
        let mut used: BTreeMap<GroupId, Duration> = self.clocks.read().into_iter().collect();
        let of_programs = self.programs.iter();
        used.extend(of_programs.filter_map(|(group, (_, it))| Some((*group, it.used().ok()?))));
        self.replicas.retain(|group, _| used.contains_key(group));
        for (group, used) in used {
            let fresh = || (Gauge::new(self.window), Share::ZERO);
            let (gauge, share) = self.replicas.entry(group).or_insert_with(fresh);
            *share = gauge.read(now, used).unwrap_or_default();
        }
    }

    fn know_programs(&mut self, statuses: &[ProgramStatus]) {
        let run: BTreeMap<GroupId, u32> = statuses
            .iter()
            .filter_map(|program| Some((GroupId::of(&program.group), program.pid?)))
            .collect();
        self.programs.retain(|group, (pid, _)| run.get(group) == Some(pid));
        for (group, number) in run {
            let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
            if !self.programs.contains_key(&group)
                && let Some(process) = pid.and_then(|pid| Process::open(pid).ok())
            {
                self.programs.insert(group, (number, process));
            }
        }
    }

    /// The report of the last sample.
    pub fn usage(&self) -> Usage {
        let Some((host, budget)) = self.seen else { return Usage::default() };
        let left = |it: Use| it.capacity.saturating_sub(it.used);
        let capacity = budget.map_or(host.capacity, |budget| budget.capacity.min(host.capacity));
        // A quota is no reservation: other processes may use the processors that it allows.
        let room = budget.map_or(left(host), |budget| left(budget).min(left(host)));
        let mut replicas: Vec<(GroupId, Share)> = self
            .replicas
            .iter()
            .map(|(group, (_, share))| (*group, *share))
            .filter(|(_, share)| *share >= LEAST_TOLD)
            .collect();
        replicas.sort_by_key(|(_, share)| std::cmp::Reverse(*share));
        replicas.truncate(MAX_USAGE_REPLICAS);
        replicas.sort_unstable();
        let used = capacity.saturating_sub(room);
        Usage { used, capacity, above: self.watch.is_above(), replicas, ..Usage::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use os::clock::monotonic;

    #[test]
    fn a_thread_that_works_shows_in_what_is_told() {
        let knobs = ManagerKnobs { window: Duration::from_millis(50), ..ManagerKnobs::default() };
        let (clocks, group) = (Clocks::default(), GroupId(7));
        clocks.enter(group, (1, wire::Lane::Normal));
        let mut sampler = Sampler::open(&knobs, clocks).unwrap();
        assert_eq!(sampler.usage(), Usage::default(), "nothing is known yet");
        let mut told = false;
        // No time limit, as the host may be slow: this thread is always busy, so the loop ends.
        while sampler.usage().of(group) < Share::percent(1) {
            told |= sampler.look(monotonic(), None).unwrap();
        }
        let usage = sampler.usage();
        assert!(told && usage.capacity > Share::ZERO && usage.used <= usage.capacity);
    }

    #[test]
    fn a_node_with_a_part_of_its_host_tells_of_that_alone() {
        let own = Some(Share::percent(25));
        let knobs =
            ManagerKnobs { window: Duration::from_millis(50), own, ..ManagerKnobs::default() };
        let mut sampler = Sampler::open(&knobs, Clocks::default()).unwrap();
        // This thread is always busy, so it uses more than a quarter of a processor.
        while sampler.usage().used < Share::percent(25) {
            sampler.look(monotonic(), None).unwrap();
        }
        assert_eq!(sampler.usage().capacity, Share::percent(25));
    }
}
