//! How the data plane's thread waits, and what it knows of its own time.

use admin::status::Counters;
use engine::ReserveNews;
use os::clock::{monotonic, sharpen};
use os::own_time::{Account, OwnTime};
use os::realtime::{self, Awake, Grant, Realtime, RealtimeStatus};
use os::sched::{self, Class};
use qosd::Keeper;
use rustix::io::Errno;
use wire::Time;

use super::learning::Learning;
use super::reserve;
use super::spin::Spinner;
use crate::poller::{EventFlags, Poller, Source};

pub(crate) struct Pacing {
    requests: Realtime,
    /// The place of this thread's reserve in the host's tree.
    path: String,
    /// The node's ports, whose packets have a rate at the host's networks.
    ports: Vec<u16>,
    /// Holds the reserve at the host's daemon, if there is one.
    keeper: Option<Keeper>,
    /// Changes the reserve as its use changes.
    learning: Option<Learning>,
    /// The requests that the system has granted.
    granted: RealtimeStatus,
    own_time: Account,
    spinner: Spinner,
}

impl Pacing {
    pub fn new(requests: Realtime, path: String, ports: Vec<u16>) -> Pacing {
        let spinner = Spinner::new(requests.spin);
        Pacing {
            requests,
            path,
            ports,
            keeper: None,
            learning: None,
            granted: RealtimeStatus::default(),
            own_time: Account::default(),
            spinner,
        }
    }

    /// Requests the configured grants for the calling thread. The returned value keeps processors
    /// awake until it is dropped.
    pub fn begin(&mut self) -> Option<Awake> {
        sharpen();
        self.keeper = reserve::hold(&self.requests, &self.path, &self.ports);
        let Realtime { runtime, period, .. } = self.requests;
        let keeper = &self.keeper;
        let alone = || realtime::reserve(runtime, period);
        let requests = &self.requests;
        let (granted, awake) = requests.apply(|| match keeper {
            Some(keeper) => reserve::granted(requests, keeper.standing(), alone),
            None => (alone(), Grant::NotAsked),
        });
        let reserved = granted.runtime_us == Grant::InForce;
        self.learning = Learning::begin(&self.requests).filter(|_| reserved);
        self.granted = granted;
        awake
    }

    /// How the reserve of the calling thread stands, if it is to have one: its path, and the news.
    pub fn reserve_news(&self) -> Option<(String, ReserveNews)> {
        let news = match self.granted().runtime_us {
            Grant::NotAsked => return None,
            Grant::InForce => ReserveNews::InForce {
                by: match sched::class(None) {
                    Ok(Class::Fifo(priority)) => format!("SCHED_FIFO {priority}"),
                    _ => "SCHED_DEADLINE".into(),
                },
            },
            Grant::Refused(why) => ReserveNews::Degraded { why },
        };
        Some((self.path.clone(), news))
    }

    /// Another reserve is asked for if the thread's use wants it: the path, and the news.
    pub fn learn(&mut self) -> Option<(String, ReserveNews)> {
        let learning = self.learning.as_mut()?;
        let holder = (self.keeper.as_ref(), self.path.as_str(), &self.ports[..]);
        let news = learning.look(monotonic(), &self.requests, holder)?;
        Some((self.path.clone(), news))
    }

    /// The requests that the system has granted, and the daemon grants now.
    pub fn granted(&self) -> RealtimeStatus {
        let mut granted = self.granted.clone();
        if let Some((standing, _)) = self.keeper.as_ref().and_then(Keeper::glance) {
            let alone = || self.granted.runtime_us.clone();
            let (runtime, network) = reserve::granted(&self.requests, standing, alone);
            // A refused change leaves the former reserve in force.
            let changing = self.learning.as_ref().is_some_and(Learning::is_asking);
            if !(changing && matches!(runtime, Grant::Refused(_))) {
                granted.runtime_us = runtime;
            }
            granted.network_mb_s = network;
        }
        granted
    }

    /// The recent use of this thread's time.
    pub fn own_time(&self) -> Option<OwnTime> {
        self.own_time.tell(monotonic())
    }

    /// Waits until something is ready or `due` has come: awake for a moment if that pays, else
    /// asleep.
    pub fn wait(
        &mut self,
        poller: &Poller,
        counters: &mut Counters,
        due: Time,
        ready: &mut Vec<(Source, EventFlags)>,
    ) -> Result<(), Errno> {
        let mut now = monotonic();
        if let Some(until) = self.spinner.until(now) {
            counters.spins += 1;
            while now < until.min(due) && ready.is_empty() {
                poller.look(ready)?;
                now = monotonic();
            }
            self.spinner.learn(!ready.is_empty());
            if !ready.is_empty() {
                counters.spins_won += 1;
                return Ok(());
            }
        }
        poller.wait(now, due, ready)?;
        let woken = monotonic();
        // A wait that ends early, and with nothing, was broken off: the process was stopped and
        // continued.
        let whole = !ready.is_empty() || woken >= due;
        self.own_time.waited(woken, woken.since(now), whole);
        counters.wakeups += u64::from(!ready.is_empty());
        let by_thread = ready.iter().any(|(source, _)| *source == Source::Waker);
        counters.wakeups_by_threads += u64::from(by_thread);
        Ok(())
    }
}
