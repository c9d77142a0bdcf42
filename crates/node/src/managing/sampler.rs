//! What a node's host and replicas use, looked at again and again.

use std::collections::BTreeMap;

use monitor::MonitorError;
use monitor::budget::Budget;
use monitor::clock::Process;
use monitor::gauge::Gauge;
use monitor::host::Host;
use monitor::watch::{Use, Watch};
use rustix::process::Pid;
use wire::limits::MAX_USAGE_REPLICAS;
use wire::ordered::Usage;
use wire::{Duration, GroupId, Share, Time};

use super::clocks::Clocks;
use crate::config::ManagerKnobs;
use crate::programs::Programs;
use crate::status::ProgramStatus;

/// A replica that uses less of a processor than this is not told.
const LEAST_TOLD: Share = Share(1_000);

/// The gauges.
#[derive(Debug)]
pub(super) struct Sampler {
    window: Duration,
    /// How often it is asked which programs there are.
    period: Duration,
    host: (Host, Gauge),
    budget: (Budget, Gauge),
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
        Ok(Sampler {
            window,
            period: knobs.period,
            host: (Host::open()?, Gauge::new(window)),
            budget: (Budget::open()?, Gauge::new(window)),
            clocks,
            programs: BTreeMap::new(),
            programs_at: None,
            replicas: BTreeMap::new(),
            watch: Watch::new(knobs.watch()),
            seen: None,
        })
    }

    /// Looks. True if the others are to be told.
    pub fn look(&mut self, now: Time, programs: Option<&Programs>) -> Result<bool, MonitorError> {
        self.look_at_replicas(now, programs);
        let host = self.host.0.read()?;
        let used = self.host.1.read(now, host.used);
        let budget = self.budget.0.read()?;
        let budget = budget.and_then(|budget| {
            let used = self.budget.1.read(now, budget.used)?;
            Some(Use { used, capacity: budget.capacity })
        });
        // Of one look nothing follows yet.
        let Some(used) = used else { return Ok(false) };
        let host = Use { used: used.min(host.capacity), capacity: host.capacity };
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

    /// What there is to tell.
    pub fn usage(&self) -> Usage {
        let Some((host, budget)) = self.seen else { return Usage::default() };
        let left = |it: Use| it.capacity.saturating_sub(it.used);
        let capacity = budget.map_or(host.capacity, |budget| budget.capacity.min(host.capacity));
        // Whoever else is on the host takes from what a quota allows.
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
        Usage { used, capacity, above: self.watch.is_above(), replicas }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::monotonic;

    #[test]
    fn a_thread_that_works_shows_in_what_is_told() {
        let knobs = ManagerKnobs { window: Duration::from_millis(50), ..ManagerKnobs::default() };
        let (clocks, group) = (Clocks::default(), GroupId(7));
        clocks.enter(group, 1);
        let mut sampler = Sampler::open(&knobs, clocks).unwrap();
        assert_eq!(sampler.usage(), Usage::default(), "nothing is known yet");
        let mut told = false;
        // However slow the host is: this thread works all the time.
        while sampler.usage().of(group) < Share::percent(1) {
            told |= sampler.look(monotonic(), None).unwrap();
        }
        let usage = sampler.usage();
        assert!(told && usage.capacity > Share::ZERO && usage.used <= usage.capacity);
    }
}
