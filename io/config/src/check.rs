//! The possible values: ranges, and knobs against each other.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use ::manager::cluster_state;
use os::realtime::{MAX_PERIOD, MAX_PRIORITY, MAX_SPIN, MAX_WAKE_WITHIN, MIN_PERIOD, Realtime};
use wire::limits::{MAX_GROUPS, MAX_NAME, MAX_PROGRAMS};
use wire::ordered::{Durability, Style};
use wire::{Duration, Incarnation, Member};

use crate::config::Config;
use crate::error::Problem;
use crate::nodes;
use crate::replica::Execution;
use crate::system::SystemProblem;

/// The range of [`Config::vote_timeout`].
const VOTE_TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60);

/// The most of [`Config::settle`]: a month.
const MAX_SETTLE: Duration = Duration::from_secs(31 * 24 * 3_600);

/// The range of [`HangRule::within`] and [`HangRule::misses`] in [`Config::hang`].
const HUNG_WITHIN: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(3_600);
const HUNG_MISSES: u32 = 1_000;

/// The most megabytes a second that an interface is asked for.
const MAX_NETWORK_MB_S: u64 = 100_000;

impl Config {
    /// Checks what no single knob can: ranges, and knobs against each other. `Node::start` does
    /// it too.
    ///
    /// # Errors
    /// The first problem, with the remedy.
    pub fn check(&self) -> Result<(), Problem> {
        check_name("cluster", &self.cluster)?;
        nodes::check(self.node, &self.nodes)?;
        self.check_listening()?;
        self.check_realtime()?;
        if !VOTE_TIMEOUT.contains(&self.vote_timeout) {
            return Err(Problem::VoteTimeout(self.vote_timeout));
        }
        if self.settle > MAX_SETTLE {
            return Err(Problem::Settle(self.settle));
        }
        if !HUNG_WITHIN.contains(&self.hang.within) || self.hang.misses > HUNG_MISSES {
            return Err(Problem::Hung(self.hang));
        }
        self.rights.check()?;
        if !self.rights.are_all() && self.security.tls().is_none() {
            return Err(Problem::RightsWithoutTls);
        }
        self.manager.check()?;
        self.registry.check()?;
        cluster_state::check_labels(&self.labels)
            .map_err(|refusal| Problem::Labels(refusal.to_string()))?;
        if !self.checkpoints.is_possible() {
            return Err(Problem::Checkpoints);
        }
        self.check_replicas()?;
        self.check_programs()?;
        self.check_storage()?;
        self.check_jobs()?;
        self.check_system()?;
        let me = Member { node: self.node, incarnation: Incarnation(0) };
        self.ring_config(me).check().map_err(Problem::Ring)
    }

    fn check_realtime(&self) -> Result<(), Problem> {
        let requests = [
            ("priority", self.realtime.priority),
            ("executor_priority", self.realtime.executor_priority),
            ("helper_priority", self.realtime.helper_priority),
        ];
        if let Some((key, value)) = requests.into_iter().find(|(_, value)| *value > MAX_PRIORITY) {
            return Err(Problem::Priority { key, value });
        }
        let Realtime { runtime, runtime_most, period, .. } = self.realtime;
        if !(MIN_PERIOD..=MAX_PERIOD).contains(&period) || runtime > period * 95 / 100 {
            return Err(Problem::Reserve { runtime, period });
        }
        let learns = !runtime_most.is_zero();
        if learns
            && (runtime.is_zero() || runtime_most < runtime || runtime_most > period * 95 / 100)
        {
            return Err(Problem::ReserveMost(runtime_most));
        }
        if !runtime.is_zero() && !self.realtime.cpus.is_empty() {
            return Err(Problem::ReservePinned);
        }
        if self.realtime.network_mb_s > 0 && self.realtime.daemon.is_none() {
            return Err(Problem::NetworkWithoutDaemon);
        }
        if self.realtime.network_mb_s > MAX_NETWORK_MB_S {
            return Err(Problem::Network(self.realtime.network_mb_s));
        }
        if self.realtime.spin > MAX_SPIN {
            return Err(Problem::Spin(self.realtime.spin));
        }
        if let Some(within) = self.realtime.wake_within.filter(|within| *within > MAX_WAKE_WITHIN) {
            return Err(Problem::WakeWithin(within));
        }
        Ok(())
    }

    fn check_listening(&self) -> Result<(), Problem> {
        if self.client.is_none() && self.advertise.is_some() {
            return Err(Problem::AdvertiseWithoutClient);
        }
        if let Some(address) = self.advertise
            && (address.ip().is_unspecified() || address.port() == 0)
        {
            return Err(Problem::Advertise(address));
        }
        let meets = |client: SocketAddr, ring: &SocketAddr| {
            client.port() == ring.port()
                && client.port() != 0
                && (client.ip() == ring.ip() || client.ip().is_unspecified())
        };
        if let Some(client) = self.client
            && self.ring_addresses().iter().any(|ring| meets(client, ring))
        {
            return Err(Problem::ClientIsRing(client));
        }
        if let Some(key) = self.security.gap() {
            return Err(Problem::TlsIncomplete(key));
        }
        if let Some(admin) = self.admin_tls {
            if self.security.tls().is_none() {
                return Err(Problem::AdminWithoutTls(admin));
            }
            let mut taken = self.client.iter().chain(self.ring_addresses());
            if admin.port() != 0 && taken.any(|other| other.port() == admin.port()) {
                return Err(Problem::AdminPortTaken(admin));
            }
        }
        if let Some(grpc) = self.grpc {
            if self.client.is_none_or(|client| client.port() == 0) {
                return Err(Problem::GrpcWithoutClient(grpc));
            }
            let mut taken = self.client.iter().chain(&self.admin_tls).chain(self.ring_addresses());
            if grpc.port() == 0 || taken.any(|other| other.port() == grpc.port()) {
                return Err(Problem::GrpcPort(grpc));
            }
        }
        let missing = self.security.missing();
        if self.insecure || missing.is_empty() {
            return Ok(());
        }
        if let Some(address) = self.client
            && !address.ip().is_loopback()
        {
            return Err(Problem::InsecureClient { address, missing: missing.join(", ") });
        }
        if let Some(address) = self.grpc
            && !address.ip().is_loopback()
        {
            return Err(Problem::InsecureGrpc { address, missing: missing.join(", ") });
        }
        let open = self.ring_addresses().iter().find(|ring| !ring.ip().is_loopback());
        if let Some(&address) = open {
            let index = self.nodes.iter().position(|node| node.id == self.node).unwrap_or(0);
            return Err(Problem::InsecureRing { index, address, missing: missing.join(", ") });
        }
        match self.admin_tls {
            Some(address) if !address.ip().is_loopback() => {
                Err(Problem::InsecureAdmin { address, missing: missing.join(", ") })
            }
            _ => Ok(()),
        }
    }

    fn check_replicas(&self) -> Result<(), Problem> {
        if self.replicas.len() > MAX_GROUPS {
            return Err(Problem::TooManyReplicas(self.replicas.len()));
        }
        for (index, replica) in self.replicas.iter().enumerate() {
            if !(1..=MAX_NAME).contains(&replica.group.len()) {
                return Err(Problem::GroupName { index, length: replica.group.len() });
            }
            if self.replicas[..index].iter().any(|other| other.group == replica.group) {
                return Err(Problem::ReplicaTwice { index, group: replica.group.clone() });
            }
            if replica.style == Style::Stateless && replica.ack.is_some() {
                return Err(Problem::AckOfStateless { index });
            }
            if replica.durability == Durability::Disk && !replica.style.has_state() {
                return Err(Problem::DiskOfStateless { index });
            }
            if replica.execution == Execution::Lanes && replica.style.has_state() {
                return Err(Problem::LanesOfOrdered { index });
            }
        }
        Ok(())
    }

    fn check_jobs(&self) -> Result<(), Problem> {
        if self.jobs.folder.is_some() && self.admin.is_none() {
            return Err(Problem::JobsWithoutAdmin);
        }
        if self.jobs.listen.is_some() && self.security.tls().is_none() {
            return Err(Problem::CopiesWithoutTls);
        }
        Ok(())
    }

    fn check_system(&self) -> Result<(), Problem> {
        let Some(system) = &self.system else { return Ok(()) };
        system.check(&self.cluster).map_err(Problem::System)?;
        if let Some(listen) = system.listen {
            let taken = [self.client, self.admin_tls, self.grpc, self.jobs.listen];
            let mut taken = taken.iter().flatten().chain(self.ring_addresses());
            if listen.port() == 0 || taken.any(|other| other.port() == listen.port()) {
                return Err(Problem::System(SystemProblem::Port(listen)));
            }
        }
        if self.security.tls().is_none() && !self.insecure {
            return Err(Problem::System(SystemProblem::NoTls));
        }
        Ok(())
    }

    fn check_storage(&self) -> Result<(), Problem> {
        if self.storage.is_some() {
            return match self.data_dir {
                Some(_) => Ok(()),
                None => Err(Problem::StorageWithoutDataDir),
            };
        }
        let disk = |durability: Durability| durability == Durability::Disk;
        if let Some(index) = self.replicas.iter().position(|replica| disk(replica.durability)) {
            return Err(Problem::NoStorage { table: "replica", index });
        }
        let programs = &mut self.programs.iter();
        match programs.position(|program| disk(program.options.durability)) {
            Some(index) => Err(Problem::NoStorage { table: "program", index }),
            None => Ok(()),
        }
    }

    fn check_programs(&self) -> Result<(), Problem> {
        if self.admin.is_none() && !self.programs.is_empty() {
            return Err(Problem::ProgramsWithoutAdmin);
        }
        if self.programs.len() > MAX_PROGRAMS {
            return Err(Problem::TooManyPrograms(self.programs.len()));
        }
        for (index, program) in self.programs.iter().enumerate() {
            if let Err(error) = program.check() {
                return Err(Problem::Program { index, problem: error.to_string() });
            }
            let earlier = self.programs[..index].iter().map(|other| &other.group);
            let mut taken = earlier.chain(self.replicas.iter().map(|replica| &replica.group));
            if taken.any(|group| *group == program.group) {
                return Err(Problem::ProgramTwice { index, group: program.group.clone() });
            }
        }
        Ok(())
    }
}

fn check_name(key: &'static str, name: &str) -> Result<(), Problem> {
    if (1..=MAX_NAME).contains(&name.len()) {
        Ok(())
    } else {
        Err(Problem::Name { key, length: name.len() })
    }
}
