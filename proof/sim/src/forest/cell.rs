//! A cell: its book, its carriers' routers, and a model of its ring.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use cells::{
    Carrier, Cell, Chosen, Command, End, LinkId, Made, Message, Output, Path, Router, Shape, Sight,
    Verdict,
};
use wire::client::{Target, Targets};
use wire::ordered::Style;
use wire::{ClientId, Duration, Incarnation, Member, NodeId, Time, ViewNumber};

use super::options::{CARRIERS, Options};
use crate::celled::{address, book, router};
use crate::plant::Plant;

/// One carrier.
struct Node {
    life: u64,
    runs: bool,
    stopped: bool,
    router: Router<Chosen>,
    wake: Option<Time>,
    located: BTreeSet<String>,
}

/// A cell.
pub(super) struct CellModel {
    pub(super) path: Path,
    pub(super) parent: Option<usize>,
    parents_at: Vec<SocketAddr>,
    pub(super) book: Cell,
    nodes: BTreeMap<NodeId, Node>,
    count: u16,
    /// The carriers in the ring, the seat first.
    pub(super) order: Vec<NodeId>,
    /// Those that do not carry run.
    others_run: bool,
    pub(super) stuck_until: Time,
    formation: u64,
    /// The views so far, and since when.
    pub(super) views: Vec<Time>,
    executed: BTreeMap<(ClientId, u64), (u64, End)>,
    shape: Shape,
    plant: Plant,
}

impl CellModel {
    pub(super) fn new(
        cell: usize,
        path: Path,
        parent: Option<usize>,
        options: &Options,
        plant: Plant,
    ) -> CellModel {
        let carriers = || (1..=CARRIERS).map(NodeId);
        let parents_at = parent.map(|parent| carriers().map(|it| address(parent, it)).collect());
        let shape = options.shape;
        let node = |node| Node {
            life: 0,
            runs: false,
            stopped: false,
            router: router(node, shape, plant),
            wake: None,
            located: BTreeSet::new(),
        };
        let mut book = book(&path, plant);
        let begin = Time(1_700_000_000_000_000_000 + cell as u64);
        for export in ["alarms".to_owned(), format!("group-{cell}")] {
            book.apply(begin, Command::Export(export)).expect("few exports");
        }
        CellModel {
            path,
            parent,
            parents_at: parents_at.unwrap_or_default(),
            book,
            nodes: carriers().map(|id| (id, node(id))).collect(),
            count: options.nodes,
            order: Vec::new(),
            others_run: true,
            stuck_until: begin,
            formation: 0,
            views: Vec::new(),
            executed: BTreeMap::new(),
            shape,
            plant,
        }
        .with_carriers(cell, begin)
    }

    fn with_carriers(mut self, cell: usize, begin: Time) -> CellModel {
        for node in self.ids() {
            let member = Member { node, incarnation: Incarnation(1) };
            let (links, calls) = (address(cell, node), address(cell, node));
            let carry = Command::Carry(Carrier { member, links, calls });
            self.book.apply(begin, carry).expect("few carriers");
        }
        self
    }

    pub(super) fn ids(&self) -> Vec<NodeId> {
        self.nodes.keys().copied().collect()
    }

    pub(super) fn running(&self) -> Vec<NodeId> {
        self.nodes.iter().filter(|(_, node)| node.runs).map(|(id, _)| *id).collect()
    }

    pub(super) fn start(&mut self, _now: Time, id: NodeId) {
        let (shape, plant) = (self.shape, self.plant);
        if let Some(node) = self.nodes.get_mut(&id) {
            node.life += 1;
            (node.runs, node.stopped, node.wake) = (true, false, None);
            node.router = router(id, shape, plant);
            node.located.clear();
        }
    }

    pub(super) fn kill(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.runs = false;
            node.life += 1;
        }
    }

    pub(super) fn set_stopped(&mut self, id: NodeId, stopped: bool) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.stopped = stopped;
        }
    }

    pub(super) fn set_others(&mut self, run: bool) {
        self.others_run = run;
    }

    pub(super) fn is_stopped(&self, id: NodeId) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.stopped)
    }

    pub(super) fn runs(&self, id: NodeId) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.runs)
    }

    /// It runs, and is not stopped.
    pub(super) fn acts(&self, id: NodeId) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.runs && !node.stopped)
    }

    pub(super) fn life(&self, id: NodeId) -> u64 {
        self.nodes.get(&id).map_or(0, |node| node.life)
    }

    /// A majority of the nodes is in the ring.
    pub(super) fn has_quorum(&self) -> bool {
        let others = if self.others_run { usize::from(self.count) - self.nodes.len() } else { 0 };
        (self.order.len() + others) * 2 > usize::from(self.count)
    }

    pub(super) fn begin_forming(&mut self, until: Time) -> u64 {
        self.stuck_until = self.stuck_until.max(until);
        self.formation += 1;
        self.formation
    }

    /// The ring forms of those that act. False: it forms once more.
    pub(super) fn form(&mut self, now: Time, formation: u64) -> bool {
        if formation != self.formation {
            return false;
        }
        let acting: Vec<NodeId> = self.ids().into_iter().filter(|id| self.acts(*id)).collect();
        self.order.retain(|id| acting.contains(id));
        let new: Vec<NodeId> = acting.into_iter().filter(|id| !self.order.contains(id)).collect();
        self.order.extend(new);
        self.views.push(now);
        true
    }

    pub(super) fn seat(&self) -> Option<NodeId> {
        self.order.first().copied().filter(|_| self.has_quorum())
    }

    fn with<T>(
        &mut self,
        id: NodeId,
        now: Time,
        give: impl FnOnce(&mut Router<Chosen>, &Sight<'_>) -> T,
    ) -> Option<T> {
        let rank = self.rank(id);
        let CellModel { book, order, parents_at, nodes, count, .. } = self;
        let sight = Sight { cell: book, rank, order, parent: parents_at, nodes: *count, wall: now };
        Some(give(&mut nodes.get_mut(&id)?.router, &sight))
    }

    fn rank(&self, id: NodeId) -> Option<usize> {
        let place = self.order.iter().position(|node| *node == id);
        place.filter(|_| self.has_quorum())
    }

    pub(super) fn look(&mut self, now: Time, id: NodeId) {
        self.with(id, now, |router, sight| router.look(now, sight));
    }

    pub(super) fn is_due(&self, now: Time, id: NodeId) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.wake.is_some_and(|at| at <= now))
    }

    /// When the node's router is to be woken, if that is news.
    pub(super) fn next_wake(&mut self, now: Time, id: NodeId) -> Option<Time> {
        let due = self.with(id, now, |router, sight| router.next_timeout(now, sight))??;
        let node = self.nodes.get_mut(&id)?;
        let due = due.max(now);
        if node.wake.is_some_and(|at| at > now && at <= due) {
            return None;
        }
        node.wake = Some(due);
        Some(due)
    }

    pub(super) fn poll_output(&mut self, id: NodeId) -> Option<Output> {
        self.nodes.get_mut(&id)?.router.poll_output()
    }

    pub(super) fn link_up(
        &mut self,
        now: Time,
        id: NodeId,
        link: LinkId,
        proven: Option<(Path, NodeId)>,
    ) {
        self.with(id, now, |router, sight| router.handle_link_up(now, link, proven, sight));
    }

    pub(super) fn link_down(&mut self, now: Time, id: NodeId, link: LinkId) {
        self.with(id, now, |router, sight| router.handle_link_down(now, link, sight));
    }

    pub(super) fn message(&mut self, now: Time, id: NodeId, link: LinkId, message: Message) {
        self.with(id, now, |router, sight| router.handle_message(now, link, message, sight));
    }

    pub(super) fn verdict(
        &mut self,
        id: NodeId,
        ask: u64,
        verdict: Result<Verdict, Option<cells::Refusal>>,
    ) {
        self.with(id, Time::ZERO, |router, sight| router.handle_verdict(ask, verdict, sight));
    }

    pub(super) fn located(&mut self, now: Time, id: NodeId, group: &str, found: Option<Targets>) {
        self.with(id, now, |router, sight| router.handle_located(now, group, found, sight));
    }

    pub(super) fn executed(&mut self, now: Time, id: NodeId, call: u64, end: End) {
        self.with(id, now, |router, sight| router.handle_executed(call, end, sight));
    }

    pub(super) fn call(
        &mut self,
        now: Time,
        id: NodeId,
        token: u64,
        (to, call, left): (Path, cells::Call, Duration),
    ) {
        self.with(id, now, |router, sight| {
            router.call(now, token, Made { to, call, left, caller: Some("client-x".into()) }, sight)
        });
    }

    pub(super) fn locating(&mut self, id: NodeId, group: &str) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.located.insert(group.into());
        }
    }

    pub(super) fn forget(&mut self, id: NodeId, group: &str) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.located.remove(group);
        }
    }

    pub(super) fn is_located(&self, id: NodeId, group: &str) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.located.contains(group))
    }

    pub(super) fn all_located(&self) -> Vec<(NodeId, String)> {
        let all = self.nodes.iter().filter(|(_, node)| node.runs);
        all.flat_map(|(id, node)| node.located.iter().map(|group| (*id, group.clone()))).collect()
    }

    /// Where a group of the cell is: its targets change with each view.
    pub(super) fn targets(&self, group: &str) -> Option<Targets> {
        let is_there = group.starts_with("group-") || group == "alarms";
        let address = |node: &NodeId| self.book.carrier(*node).map(|carrier| carrier.calls);
        let target = |node: &NodeId| Some(Target { node: *node, address: address(node)? });
        is_there.then(|| Targets {
            view: ViewNumber(self.views.len() as u64),
            style: Style::SemiActive,
            nodes: self.order.iter().filter_map(target).collect(),
        })
    }

    /// The group executes a call, unless its session knows it.
    pub(super) fn execute(&mut self, call: &cells::Call) -> End {
        let known = self.executed.entry((call.client, call.number)).or_insert((0, End::Lost));
        if known.0 == 0 {
            *known = (1, End::Answer(call.number.to_le_bytes().to_vec().into()));
        }
        known.1.clone()
    }

    /// How often a call was executed.
    pub(super) fn executions(&self, key: (ClientId, u64)) -> u64 {
        self.executed.get(&key).map_or(0, |(times, _)| *times)
    }

    pub(super) fn neighbours(&self, id: NodeId) -> Vec<Path> {
        let node = self.nodes.get(&id).filter(|node| node.runs);
        let all = node.into_iter().flat_map(|node| node.router.neighbours());
        all.map(|(path, ..)| path).collect()
    }

    pub(super) fn calls_under_way(&self, id: NodeId) -> usize {
        self.nodes.get(&id).map_or(0, |node| node.router.calls_under_way())
    }
}
