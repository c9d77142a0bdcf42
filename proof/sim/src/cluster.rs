//! The world of whole clusters: stacks with their services, and clients with their sessions.
//!
//! - here: the loop, and nodes that start
//! - `cluster/outputs.rs`: what nodes put out
//! - `cluster/course.rs`: how far the run is
//! - `cluster/executors.rs`: the services of all replicas
//! - `cluster/executions.rs`: what replicas execute
//! - `cluster/clients.rs`: connections, and what clients put out
//! - `cluster/alone.rs`: the end, at which a node is cut off
//! - `cluster/comparing.rs`: states drift apart
//! - `cluster/bench.rs`: the ring is measured
//! - `cluster/moves.rs`: primaries are moved
//! - `cluster/restyles.rs`: groups get other styles
//! - `cluster/managing.rs`: hosts have something to do, and one node manages
//! - `cluster/deploying.rs`: the cluster state says who hosts a group
//! - `cluster/script.rs`: one operation, and the death of who leads after one of its steps
//! - `cluster/keys.rs`: the key that seals is changed
//! - `cluster/disks.rs`: what nodes keep
//! - `cluster/decay.rs`: disks rot and fill up
//! - `cluster/poisoning.rs`: calls kill, and programs die
//! - `cluster/celling.rs`: the cluster is a cell of a system
//! - `cluster/gateways.rs`: callers count their calls, and make them by gateways
//! - `cluster/growth.rs`: nodes come and go
//! - `cluster/versions.rs`: nodes run programs of several versions
//! - `cluster/fetches.rs`: large states go by streams
//! - `cluster/fate.rs`: faults, healing, and the end

mod alone;
mod bench;
mod celling;
mod clients;
mod comparing;
mod course;
mod decay;
mod deploying;
mod disks;
mod executions;
mod executors;
mod fate;
mod fetches;
mod gateways;
mod growing;
mod growth;
mod handlers;
mod hangs;
mod keys;
mod lies;
mod managing;
mod moves;
mod outputs;
mod poisoning;
mod programs;
mod restyles;
mod script;
mod upgrading;
mod versions;

use std::collections::BTreeMap;

use bytes::Bytes;
use engine::Stack;
use ring::Ring;
use wire::client::Frame;
use wire::keys::KeyName;
use wire::{Caller, Duration, GroupId, Incarnation, Member, Time};

use crate::check::{Verdict, Violation, demand};
use crate::customers::Customer;
use crate::draw::Draw;
use crate::fabric::{Fabric, Step};
use crate::identity::address;
use crate::network::{Network, Place};
use crate::options::{CLUSTER, GroupPlan, Options};
use crate::rings::ring_config;
use crate::run::{Outcome, Plant, Summary};
use crate::streams::{Stream, Way};
use crate::strike::Relief;
use crate::watch::Watch;
pub use celling::CellPlan;
use celling::{Celled, Celling, Parcel};
pub(crate) use celling::{Letter, Mail};
use course::{Course, Epilogue};
pub use decay::DecayPlan;
use deploying::Deploying;
pub use deploying::{DeployPlan, Wanted, is_possible};
pub use disks::DiskPlan;
use disks::{Disks, Opening};
use executors::Executors;
pub use gateways::GatewayPlan;
use gateways::{Gateways, Passing};
use growth::Growth;
pub use growth::GrowthPlan;
pub use managing::HostPlan;
use managing::Management;
pub use poisoning::PoisonPlan;
use poisoning::{Dying, Poisoning};
pub use programs::ProgramPlan;
use programs::Programs;
use script::Scripted;
pub use script::{Operation, Script};
pub(crate) use upgrading::is_broken;

/// Happenings of this world beside datagrams and timers.
enum Extra {
    /// For a node: a frame from a client.
    Frame(Caller, Bytes),
    /// For a node: a client's connection is gone.
    Gone(Caller),
    /// For a node: the command under way at a replica ends.
    Executed(GroupId, u64),
    /// A dial reaches the node's host.
    Dial(Caller),
    /// The client learns that its dial succeeded.
    Connected(Caller),
    /// The client learns that a connection is lost, or could not be made.
    Lost(Caller),
    /// The next piece of a connection arrives.
    Carry(Caller, Way),
    /// A session's timer.
    Wake(usize),
    /// A client, or a caller with gateways, thinks of its next call.
    Call(usize),
    /// Something passes between a caller and a gateway.
    Passing(Passing),
    /// For a node: something that its router is told, in this life.
    Parcel(Parcel, Incarnation),
    /// Something that the system does to its cell.
    Celled(Celled),
    /// For a node: its disk has this key, and the life in which it was told to keep it.
    Kept(KeyName, bool, Incarnation),
    /// For a node: its disk has done something in this lane, in this life, or something is due
    /// there.
    Disk(store::Lane, Incarnation),
    DiskDue(Incarnation),
    /// A stream reaches the node that has a state.
    Fetching {
        transfer: engine::Transfer,
        node: usize,
        life: Incarnation,
        from: usize,
    },
    /// For a node: a stream has ended, with the state or without, in this life.
    Fetched(engine::Transfer, Option<Bytes>, Incarnation),
    /// The key is to be changed.
    Rotate,
    /// The ring is to be measured.
    Bench,
    /// A primary is to move.
    Move,
    /// A group is to have another style.
    Restyle,
    /// A node looks at its host, and its manager at the cluster.
    Sample(usize),
    /// A node looks at the cluster state.
    Reconciler(usize),
    /// People say something to the cluster state.
    People,
    /// Newer rules are to come into force.
    Finish,
    /// A node is to come or to go.
    Grow,
    /// A node that has gone ends.
    Ended(usize),
    /// For a node: its disk has this roster, and the life in which it was told to keep it.
    RosterKept(Box<wire::roster::Roster>, Incarnation),
    /// A replica of this group is to lie.
    Lie(usize),
    /// A service is to hang.
    Hang,
    /// A state is to drift.
    Drift,
    /// Programs are to die.
    Fall,
    /// For a node: a program that was started again has come.
    Attached(GroupId, u64),
    /// For a node: the service of this executor dies of a call.
    Dies(u64, Dying),
    /// A service that stands still since this component should be found out.
    HangFound {
        group: GroupId,
        by: Member,
        ring: wire::RingId,
        serial: u64,
    },
    /// A state that drifted in this component should be known to have.
    DriftFound {
        group: GroupId,
        by: Member,
        ring: wire::RingId,
        view: wire::ViewNumber,
    },
    /// A replica that lied in this component should be found out.
    FoundOut {
        group: GroupId,
        by: Member,
        ring: wire::RingId,
        lied: Time,
    },
    Fault,
    Relief(Relief),
    Calm,
    Look,
}

/// How long a vote may be missing.
const VOTE_TIMEOUT: Duration = Duration::from_millis(300);

/// Draws of things that happen beside all others, which stay the same without them.
struct Draws {
    /// One for each group.
    lies: Vec<Draw>,
    restyles: Draw,
    hangs: Draw,
    drifts: Draw,
}

pub(crate) struct Cluster {
    options: Options,
    plant: Plant,
    fabric: Fabric<Stack<Ring>, Extra>,
    executors: Executors,
    /// The nodes' disks, if this seed has disks, and how they rot.
    disks: Disks,
    customers: Vec<Customer>,
    streams: BTreeMap<Caller, Stream>,
    watch: Watch,
    faults: Draw,
    load: Draw,
    draws: Draws,
    /// Which calls kill, if any do.
    poisoning: Option<Poisoning>,
    /// The load of hosts, if it is managed.
    management: Option<Management>,
    /// The deployments, if there are any.
    deploying: Option<Deploying>,
    /// The nodes' programs, if they are of several versions.
    programs: Option<Programs>,
    /// The nodes that come and go, if any do.
    growth: Option<Growth>,
    /// Callers that count their calls, and all clients are gateways.
    gateways: Option<Gateways>,
    /// The cell that this cluster is, if it is one.
    celling: Option<Box<Celling>>,
    course: Course,
    summary: Summary,
}

/// Runs the cluster of these options.
pub fn run(options: Options, draw: &mut Draw, plant: Plant, aloud: bool) -> Outcome {
    let mut world = Cluster::new(options, draw, plant, aloud);
    let verdict = crate::run::guarded(|| world.run());
    world.outcome(verdict)
}

impl Cluster {
    /// A cluster none of whose nodes runs yet.
    pub(crate) fn new(options: Options, draw: &mut Draw, plant: Plant, aloud: bool) -> Cluster {
        let network = Network::new(options.clocks.len(), options.weather, draw.fork());
        let clocks = options.clocks[..options.nodes].to_vec();
        let mut clients = draw.fork();
        let (nodes, grows) = (options.nodes, options.growth.is_some());
        let customer = |clock| {
            let mut customer = Customer::new(clock, nodes, grows, &mut clients);
            customer.session.plant(plant.client);
            customer
        };
        let mut world = Cluster {
            fabric: Fabric::new(clocks, network, aloud),
            plant,
            executors: Executors::new(nodes, options.clumsy),
            disks: Disks::new(nodes, options.decay, draw),
            customers: options.clocks[nodes..].iter().copied().map(customer).collect(),
            streams: BTreeMap::new(),
            watch: Watch::new(&options),
            faults: draw.fork(),
            load: draw.fork(),
            draws: Draws {
                lies: (0..options.groups.len() as u64)
                    .map(|group| Draw::new(clients.bits() ^ group))
                    .collect(),
                restyles: Draw::new(clients.clone().bits() ^ 0x5717),
                hangs: Draw::new(clients.clone().bits() ^ 0x4a46),
                drifts: Draw::new(clients.clone().bits() ^ 0xd21f),
            },
            poisoning: None,
            management: options.hosts.clone().map(|plan| Management::new(plan, plant)),
            deploying: options.deploy.clone().map(|plan| Deploying::new(plan, plant, nodes)),
            programs: options
                .programs
                .map(|plan| Programs::new(plan, nodes, Draw::new(clients.clone().bits() ^ 0x9406))),
            growth: options
                .growth
                .map(|plan| Growth::new(plan, nodes, Draw::new(clients.clone().bits() ^ 0x9207))),
            gateways: options.gateways.map(|plan| {
                let own = Draw::new(clients.clone().bits() ^ 0x6a7e);
                Gateways::new(plan, options.load.clients, nodes, own)
            }),
            celling: options.cell.clone().map(|plan| Box::new(Celling::new(plan, nodes, plant))),
            course: Course::new(options.script.map(Scripted::new)),
            summary: Summary::default(),
            options,
        };
        let names = world.customers.iter().map(|customer| customer.session.client()).collect();
        world.poisoning = world.options.poison.map(|plan| Poisoning::new(plan, names));
        if let Some(rate) = world.options.outsider {
            world.fabric.seal(rate, plant, &mut draw.fork());
        }
        if world.celling.is_some() {
            world.begin_cell(aloud);
        }
        world
    }

    /// The run has ended so.
    pub(crate) fn outcome(mut self, verdict: Verdict) -> Outcome {
        if verdict.is_err() {
            self.tell_leads();
        }
        Outcome {
            verdict,
            hash: self.fabric.trace.hash(),
            summary: Summary {
                virtual_time: self.fabric.now(),
                steps: self.fabric.trace.steps(),
                datagrams: self.fabric.datagrams,
                ..self.summary
            },
        }
    }

    /// Says of each replica what it knows of who executes first: why it waits, if it does.
    fn tell_leads(&mut self) {
        for plan in &self.options.groups {
            let id = GroupId::of(&plan.name);
            for node in 0..self.options.nodes {
                let process = self.fabric.hosts[node].process.as_ref();
                if let Some(lead) = process.and_then(|process| process.explain_lead(id)) {
                    let name = &plan.name;
                    self.fabric.say(|| format!("{name} at node {}: {lead}", node + 1));
                }
            }
        }
    }

    fn run(&mut self) -> Verdict {
        self.set_out();
        while !self.is_over() {
            let advanced = self.advance(Time(u64::MAX))?;
            demand(advanced, "liveness", || "nothing is left to happen".into())?;
        }
        self.finish().and_then(|()| self.cut_off())
    }

    /// Plans the nodes' starts, calls and faults.
    pub(crate) fn set_out(&mut self) {
        for node in 0..self.options.nodes {
            let span = self.faults.span(Duration::ZERO, Duration::from_millis(60));
            self.fabric.later(span, Extra::Relief(Relief::Boot(node)));
        }
        self.plan_calls();
        self.plan_key_change();
        self.plan_strays();
        self.plan_bench();
        self.plan_move();
        self.plan_lies();
        self.plan_hang();
        self.plan_drift();
        self.plan_fall();
        self.plan_restyle();
        self.plan_samples();
        self.plan_deployments();
        self.plan_upgrades();
        self.plan_growth();
        let first = self.options.faults.wait(&mut self.faults);
        self.fabric.later(first, Extra::Fault);
        self.fabric.later(self.options.faults.phase, Extra::Calm);
    }

    /// All has healed, and all that was demanded since then was shown.
    pub(crate) fn is_over(&self) -> bool {
        self.course.epilogue == Epilogue::Over
    }

    /// When something happens next.
    pub(crate) fn due(&self) -> Option<Time> {
        self.fabric.due()
    }

    /// The next happening, if there is one by then.
    pub(crate) fn advance(&mut self, by: Time) -> Result<bool, Violation> {
        let Some(step) = self.fabric.step(by) else { return Ok(false) };
        if !self.course.is_calm() && self.fabric.turns() > self.options.budget {
            self.heal()?;
        }
        self.fabric.sealed()?;
        match step {
            Step::Ran(node) => self.drain(node)?,
            Step::Node(node, extra) => self.node_extra(node, extra)?,
            Step::World(extra) => self.extra(extra)?,
        }
        self.interrupt()?;
        Ok(true)
    }

    fn extra(&mut self, extra: Extra) -> Verdict {
        match extra {
            Extra::Dial(stream) => self.dial(stream),
            Extra::Connected(stream) => return self.connected(stream),
            Extra::Lost(stream) => return self.lost(stream),
            Extra::Carry(stream, way) => return self.carry(stream, way),
            Extra::Wake(client) => return self.wake(client),
            Extra::Call(caller) if self.gateways.is_some() => return self.count_call(caller),
            Extra::Call(client) => return self.call(client),
            Extra::Passing(passing) => return self.pass(passing),
            Extra::Celled(celled) => return self.celled(celled),
            Extra::Fetching { transfer, node, life, from } => {
                self.give(transfer, (node, life), from);
            }
            Extra::Rotate => return self.rotate(),
            Extra::Bench => return self.bench(),
            Extra::Move => return self.move_some(),
            Extra::Restyle => return self.restyle_some(),
            Extra::Sample(node) => return self.sample(node),
            Extra::Reconciler(node) => return self.reconcile_node(node),
            Extra::People => return self.people(),
            Extra::Finish => return self.finish_upgrade(),
            Extra::Grow => return self.grow(),
            Extra::Ended(node) => self.ended(node),
            Extra::Lie(group) => self.lie(group),
            Extra::FoundOut { group, by, ring, lied } => {
                if self.watch.component(by) == ring && self.is_whole() && self.is_one_ring() {
                    self.found_out(by, group, lied)?;
                }
            }
            Extra::Hang => self.hang(),
            Extra::Drift => self.drift(),
            Extra::DriftFound { group, by, ring, view } => {
                if self.watch.component(by) == ring {
                    self.drift_found(by, group, view)?;
                }
            }
            Extra::Fall => return self.fall_some(),
            Extra::HangFound { group, by, ring, serial } => {
                if self.watch.component(by) == ring {
                    self.hang_found(group, by, ring, serial)?;
                }
            }
            Extra::Fault => return self.fault(),
            Extra::Relief(relief) => return self.relieve(relief),
            Extra::Calm => return self.heal(),
            Extra::Look => return self.look(),
            Extra::Frame(..)
            | Extra::Gone(_)
            | Extra::Executed(..)
            | Extra::Attached(..)
            | Extra::Parcel(..)
            | Extra::Dies(..)
            | Extra::Kept(..)
            | Extra::RosterKept(..)
            | Extra::Fetched(..)
            | Extra::Disk(..)
            | Extra::DiskDue(_) => {
                unreachable!("these are for a node")
            }
        }
        Ok(())
    }

    /// Starts a node in a new life, with its replicas.
    fn boot(&mut self, node: usize) -> Verdict {
        if self.fabric.hosts[node].process.is_some() || !self.may_start(node) {
            return Ok(());
        }
        let step = self.faults.between(1, 1_000_000);
        self.fabric.hosts[node].incarnation.0 += step;
        let me = self.fabric.member(node);
        let mut ring = ring_config(&self.options, me, self.plant);
        let mut config = engine::Config::new(me, ring.nodes.clone(), CLUSTER.into());
        config.address = Some(address(node));
        config.quorum = self.options.quorum;
        config.sealing = self.fabric.key(node);
        config.waiting = self.options.waiting;
        config.storage = match self.open_store(node)? {
            Opening::Nothing => None,
            Opening::Opened(recovery) => Some(*recovery),
            // Its node ends at once, and somebody starts it again.
            Opening::Full => {
                self.fabric.later(disks::AGAIN, Extra::Relief(Relief::Boot(node)));
                return Ok(());
            }
        };
        let level = config.storage.as_ref().map_or(0, engine::Recovery::level);
        self.install_program(node, level, (&mut ring, &mut config));
        self.configure_nodes(node, (&mut ring, &mut config));
        config.snapshot_after = self.options.snapshot_after();
        config.streamed = if self.options.streams { 0 } else { usize::MAX };
        config.vote_timeout = VOTE_TIMEOUT;
        config.compare_every = self.options.compare_every();
        let never = engine::HangRule { misses: 0, ..hangs::RULE };
        config.hang = self.options.hangs.map_or(never, |_| hangs::RULE);
        self.plant.into_engine(&mut config);
        let now = self.fabric.local(node);
        let ring = Ring::new(ring, now).expect("drawn knobs are in range");
        let mut stack = Stack::new(config, ring, now);
        self.executors.clear(node);
        self.begin_deployments(node, &mut stack);
        self.begin_carrying(node, &mut stack);
        // The first may be those of which the cluster state says who hosts them.
        let mine = &self.options.groups[self.options.deployed()..];
        for group in mine.iter().filter(|group| group.hosts.contains(&node)) {
            let id = Self::take_in(&mut stack, now, group, &self.watch).expect("names are good");
            stack.set_checkpoints(now, id, group.checkpoints);
            self.executors.host(me, group);
        }
        self.watch.born(me);
        self.management.iter_mut().for_each(|management| management.begin(node));
        self.fabric.start(node, stack);
        self.fabric.say(|| format!("{me} starts"));
        self.begin_join(node);
        self.begin_gateways(node);
        self.drain(node)
    }

    /// A replica of this group has come, with its service in its initial state.
    pub(super) fn hosted(&mut self, me: Member, plan: &GroupPlan) -> Verdict {
        let id = GroupId::of(&plan.name);
        self.watch.promise.hosted(id, me);
        self.watch.cold.hosted(me, id);
        self.watch.poisons.gave_up(me, id);
        self.watch.replaced(me, id, &[])?;
        self.executors.host(me, plan);
        Ok(())
    }

    /// An event that only this world understands reaches a node's process.
    fn node_extra(&mut self, node: usize, extra: Extra) -> Verdict {
        let (now, wall) = (self.fabric.local(node), self.fabric.wall(node));
        match extra {
            Extra::Frame(caller, bytes) => {
                let frame = decode(&bytes);
                self.fabric.note(7, node, [caller.0, bytes.len() as u64]);
                self.fabric.say(|| {
                    format!("{} <- {caller} {}", crate::fabric::node_id(node), Brief(&frame))
                });
                if let Frame::Request(request) = &frame {
                    self.note_asked(node, request);
                }
                if let Some(stack) = &mut self.fabric.hosts[node].process {
                    stack.handle_frame(now, wall, caller, frame);
                }
            }
            Extra::Gone(caller) => {
                if let Some(stack) = &mut self.fabric.hosts[node].process {
                    stack.handle_disconnect(now, caller);
                }
            }
            Extra::Kept(name, seals, life) => {
                let host = &mut self.fabric.hosts[node];
                if let Some(stack) = host.process.as_mut().filter(|_| host.incarnation == life) {
                    stack.handle_key_kept(now, name, seals);
                }
            }
            Extra::RosterKept(roster, life) => self.roster_kept(node, *roster, life),
            Extra::Fetched(transfer, state, life) => self.fetched(node, transfer, state, life),
            Extra::Executed(group, serial) => self.executed(node, group, serial)?,
            Extra::Attached(group, serial) => self.attached(node, group, serial)?,
            Extra::Parcel(parcel, life) => self.deliver_parcel(node, parcel, life)?,
            Extra::Dies(serial, dying) => self.dies(node, serial, dying)?,
            Extra::Disk(lane, life) => self.disk_done(node, lane, life),
            Extra::DiskDue(life) => self.disk_due(node, life),
            _ => unreachable!("this is for the world"),
        }
        self.drain(node)
    }

    /// The place of a client in the network.
    fn place(&self, client: usize) -> Place {
        let home = self.gateways.as_ref().map_or(Err(client), |gateways| gateways.home(client));
        home.unwrap_or_else(|client| self.options.nodes + client)
    }
}

fn decode(bytes: &Bytes) -> Frame {
    let mut buffer = bytes::BytesMut::from(&bytes[..]);
    let frame = Frame::take(&mut buffer).expect("frames are well formed");
    frame.expect("a piece is a whole frame")
}

/// A frame in words, for traces.
struct Brief<'a>(&'a Frame);

impl std::fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = format!("{:?}", self.0);
        match words.char_indices().nth(300) {
            Some((end, _)) => write!(f, "{}...", &words[..end]),
            None => f.write_str(&words),
        }
    }
}
