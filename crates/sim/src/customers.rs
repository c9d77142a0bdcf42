//! Clients: sessions with a clock of their own, and what they call.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use client::{CallError, CallId, Config, Output, Session};
use wire::client::Refusal;
use wire::{ClientId, Duration, MethodId, Time};

use crate::check::{Verdict, liveness};
use crate::clock::Clock;
use crate::draw::Draw;
use crate::options::{GroupPlan, Load};
use crate::service::{APPEND, FAIL, MISSING, arguments};

/// The port of node 1 is one higher.
const PORT: u16 = 7_000;

/// Where clients reach this node.
pub fn address(node: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT + 1 + node as u16))
}

/// Which node has this address.
pub fn node_at(address: SocketAddr) -> usize {
    usize::from(address.port() - PORT - 1)
}

/// One client.
pub struct Customer {
    /// Its session.
    pub session: Session,
    /// Its clock.
    pub clock: Clock,
    /// When its session is looked at next.
    pub wake: Option<Time>,
    /// Calls begun while faults happen.
    pub begun: usize,
    under_way: BTreeMap<CallId, Pending>,
}

struct Pending {
    words: String,
    deadline: Time,
    /// It must be answered by the service, whatever happens.
    must: bool,
}

impl Customer {
    /// A client that is given the addresses of some nodes.
    pub fn new(clock: Clock, nodes: usize, draw: &mut Draw) -> Self {
        let given = draw.count(1, nodes);
        let config = Config {
            client: ClientId(draw.bits()),
            addresses: draw.distinct(given, nodes).into_iter().map(address).collect(),
            seed: draw.bits(),
        };
        let now = clock.local(Time::ZERO);
        let session = Session::new(config, now);
        Customer { session, clock, wake: None, begun: 0, under_way: BTreeMap::new() }
    }

    /// Calls that have not ended.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Begins a call as the load says.
    pub fn call(&mut self, now: Time, groups: &[GroupPlan], load: &Load, draw: &mut Draw) {
        let group = draw.pick(groups).name;
        let long = if draw.one_in(8) { load.body } else { load.body.min(64) };
        let filling = draw.between(0, long as u64) as u32;
        let rest = vec![draw.bits() as u8; draw.count(0, long)];
        let method = draw.pick(&[APPEND, APPEND, APPEND, APPEND, APPEND, APPEND, FAIL, MISSING]);
        let patience = draw.pick(&[load.patience, load.patience * 4, Duration::from_secs(10)]);
        self.begun += 1;
        self.begin(now, &group, method, arguments(filling, &rest), (patience, false));
    }

    /// Begins a call that need not succeed: a fault is about it.
    pub fn ask(&mut self, now: Time, group: &str, patience: Duration) {
        self.begin(now, group, APPEND, arguments(7, b"in the storm"), (patience, false));
    }

    /// Begins a call that must succeed: all is healed.
    pub fn demand(&mut self, now: Time, group: &str, patience: Duration) {
        self.begin(now, group, APPEND, arguments(7, b"after the storm"), (patience, true));
    }

    fn begin(
        &mut self,
        now: Time,
        group: &str,
        method: MethodId,
        body: Bytes,
        (patience, must): (Duration, bool),
    ) {
        let local = self.clock.local(now);
        let deadline = local + patience;
        let id = self.session.call(local, group, method, false, body, deadline);
        let words = format!("{id:?} of {} to {group}, begun at {now}", self.session.client());
        let deadline = self.clock.truth(deadline);
        self.under_way.insert(id, Pending { words, deadline, must });
    }

    /// All has healed at `calm`: calls whose deadline is far enough must be answered.
    pub fn calm(&mut self, calm: Time) {
        for pending in self.under_way.values_mut() {
            pending.must |= pending.deadline >= calm + liveness::WITHIN;
        }
    }

    /// A call ended. True if the service answered.
    pub fn done(
        &mut self,
        now: Time,
        call: CallId,
        result: &Result<Bytes, CallError>,
    ) -> Result<bool, crate::check::Violation> {
        let Some(pending) = self.under_way.remove(&call) else {
            panic!("{call:?} ended, which is not under way: twice?");
        };
        let late: Verdict = liveness::ended(&pending.words, now.since(pending.deadline));
        late?;
        let error = match result {
            Ok(_) | Err(CallError::Service(_)) => None,
            Err(CallError::Refused { refusal: Refusal::NoSuchMethod, .. }) => None,
            Err(error) => Some(error.to_string()),
        };
        let answered = error.is_none();
        if pending.must {
            liveness::answered(&pending.words, error)?;
        }
        Ok(answered)
    }

    /// The next thing that the session wants.
    pub fn poll(&mut self) -> Option<Output> {
        self.session.poll_output()
    }
}
