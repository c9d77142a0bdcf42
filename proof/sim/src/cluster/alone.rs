//! The end of a run: a node is cut off while all is quiet, and asked for stale reads.

use bytes::Bytes;
use engine::Quorum;
use history::models::RegisterCall;
use wire::client::{Access, Frame, Hello, Request};
use wire::ordered::{AckLevel, Style};
use wire::{Caller, ClientId, Duration, GroupId};

use super::Cluster;
use crate::check::Verdict;
use crate::registers::pack;

/// The connection and the client that ask.
const ASKER: Caller = Caller(u64::MAX - 7);
const CLIENT: ClientId = ClientId(u64::MAX - 7);

/// After this long a node knows that it is cut off, and has answered.
const KNOWN: Duration = Duration::from_secs(2);

impl Cluster {
    /// One node of a quiet cluster is cut off: its replicas answer stale reads alone.
    pub(super) fn cut_off(&mut self) -> Verdict {
        let whole = self.options.nodes >= 3 && self.options.quorum == Quorum::Majority;
        if !whole || self.celling.is_some() || self.growth.is_some() {
            return Ok(());
        }
        // Each node learns first that its last calls are held: it may show no other (seed 60003329).
        self.pass_time(KNOWN)?;
        let node = self.faults.count(0, self.options.nodes - 1);
        let others = (0..self.options.nodes).filter(|other| *other != node);
        let cuts: Vec<_> = others.flat_map(|other| [(node, other), (other, node)]).collect();
        self.fabric.say(|| format!("node {} is cut off at the end", node + 1));
        self.fabric.network.cut_all(&cuts);
        self.pass_time(KNOWN)?;
        self.ask_alone(node)?;
        self.pass_time(KNOWN)?;
        self.course.alone.finish(self.fabric.member(node))
    }

    fn pass_time(&mut self, span: Duration) -> Verdict {
        let until = self.fabric.now() + span;
        while self.advance(until)? {}
        Ok(())
    }

    /// The groups that this node's replicas can show all of, and whose reads stand in no history.
    fn shown_alone(&mut self, node: usize) -> Vec<(GroupId, wire::ViewNumber)> {
        let me = self.fabric.member(node);
        let lying = self.options.lying();
        let Some(process) = self.fabric.running(node) else { return Vec::new() };
        let status = process.status();
        if status.ring.quorate != Some(false) {
            return Vec::new();
        }
        let shown = status.groups.iter().filter_map(|group| {
            let id = GroupId::of(&group.name);
            let synced = group.replicas.iter().any(|it| it.member == me && it.synced);
            let runs = group.options.style != Style::ColdPassive || group.primary == Some(me);
            let plan = self.options.groups.iter().find(|plan| GroupId::of(&plan.name) == id)?;
            let counts = group.options.ack != AckLevel::One && group.options.style.has_state();
            let reads = plan.reads() && !plan.orders_reads();
            let well = reads && !group.hung && !lying.contains(&id);
            (synced && runs && counts && well).then_some((id, group.view))
        });
        let shown: Vec<_> = shown.collect();
        let there = |(id, _): &(GroupId, _)| self.executors.get(node, *id).is_some();
        shown.into_iter().filter(there).collect()
    }

    fn ask_alone(&mut self, node: usize) -> Verdict {
        let shown = self.shown_alone(node);
        let (method, word) = pack(&RegisterCall::Read(0));
        let body = Bytes::copy_from_slice(&word.to_le_bytes());
        let requests: Vec<Request> = shown
            .into_iter()
            .zip(1..)
            .map(|((group, view), number)| Request {
                group,
                client: CLIENT,
                number,
                unanswered: number,
                view,
                method,
                timeout_us: 1_000_000,
                priority: 0,
                json: false,
                beside: false,
                has_key: false,
                access: Access::Stale { max_age_ms: 60_000 },
                body: body.clone(),
            })
            .collect();
        let (now, wall) = (self.fabric.local(node), self.fabric.wall(node));
        let Some(process) = self.fabric.running(node) else { return Ok(()) };
        process.handle_frame(now, wall, ASKER, Frame::Hello(Hello::new(CLIENT)));
        for request in requests {
            self.watch.asked(&request, u64::MAX)?;
            self.course.alone.asked(request.group);
            let Some(process) = self.fabric.running(node) else { return Ok(()) };
            process.handle_frame(now, wall, ASKER, Frame::Request(request));
        }
        self.drain(node)
    }

    /// A node writes to the one who asks.
    pub(super) fn answered_alone(&mut self, caller: Caller, frame: &Frame) {
        if let Frame::Reply(reply) = frame
            && caller == ASKER
        {
            self.course.alone.answered(reply.group, &reply.outcome);
        }
    }
}
