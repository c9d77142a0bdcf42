//! A node's knowledge of one ring: its members, its datagrams, and how far each member is.
//!
//! The same for a ring in recovery and for an installed one. `recovery.rs` and `operational.rs`
//! decide what to send and where the token goes next.

mod learning;
mod reach;
mod repairs;
mod safe;

use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};
use wire::limits::{MAX_MEMBERS, MAX_RETRANSMIT_REQUESTS, MAX_WINDOW};
use wire::ring::{Ack, Data, Level, Message, Origin, Stable, Token};
use wire::{Member, NodeId, RingId, Time};

use crate::bug::Bug;
use crate::out::Out;
use crate::packing::Assembly;
use crate::watch::Watch;
use crate::window::{Kept, Window};
use crate::{Config, Delivery, Event, Output, Route};
use reach::Reach;
use repairs::Repairs;
use safe::Safe;

/// Passes of the token that one datagram may be ahead of what a node has seen. Beyond any real
/// one, and far below the end of the numbers.
const MAX_HOP_JUMP: u64 = 1 << 32;

/// Acknowledgements asked for in a window. With fewer the sender waits for the last ones; each
/// costs every receiver a datagram, so one for fewer than `LEAST_MARK` datagrams is not worth it.
const MARKS_IN_WINDOW: usize = 4;
const LEAST_MARK: usize = 16;

/// A token that was passed on and may have been lost.
#[derive(Debug)]
pub(crate) struct Passed {
    pub to: NodeId,
    pub datagram: Bytes,
    pub retry_at: Time,
    /// How often it was sent again.
    pub retries: u32,
}

#[derive(Debug)]
pub(crate) struct Order {
    pub id: RingId,
    pub members: Vec<Member>,
    /// Index of this node among the members.
    pub mine: usize,
    pub window: Window,
    /// Up to where each member has everything.
    pub held: Reach,
    /// How far each member has on its disk the messages that it has to keep.
    pub stored: Reach,
    /// More is known of others' disks than was reported to the layer above.
    stored_more: bool,
    /// Delivered up to here.
    pub delivered: u64,
    pub safe: Safe,
    /// The largest count of passes seen.
    pub hop: u64,
    /// The newest turn of which something is seen: its hop, and the first number seen of it.
    stream: (u64, u64),
    /// The token, while this node holds it.
    pub token: Option<Token>,
    /// The token that this node passed on, until somebody shows that it arrived.
    pub passed: Option<Passed>,
    /// Members that asked for the token while this node did not hold it.
    pub asked: u64,
    /// The signs of life of the ring.
    pub watch: Watch,
    repairs: Repairs,
    /// Members that wait for an acknowledgement: one answers all that arrived together.
    pub owed: u64,
    /// Members whose messages this node has promised to deliver in an unfinished recovery.
    pub obliged: u64,
    /// The last report to the layer above: how far a majority has the messages, how far all have
    /// them, and the sum of the others' places, which grows with each of them.
    told: (u64, u64, u64),
}

impl Order {
    pub fn new(id: RingId, members: Vec<Member>, me: Member, now: Time) -> Self {
        let mine = members.iter().position(|m| *m == me).expect("a node is in its own ring");
        Order {
            id,
            mine,
            window: Window::default(),
            held: Reach::new(members.len()),
            stored: Reach::new(members.len()),
            stored_more: false,
            delivered: 0,
            safe: Safe::default(),
            hop: 0,
            stream: (0, 0),
            token: None,
            passed: None,
            asked: 0,
            watch: Watch::new(members.len(), mine, now),
            repairs: Repairs::new(members.len()),
            owed: 0,
            obliged: 0,
            told: (0, 0, 0),
            members,
        }
    }

    /// One bit for each member.
    pub fn everybody(&self) -> u64 {
        u64::MAX >> (MAX_MEMBERS - self.members.len())
    }

    pub fn my_bit(&self) -> u64 {
        1 << self.mine
    }

    pub fn index_of(&self, member: Member) -> Option<usize> {
        self.members.binary_search(&member).ok()
    }

    pub fn all(&self) -> u64 {
        self.held.all()
    }

    /// The largest number that more than half of the members have reached.
    pub fn majority(&self) -> u64 {
        self.held.majority()
    }

    /// The next member of `bits` after this one in ring order.
    pub fn next_of(&self, bits: u64) -> Option<usize> {
        let n = self.members.len();
        (1..n).map(|step| (self.mine + step) % n).find(|i| bits >> i & 1 == 1)
    }

    pub fn settled(&self) -> bool {
        self.token.as_ref().is_some_and(|token| {
            token.missing.is_empty() && self.held.known().iter().all(|aru| *aru == token.sequence)
        })
    }

    /// Everybody has everything up to here, says a datagram; true only if this node has it too.
    pub fn learn_stable(&mut self, stable: u64) {
        if stable <= self.window.aru() {
            self.held.raise_all(stable);
        }
    }

    /// Whether a datagram that was sent after `hop` passes can be real, and if so what it shows:
    /// the token is alive, and one that this node passed on has arrived.
    pub fn witness(&mut self, now: Time, config: &Config, from: usize, hop: u64) -> bool {
        if hop > self.hop.saturating_add(MAX_HOP_JUMP) {
            return false;
        }
        if hop > self.hop {
            self.hop = hop;
            let passed = self.passed.take().is_some();
            self.watch.seen(now, &config.timing, from, passed);
            self.watch.stirred(now);
        } else if hop == self.hop && self.passed.is_none() && self.token.is_none() {
            self.watch.seen(now, &config.timing, self.watch.holder, false);
            if config.planted.is(Bug::CopyIsNews) {
                self.watch.stirred(now);
            }
        }
        true
    }

    /// Keeps a datagram of this ring. True when it is new.
    pub fn receive(
        &mut self,
        now: Time,
        config: &Config,
        (assembly, out): (&mut Assembly, &mut Out),
        sender: Member,
        data: Data,
    ) -> bool {
        if self.token.as_ref().is_some_and(|token| data.sequence > token.sequence) {
            return false; // This node holds the token: nobody else can have given that number out.
        }
        self.learn_stable(data.stable);
        self.advance(config, assembly, out);
        let Some(from) = self.index_of(sender) else { return false };
        if !self.window.admits(data.sequence) || !self.witness(now, config, from, data.hop) {
            return false;
        }
        if data.hop >= self.hop {
            self.watch.answered(from); // An older one may be sent again by somebody else.
        }
        self.safe.told(data.stable);
        self.stream = match self.stream {
            (hop, first) if data.hop == hop => (hop, first.min(data.sequence)),
            (hop, _) if data.hop > hop => (data.hop, data.sequence),
            newer => newer,
        };
        if data.complete || config.planted.is(Bug::BelieveAllComplete) {
            self.learn(from, data.sequence);
        }
        let new = self.keep(sender, data);
        if new {
            // A pulse is believed where nothing is missing: this was sent after the last.
            self.watch.stirred(now);
        }
        new
    }

    fn keep(&mut self, sender: Member, data: Data) -> bool {
        let (sequence, safe) = (data.sequence, data.level() == Level::Safe);
        let new = self.window.insert(Kept { sender, data });
        self.held.set(self.mine, self.window.aru());
        self.believe();
        if new && safe {
            self.safe.saw(sequence);
        }
        new
    }

    /// Whether something is missing that is not only late.
    pub fn misses(&self, config: &Config) -> bool {
        self.missing(config).next().is_some()
    }

    fn missing(&self, config: &Config) -> impl Iterator<Item = u64> {
        let first = self.stream.1;
        let late = first.saturating_sub(config.overlap() as u64)..first;
        let missing = self.window.missing(self.window.high());
        missing.filter(move |sequence| !late.contains(sequence))
    }

    /// "I have everything up to here, and miss these." The last datagrams of the turn before may
    /// have left after the token: they are not missed until another turn has begun.
    pub fn ack(&self, config: &Config) -> Message {
        let missing = self.missing(config).take(MAX_RETRANSMIT_REQUESTS).collect();
        let aru =
            if config.planted.is(Bug::AckHighest) { self.window.high() } else { self.window.aru() };
        Message::Ack(Ack { ring: self.id, hop: self.hop, aru, missing })
    }

    /// Acknowledges to those that asked since the last time, before anything else is done: they
    /// wait, and for what is delivered here nobody does.
    pub fn pay_acks(&mut self, config: &Config, out: &mut Out) {
        let ack = out.encode(self.ack(config));
        let owed = core::mem::take(&mut self.owed);
        let asked = self.members.iter().enumerate().filter(|(i, _)| owed >> i & 1 == 1);
        out.send_first(asked.map(|(_, member)| member.node), ack, Route::Best);
    }

    /// Whether the next datagram asks for an acknowledgement though more follow: as many times
    /// in a window that a sender need not stop and wait for one at its end.
    pub fn is_mark(&self, config: &Config) -> bool {
        let token = self.token.as_ref().expect("only the holder sends");
        let apart = (config.window / MARKS_IN_WINDOW).max(LEAST_MARK) as u64;
        (token.sequence + 1).is_multiple_of(apart)
    }

    /// Gives the next sequence number to `draft` and sends it to all. Only the holder may.
    pub fn transmit(
        &mut self,
        config: &Config,
        out: &mut Out,
        draft: BytesMut,
        origin: Option<Origin>,
        ack: bool,
    ) {
        let stable = self.all();
        self.safe.told(stable);
        let aru = self.window.aru();
        let token = self.token.as_mut().expect("only the holder gives out numbers");
        let complete = aru == token.sequence;
        token.sequence += 1;
        token.home = self.mine as u8;
        let data = Data {
            ring: self.id,
            ack_wanted: ack,
            complete,
            hop: token.hop,
            sequence: token.sequence,
            stable,
            origin,
            body: Bytes::new(),
        };
        let (data, datagram) = data.finish(out.cluster, out.version, out.me, draft);
        if self.members.len() > 1 {
            out.fan(&self.members, datagram, Route::Best);
        }
        if data.level() == Level::Safe {
            self.safe.sent(data.sequence);
        }
        let new = self.keep(out.me, data);
        assert!(
            new || config.planted.is(Bug::AcceptOldToken),
            "flow control leaves room for what the holder sends"
        );
    }

    /// Whether `token` may be taken. A copy is not refused with silence: its sender waits for a
    /// receipt.
    pub fn judge(&self, token: &Token, config: &Config) -> Verdict {
        let possible = token.arus.len() == self.members.len()
            && usize::from(token.home) < self.members.len()
            && token.hop <= self.hop.saturating_add(MAX_HOP_JUMP)
            && token.arus.iter().all(|aru| *aru <= token.sequence)
            && token.sequence <= self.window.aru().saturating_add(MAX_WINDOW as u64);
        if !possible {
            return Verdict::Impossible;
        }
        let newest = if config.planted.is(Bug::AcceptOldToken) { token.hop + 1 } else { token.hop };
        if newest <= self.hop {
            return Verdict::Copy;
        }
        if token.sequence < self.window.high() {
            return Verdict::Impossible; // Newer than all, and yet it knows less than was sent.
        }
        Verdict::Take
    }

    /// Takes the token: merges what it knows, serves its request list, adds own requests. Returns
    /// how many datagrams it sent again.
    pub fn take(
        &mut self,
        now: Time,
        config: &Config,
        (assembly, out): (&mut Assembly, &mut Out),
        mut token: Token,
    ) -> usize {
        self.hop = self.hop.max(token.hop);
        let passed = self.passed.take().is_some();
        self.watch.seen(now, &config.timing, self.mine, passed);
        self.watch.stirred(now);
        self.watch.visited(token.wants);
        self.held.raise(&token.arus);
        self.held.set(self.mine, self.window.aru());
        self.advance(config, assembly, out);
        token.wants = (token.wants | self.asked) & self.everybody() & !self.my_bit();
        self.asked = 0;
        let requests = core::mem::take(&mut token.missing);
        let (held, mut missing): (Vec<u64>, Vec<u64>) =
            requests.into_iter().partition(|sequence| self.window.has(*sequence));
        missing.retain(|sequence| *sequence <= token.sequence);
        self.repairs.serve(&held, &mut missing);
        // Datagrams that leave after the token are still on their way.
        let sent = token.sequence.saturating_sub(token.following.into());
        for sequence in self.window.missing(sent) {
            if missing.len() == MAX_RETRANSMIT_REQUESTS {
                break;
            }
            if !missing.contains(&sequence) {
                missing.push(sequence);
            }
        }
        token.missing = missing;
        token.following = 0;
        self.stream = (token.hop, token.sequence + 1);
        self.token = Some(token);
        self.believe();
        // Nobody else has given out a number beyond these.
        self.held.refute();
        self.stored.refute();
        if config.planted.is(Bug::SkipRetransmission) {
            return 0;
        }
        self.retransmit(out, &held, None)
    }

    /// Sends datagrams again, as they were sent first: to one node that told what it misses, or
    /// to all because the token's list does not say who asked.
    fn retransmit(&self, out: &mut Out, sequences: &[u64], to: Option<NodeId>) -> usize {
        let mut count = 0;
        for (i, sequence) in sequences.iter().enumerate() {
            let Some(kept) = self.window.get(*sequence) else { continue };
            // The answer goes to the first sender, so only that one can ask for it.
            let last = i + 1 == sequences.len();
            let ack_wanted = last && to.is_some() && kept.sender == out.me;
            let bytes = out.encode_as(kept.sender, Data { ack_wanted, ..kept.data.clone() });
            match to {
                Some(node) => out.send_bytes(node, bytes, Route::Every),
                None => out.fan(&self.members, bytes, Route::Every),
            }
            count += 1;
        }
        if count > 0 {
            out.event(Event::Retransmitted(count as u64));
        }
        count
    }

    /// A member reports how far it is. The receiver of the report sends it the missing datagrams at
    /// once.
    pub fn acknowledged(
        &mut self,
        now: Time,
        config: &Config,
        out: &mut Out,
        from: usize,
        ack: Ack,
    ) {
        self.watch.answered(from);
        if !self.witness(now, config, from, ack.hop) {
            return;
        }
        self.learn(from, ack.aru);
        let mut missing = ack.missing;
        self.repairs.select(now, config.timing.ack_wait / 2, from, &mut missing);
        if !config.planted.is(Bug::SkipRetransmission) {
            self.retransmit(out, &missing, Some(self.members[from].node));
        }
    }

    /// Passes the token on, ahead of the last `overtaken` datagrams that wait to leave.
    pub fn pass(&mut self, now: Time, config: &Config, out: &mut Out, to: usize, overtaken: usize) {
        let mut token = self.token.take().expect("only the holder passes the token");
        assert!(to != self.mine, "the token is passed to another member");
        token.hop = token.hop.max(self.hop).saturating_add(1);
        token.arus.copy_from_slice(self.held.known());
        token.following = u16::try_from(overtaken).expect("a window is smaller");
        // `self.hop` stays: it may tell others only what has arrived, or an acknowledgement that
        // overtakes this token would make its receiver take it for a copy.
        self.watch.evidence = now;
        self.watch.holder = to;
        let to = self.members[to].node;
        let datagram = out.encode(Message::Token(token));
        out.send_ahead(to, datagram.clone(), overtaken);
        let retry_at = now + config.timing.token_retransmit;
        self.passed = Some(Passed { to, datagram, retry_at, retries: 0 });
    }

    /// Sends a token again of which nothing was heard.
    pub fn pass_again(&mut self, now: Time, config: &Config, out: &mut Out) {
        if let Some(passed) = self.passed.as_mut().filter(|passed| passed.retry_at <= now) {
            passed.retry_at = now + config.timing.token_retransmit;
            passed.retries += 1;
            out.send_bytes(passed.to, passed.datagram.clone(), Route::Every);
        }
    }

    /// Delivers what can be, and forgets the datagrams that everybody has.
    pub fn advance(&mut self, config: &Config, assembly: &mut Assembly, out: &mut Out) {
        self.deliver(config, assembly, out);
        let stable =
            if config.planted.is(Bug::ReleaseBeforeStable) { self.majority() } else { self.all() };
        // Stable messages have been delivered just now, safe or not.
        self.window.release(stable.min(self.window.aru()).min(self.delivered));
    }

    /// Delivers what has no gap before it, up to a safe message that somebody may lack: what comes
    /// after that waits with it, for there is one order.
    pub fn deliver(&mut self, config: &Config, assembly: &mut Assembly, out: &mut Out) {
        let last = if config.planted.is(Bug::DeliverPastGap) {
            self.window.high()
        } else {
            self.window.aru()
        };
        let stable =
            if config.planted.is(Bug::SafeByMajority) { self.majority() } else { self.all() };
        self.deliver_to(last, stable, config, assembly, out);
    }

    pub fn deliver_to(
        &mut self,
        last: u64,
        stable: u64,
        config: &Config,
        assembly: &mut Assembly,
        out: &mut Out,
    ) {
        while self.delivered < last {
            let next = self.delivered + 1;
            if let Some(kept) = self.window.get(next) {
                let safe = kept.data.level() == Level::Safe && !config.planted.is(Bug::SafeAtOnce);
                if safe && next > stable {
                    return;
                }
                deliver_one(self.id, kept, true, assembly, out);
            }
            self.delivered = next;
        }
    }

    /// The safe datagram that keeps what has arrived from being delivered.
    pub fn blocking(&self) -> Option<&Kept> {
        (self.delivered < self.window.aru()).then(|| self.window.get(self.delivered + 1)).flatten()
    }

    /// Whether everybody has safe messages up to `last`, and may not have been told.
    pub fn owes_stable(&self, last: u64) -> bool {
        self.safe.owes(last, self.all())
    }

    /// Whether more is stable than was told, and somebody may wait for that.
    pub fn could_tell(&self) -> bool {
        self.safe.could_tell(self.all())
    }

    /// "Everybody has everything up to here."
    pub fn stable(&self) -> Message {
        Message::Stable(Stable { ring: self.id, hop: self.hop, stable: self.all() })
    }

    /// The same, to all.
    pub fn announce(&mut self, out: &mut Out) {
        self.safe.announce(self.all());
        let stable = out.encode(self.stable());
        out.fan(&self.members, stable, Route::Best);
    }

    /// Tells upwards when more is known to be held by others, or to be on their disks. True when
    /// more is held by all.
    pub fn tell(&mut self, out: &mut Out) -> bool {
        if core::mem::take(&mut self.stored_more) {
            out.push(Output::Stored { ring: self.id });
        }
        let others = self.held.known().iter().sum::<u64>() - self.held.of(self.mine);
        let held = (self.majority(), self.all(), others);
        let grown = held.1 > self.told.1;
        if held != self.told {
            self.told = held;
            out.push(Output::Held { ring: self.id, majority: held.0, all: held.1 });
        }
        grown
    }

    pub fn check(&self, config: &Config) {
        self.window.check();
        assert!(self.members.windows(2).all(|pair| pair[0].node < pair[1].node));
        assert!(self.held.known().len() == self.members.len() && self.mine < self.members.len());
        assert!(self.stored.known().len() == self.members.len());
        assert!(self.stored.of(self.mine) <= self.delivered, "only what was delivered is kept");
        assert_eq!(self.held.of(self.mine), self.window.aru());
        assert!(self.delivered >= self.window.base(), "nothing is forgotten undelivered");
        assert!(self.token.is_none() || self.passed.is_none(), "held and passed on");
        if let Some(token) = self.token.as_ref().filter(|_| !config.planted.is(Bug::AcceptOldToken))
        {
            assert!(self.held.known().iter().all(|aru| *aru <= token.sequence));
            assert!(token.hop <= self.hop);
        }
        assert!((self.asked | self.obliged | self.owed) & !self.everybody() == 0);
    }
}

/// The verdict on a token that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Take,
    Copy,
    Impossible,
}

/// Hands the messages that end in this datagram up.
pub(crate) fn deliver_one(
    ring: RingId,
    kept: &Kept,
    contiguous: bool,
    assembly: &mut Assembly,
    out: &mut Out,
) {
    if kept.data.origin.is_some() {
        return; // Recovered: delivered as a message of its own ring.
    }
    let sender = kept.sender;
    let (sequence, level) = (kept.data.sequence, kept.data.level());
    for chunk in kept.data.chunks() {
        if let Some(payload) = assembly.add(sender, chunk) {
            let delivery = Delivery { ring, sequence, contiguous, sender, level, payload };
            out.push(Output::Deliver(delivery));
        }
    }
}
