//! A node: what a program holds of it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::Instant;

use admin::PoisonedCall;
use admin::events::{Interest, Stamped};
use admin::status::{Counters, ProgramStatus, Status};
use config::{Config, Execution, ProgramConfig};
use os::closer;
use os::durable::Lock;
use os::threads::{self, Inherited};
use os::waker::Waker;
use supervisor::{ProgramError, Programs};
use wire::limits::MAX_ORDERS;
use wire::ordered::{Durability, GroupOptions, Style};
use wire::system::{CELL, JOBS, MANAGER, REGISTRY};
use wire::{Duration, GroupId, Member, NodeId, ViewNumber};

use crate::administration::Admin;
use crate::backups::Backup;
use crate::celling::{CellService, SharedBook};
use crate::control::Control;
use crate::directing::{Directing, JobsService};
use crate::error::{
    DiscardError, HostError, MoveError, ReloadError, RestoreError, RestyleError, SaveError,
    StartError, Stopped, WaitError,
};
use crate::events::Events;
use crate::executor::{Executor, Results, panic_text};
use crate::incarnation;
use crate::managing::{Clocks, ManagerService, Managing, SharedState};
use crate::names::{self, Names};
use crate::opening::{
    open_audit_log, open_nodes, open_sockets, open_stack, open_storage, open_streams, start_admin,
    start_key_file_writer, start_programs, told,
};
use crate::order::Order;
use crate::plane::{Changes, Ending, Inbox, Keeping, Pacing, Plane, Profile, Replicas, Waiting};
use crate::registering::{Registering, RegistryService, SharedRegistry};
use crate::renewal::Renewal;
use crate::roster_file;
use crate::security;
use crate::service::{HostOptions, Service};
use crate::shared::Shared;
use crate::sockets::tcp::Callers;

mod growth;

/// How long a stop may take: the data plane's own bound, and room for a busy host.
const STOP_WITHIN: Duration = Duration::from_secs(3);

/// A running node. Dropping it stops the node cleanly, as [`stop`](Node::stop) does.
///
/// A cluster of one node, as tests have it:
///
/// ```
/// use config::Config;
/// use steadfast_node::{BoxError, Call, Context, HostOptions, Node, Service, ServiceOutcome};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// impl Service for Counter {
///     fn call(&mut self, _: &Context, _: Call<'_>) -> ServiceOutcome {
///         self.0 += 1;
///         ServiceOutcome::Ok(self.0.to_string().into())
///     }
///     fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
///         Ok(self.0.to_le_bytes().into())
///     }
///     fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
///         self.0 = u64::from_le_bytes(state.try_into()?);
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::start(Config::single())?;
/// node.host("counter", HostOptions::default(), Counter::default)?;
/// node.wait_for_replicas("counter", 1, std::time::Duration::from_secs(20))?;
/// assert_eq!(node.status().groups.len(), 1);
/// node.stop()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Node {
    control: Arc<Control>,
    /// `None` once the node was told to stop.
    results: Option<Results>,
    client_address: Option<SocketAddr>,
    ring_address: SocketAddr,
    admin: Option<Admin>,
    /// Looks at the host, if the manager is on.
    managing: Option<Managing>,
    /// Maintains this node's bindings, if the registry is on.
    registering: Option<Registering>,
    /// Directs jobs, if this node has a part in their book.
    directing: Option<Directing>,
    /// Looks up where nodes are whose hosts are named.
    names: Option<Names>,
    /// Ends when the last of the node's threads does.
    running: Receiver<()>,
    /// Kept until the node has stopped.
    _data_dir: Option<Lock>,
}

impl Node {
    /// Starts a node. When this returns, its sockets are bound and it looks for the others.
    ///
    /// # Errors
    /// The resource that is missing, and the remedy.
    pub fn start(mut config: Config) -> Result<Node, StartError> {
        names::look_up(&mut config)?;
        config.check()?;
        let _inherited = Inherited::begin(config.realtime.helper_priority);
        // A refusal is told in the status.
        closer::begin();
        let life = incarnation::next(config.data_dir.as_deref(), config.nodes.len() == 1)?;
        let me = Member { node: config.node, incarnation: life.incarnation };
        let waker = Arc::new(Waker::new().map_err(|error| system("an eventfd")(error.into()))?);
        let credentials = security::credentials(&config)?;
        let seal = security::seal(&config, me)?;
        let keys = seal.as_ref().map(|seal| seal.keys().clone());
        let renewal = Renewal::new(&config, keys.is_some(), credentials.as_ref())?;
        let sockets = open_sockets(&config, me, seal, renewal.clients.as_ref(), &waker)?;
        let ring_address = sockets.transport.address();
        let bound = sockets.callers.as_ref().map(Callers::address);
        let client_address = config.advertise.or(bound.map(|bound| told(bound, ring_address)));
        let (keeping, recovery) = open_storage(&config, me, &waker)?.unzip();
        let roster = config.data_dir.as_deref().map(roster_file::load).transpose()?.flatten();
        let kept = (recovery, roster.clone());
        let stack = open_stack(&config, (me, &life), client_address, keys.as_ref(), kept)?;
        sockets.register(&waker).map_err(system("a place in epoll"))?;

        let (orders, order_queue) = sync_channel(MAX_ORDERS);
        let (sender, result_queue) = channel();
        let (alive, running) = channel();
        let control = Arc::new(Control {
            programs: start_programs(&config, me, &orders, &waker)?,
            audit_log: open_audit_log(&config)?,
            keeps: config.data_dir.is_some(),
            cluster_key: config.security.cluster_key.clone(),
            registry: config.registry.on.then(SharedRegistry::default),
            jobs: config.jobs.folder.is_some().then(Shared::default),
            cell: config.system.is_some().then(SharedBook::default),
            terms: config.registry.terms,
            ..Control::new(me, renewal, config.cluster.clone(), orders, waker.clone())
        });
        let admin = start_admin(&config, &control)?;
        let names = Names::start(&config, control.clone()).map_err(system("a thread"))?;
        let (shared, priority) = (SharedState::default(), config.realtime.executor_priority);
        let reserve_path = qosd::path(&config.cluster, me.node, "plane");
        let bound_to = bound.map(|bound| bound.port());
        let ports: BTreeSet<u16> = sockets.transport.ports().chain(bound_to).collect();
        let profile = Profile::new(&config, me, client_address, credentials.as_ref());
        let plane = Plane {
            stack,
            sockets,
            inbox: Inbox::new(waker.clone(), order_queue, result_queue),
            replicas: Replicas::new(config.checkpoints, shared.clone()),
            nodes: open_nodes(&config, roster.as_ref(), &control, &alive)?,
            streams: open_streams(&config, &control)?,
            key_file: start_key_file_writer(&config, keys, &control, &alive)?,
            keeping,
            waiting: Waiting::new(),
            cluster_state: shared.clone(),
            changes: Changes::of(&control),
            counters: Counters::default(),
            excluded: None,
            ending: Ending::new(),
            events: Events::new(config.node, config.node_ids()),
            profile,
            founding: life.founding,
            pacing: Pacing::new(config.realtime, reserve_path, ports.into_iter().collect()),
        };
        let clocks = config.manager.on.then(Clocks::default);
        let managing = clocks.clone().map(|clocks| {
            Managing::start(config.manager, shared.clone(), control.clone(), clocks, alive.clone())
        });
        let managing = managing.transpose()?;
        let registering = control.registry.clone().map(|shared| {
            Registering::start(config.registry, shared, control.clone(), alive.clone())
        });
        let registering = registering.transpose()?;
        let jobs = control.jobs.clone();
        let directing = jobs.map(|it| Directing::start(it, control.clone(), alive.clone()));
        let directing = directing.transpose()?;
        spawn(plane, control.clone(), alive.clone()).map_err(system("a thread"))?;
        keep_programs(&control, config.programs);
        let node = Node {
            results: Some(Results { sender, waker, priority, clocks, _running: alive }),
            control,
            client_address,
            ring_address,
            admin: Some(admin),
            managing,
            registering,
            directing,
            names,
            running,
            _data_dir: life.data_dir,
        };
        if config.manager.on {
            node.keep_cluster_state(shared, config.storage.is_some())?;
        }
        node.keep_registry()?;
        node.keep_jobs(config.storage.is_some())?;
        node.keep_cell(config.storage.is_some())?;
        Ok(node)
    }

    /// Hosts this node's replica of the registry, if it has a part in it: in memory, for who is
    /// alive binds itself again.
    fn keep_registry(&self) -> Result<(), StartError> {
        let Some(shared) = self.control.registry.clone() else { return Ok(()) };
        let options = HostOptions { execution: Execution::Inline, ..HostOptions::default() };
        self.host_any(REGISTRY, options, move || RegistryService::new(shared.clone()))
            .map_err(|error| system("the registry's replica")(std::io::Error::other(error)))
    }

    /// Hosts this node's replica of the book of jobs, if it has a part in it: on disk where there is
    /// one, for the images are worth nothing without.
    fn keep_jobs(&self, on_disk: bool) -> Result<(), StartError> {
        let Some(shared) = self.control.jobs.clone() else { return Ok(()) };
        let durability = if on_disk { Durability::Disk } else { Durability::Memory };
        let group = GroupOptions { durability, ..GroupOptions::default() };
        let options = HostOptions { group, execution: Execution::Inline };
        self.host_any(JOBS, options, move || JobsService::new(shared.clone())).map_err(|error| {
            system("the replica of the book of jobs")(std::io::Error::other(error))
        })
    }

    /// Hosts this node's replica of the cell's book, if it is of a cell: on disk where there is one,
    /// for what people exported is to survive.
    fn keep_cell(&self, on_disk: bool) -> Result<(), StartError> {
        let path = cells::Path::of_cluster(&self.control.cluster);
        let Some((shared, path)) = self.control.cell.clone().zip(path) else { return Ok(()) };
        let durability = if on_disk { Durability::Disk } else { Durability::Memory };
        let group = GroupOptions { durability, ..GroupOptions::default() };
        let options = HostOptions { group, execution: Execution::Inline };
        self.host_any(CELL, options, move || CellService::new(path.clone(), shared.clone()))
            .map_err(|error| system("the replica of the cell's book")(std::io::Error::other(error)))
    }

    /// Hosts this node's replica of the manager's group: on disk where there is one, for what
    /// people said is to survive.
    fn keep_cluster_state(&self, shared: SharedState, on_disk: bool) -> Result<(), StartError> {
        let durability = if on_disk { Durability::Disk } else { Durability::Memory };
        let group = GroupOptions { durability, ..GroupOptions::default() };
        let options = HostOptions { group, execution: Execution::Inline };
        self.host_any(MANAGER, options, move || ManagerService::new(shared.clone()))
            .map_err(|error| system("the manager's replica")(std::io::Error::other(error)))
    }

    /// Hosts a replica of a group at this node. `make` gives the service in its initial state:
    /// now, and when the replica has to begin anew. The replica joins its group as soon as the
    /// node is in a configuration with the quorum; until then its calls wait.
    ///
    /// # Errors
    /// Why it cannot be hosted, and the remedy.
    pub fn host<S: Service + 'static>(
        &self,
        group: &str,
        options: HostOptions,
        make: impl Fn() -> S + Send + 'static,
    ) -> Result<(), HostError> {
        if wire::system::is_system(group) {
            return Err(HostError::System(group.into()));
        }
        self.host_any(group, options, make)
    }

    fn host_any<S: Service + 'static>(
        &self,
        group: &str,
        options: HostOptions,
        make: impl Fn() -> S + Send + 'static,
    ) -> Result<(), HostError> {
        if options.execution == Execution::Lanes && options.group.style.has_state() {
            return Err(HostError::Lanes(group.into()));
        }
        let make = Box::new(move || -> Box<dyn Service> { Box::new(make()) });
        let id = GroupId::of(group);
        let results = self.results.clone().ok_or(Stopped::Stopped)?;
        let executor = Executor::start(id, group, make, options, results)?;
        self.control.ask_hosting(|reply| Order::Host {
            name: group.into(),
            options: options.group,
            executor,
            reply,
        })
    }

    /// Takes this node's replica out of its group. It executes what is ordered before.
    ///
    /// # Errors
    /// There is none, or the node has stopped.
    pub fn unhost(&self, group: &str) -> Result<(), HostError> {
        self.control.ask_hosting(|reply| Order::Unhost { name: group.into(), reply })
    }

    /// Makes the replica at node `to` the primary of a group, and returns when it is, with the view
    /// in which it is: within milliseconds, or at most some seconds. Clients lose no call and wait
    /// for none. Any node can be asked.
    ///
    /// # Errors
    /// That node has no replica with the state, the cluster has no quorum here, or it did not take
    /// over in time: the text says what to do.
    pub fn move_primary(&self, group: &str, to: NodeId) -> Result<ViewNumber, MoveError> {
        self.control.move_primary(group, to)
    }

    /// Gives a group another style while it serves, and returns when it has it, with the view that
    /// says so: within milliseconds, or at most some seconds. No call is lost by it. Any node can
    /// be asked.
    ///
    /// # Errors
    /// There is no way from the group's style to this one, the cluster has no quorum here, or the
    /// change was not ordered in time: the text says what to do.
    pub fn restyle(&self, group: &str, style: Style) -> Result<ViewNumber, RestyleError> {
        self.control.restyle(group, style)
    }

    /// The state of a group at one place of the order, with its sessions, while requests flow: what
    /// `steadfast state save` writes. This node's replica must have the state.
    ///
    /// # Errors
    /// It has not, the cluster has no quorum here, or the state was not taken in time: the text
    /// says what to do.
    pub fn save(&self, group: &str) -> Result<Backup, SaveError> {
        self.control.save(group)
    }

    /// Has a group begin with a state that was saved, in this cluster or in another, instead of the
    /// service's initial one: its replicas that are there and were not called, and those that come.
    /// This node has the state until a replica has. With `replace` what the group has executed is
    /// given up for it.
    ///
    /// # Errors
    /// The group has executed calls, it is of another style than the state, or the cluster has no
    /// quorum here: the text says what to do.
    pub fn restore(&self, backup: Backup, replace: bool) -> Result<ViewNumber, RestoreError> {
        self.control.restore(backup, replace)
    }

    /// Has a group that waits for a state begin without it.
    ///
    /// # Errors
    /// It waits for none, or the cluster has no quorum here.
    pub fn discard(&self, group: &str) -> Result<(), DiscardError> {
        self.control.discard(group)
    }

    /// Runs a program that serves a replica in a process of its own, and waits until the replica is
    /// in its group or the program has failed to attach; some seconds more where the node has no
    /// quorum. From then on the program is started again whenever it ends, until it is stopped.
    ///
    /// # Errors
    /// Why it does not serve, with its last lines; it is not kept then.
    pub fn run(&self, program: ProgramConfig) -> Result<ProgramStatus, ProgramError> {
        self.control.programs()?.run(program)
    }

    /// Ends the program that serves this group here: its replica leaves the group, then the
    /// process ends, by SIGTERM and SIGKILL if it must.
    ///
    /// # Errors
    /// There is none, or the node has stopped.
    pub fn stop_program(&self, group: &str) -> Result<(), ProgramError> {
        self.control.programs()?.stop(group)
    }

    /// This node's id.
    pub fn id(&self) -> NodeId {
        self.control.me.node
    }

    /// This node in this life.
    pub fn member(&self) -> Member {
        self.control.me
    }

    /// Where clients connect, as they are told.
    pub fn client_address(&self) -> Option<SocketAddr> {
        self.client_address
    }

    /// Where administrators connect over TLS.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(Admin::address)
    }

    /// Where the ring's datagrams arrive.
    pub fn ring_address(&self) -> SocketAddr {
        self.ring_address
    }

    /// The node's status. After the node has stopped, the ring's state is `stopped`.
    pub fn status(&self) -> Status {
        self.control.status()
    }

    /// All events from here on, each with the wall clock's nanoseconds since the Unix epoch. The
    /// queue is bounded: what is not taken in time is dropped, and counted in the status.
    pub fn subscribe(&self) -> Receiver<Stamped> {
        self.subscribe_to(Interest::All)
    }

    /// As [`subscribe`](Node::subscribe), for some events only.
    pub fn subscribe_to(&self, interest: Interest) -> Receiver<Stamped> {
        self.control.subscribe(interest).1
    }

    /// Waits until the group has a primary and this many replicas with its state, as this node sees
    /// it: for programs that start several nodes, and tests. Gives the primary's node.
    ///
    /// # Errors
    /// The time is over, or the node has stopped.
    pub fn wait_for_replicas(
        &self,
        group: &str,
        replicas: usize,
        within: Duration,
    ) -> Result<NodeId, WaitError> {
        let start = Instant::now();
        let changes = self.subscribe_to(Interest::Membership);
        loop {
            let status = self.status();
            let found = status.groups.iter().find(|it| it.name == group);
            let synced = found.map_or(0, |it| it.replicas.iter().filter(|one| one.synced).count());
            let primary = found.and_then(|it| it.primary).filter(|_| synced == replicas);
            if let Some(primary) = primary {
                return Ok(primary.node);
            }
            match changes.recv_timeout(within.saturating_sub(start.elapsed())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let group = group.to_owned();
                    return Err(WaitError::Late { group, synced, replicas, within });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(WaitError::Stopped),
            }
        }
    }

    /// The snapshot of this node's replica, after all that was given to it so far: for audits.
    ///
    /// # Errors
    /// There is no replica here, it cannot give its state, or the node has stopped.
    pub fn state(&self, group: &str) -> Result<Vec<u8>, HostError> {
        self.control.state(group)
    }

    /// The calls that services of this group died of, and that nobody executes, as this node's
    /// replica has them: what `steadfast poisoned` shows.
    ///
    /// # Errors
    /// There is no replica here, or the node has stopped.
    pub fn poisoned(&self, group: &str) -> Result<Vec<PoisonedCall>, HostError> {
        self.control.poisoned(group)
    }

    /// Says where the configuration is read when it is to be [taken anew](Node::reload): only the
    /// first time counts.
    pub fn reloads_from(
        &self,
        source: impl Fn() -> Result<Config, String> + Send + Sync + 'static,
    ) {
        let _ = self.control.renewal.source.set(Box::new(source));
    }

    /// Takes the configuration anew: certificates, the list of denied ones, rights and labels.
    /// Connections go on, but for those whose certificates are denied. Returns the tables whose new
    /// values wait for a restart.
    ///
    /// # Errors
    /// The new configuration is of no use. Then nothing has changed.
    pub fn reload(&self) -> Result<Vec<String>, ReloadError> {
        self.control.reload()
    }

    /// Stops: hands primaries over, leaves the ring, closes all sockets. Bounded in time.
    ///
    /// # Errors
    /// The data plane had failed before, or does not end.
    pub fn stop(mut self) -> Result<(), Stopped> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<(), Stopped> {
        if self.results.take().is_none() {
            return Ok(());
        }
        drop(self.managing.take());
        drop(self.registering.take());
        drop(self.directing.take());
        drop(self.names.take());
        // None is started again from here on.
        let programs = self.control.programs.as_ref().map(Programs::end);
        // If the data plane has ended already, the fate has the reason.
        let _ = self.control.order(Order::Stop);
        let ended = self.running.recv_timeout(STOP_WITHIN);
        if let Some(programs) = programs {
            programs.wait();
        }
        // Last, so that subscribers see the node leave.
        drop(self.admin.take());
        match ended {
            Err(RecvTimeoutError::Timeout) => Err(Stopped::Hung),
            _ => self.control.fate.get().cloned().unwrap_or(Ok(())),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Err(error) = self.shut_down() {
            tracing::error!(%error, "the node did not stop cleanly");
        }
    }
}

/// Has the configuration's programs run.
fn keep_programs(control: &Control, configured: Vec<ProgramConfig>) {
    if let Some(programs) = &control.programs {
        configured.into_iter().for_each(|program| programs.keep(program));
    }
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> StartError {
    move |source| StartError::System { what, source }
}

/// Starts the data-plane thread, which drops `running` at its end.
fn spawn(mut plane: Plane, control: Arc<Control>, running: Sender<()>) -> std::io::Result<()> {
    let body = move || {
        let fate = match catch_unwind(AssertUnwindSafe(|| plane.run())) {
            Ok(Ok(())) => plane.ending.failure().map_or(Ok(()), Err),
            Ok(Err(error)) => Err(Stopped::Failed(error.to_string())),
            Err(panic) => Err(Stopped::Panicked(panic_text(&*panic).into())),
        };
        if let Err(error) = &fate {
            tracing::error!(%error, "the node ends");
        }
        // First the reason, then the end of all channels: threads that see the end ask for the
        // reason.
        let _ = control.fate.set(fate);
        plane.keeping.take().into_iter().for_each(Keeping::close);
        drop(plane);
        drop(running);
    };
    threads::spawn("steadfast plane", body).map(drop)
}
