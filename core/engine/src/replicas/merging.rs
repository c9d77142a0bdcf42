//! Histories that were given up are merged into those that go on, where services can
//! (`docs/protocol/group.md`, "Merges").

use alloc::format;
use alloc::string::String;

use bytes::Bytes;
use wire::limits::{MAX_MERGE, MAX_PARTED_BYTES};
use wire::ordered::{MergeChunk, Ordered, Relay};
use wire::versions::WHOLE;
use wire::{ClientId, GroupId, Member, RingId, Time, ViewNumber};

use crate::api::{Event, Executed, ServiceOutcome, Ticket};
use crate::bug::Bug;
use crate::directory::State;
use crate::ordering::Ordering;
use crate::parts::Key;
use crate::replicas::ReplicaHandler;
use crate::session::kept;
use crate::style::StyleRules;

const NO_MERGE: &str = "the service does not merge";
const NOT_RUNNING: &str = "the service did not run here";

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// The service's state is kept, to be merged into the history that goes on.
    ///
    /// # Errors
    /// It is not: the reason, if the service merges.
    pub(crate) fn set_apart(
        &mut self,
        now: Time,
        id: GroupId,
        calls: u64,
    ) -> Result<(), Option<String>> {
        let Some(hosted) = self.replicas.hosted.get(&id) else { return Err(None) };
        if hosted.program.merges == Some(false) {
            return Err(None);
        }
        let mut asked = None;
        self.with_replica(now, id, |replica, effects| asked = replica.ask_for_parted(effects));
        let Some(hosted) = self.replicas.hosted.get(&id) else { return Err(None) };
        let name = hosted.name.clone();
        let Some(asked) = asked else {
            let key = (id, self.history_of(id, true));
            let others = hosted.replica.style().logs()
                && self.replicas.merges.await_others(now, key, name, calls);
            return if others { Ok(()) } else { Err(Some(NOT_RUNNING.into())) };
        };
        let whole = asked.whole && hosted.counts.is_of_component();
        let key = (id, self.history_of(id, whole));
        let missing = asked.missing.min(calls);
        if !self.replicas.merges.ask(key, name.clone(), calls - missing, asked.ticket) {
            return Err(Some("too many states wait to be merged here".into()));
        }
        if missing > 0 {
            let reason = "they were ordered here, and not executed";
            self.discarded(id, (name, missing), Some(reason.into()));
        }
        Ok(())
    }

    /// The name of the group's history that ends here. Replicas that have the whole of it say the same,
    /// and it is merged once.
    fn history_of(&self, id: GroupId, whole: bool) -> ClientId {
        let last = self.base.lineages.last();
        let ring = (last.ring.sequence, last.ring.representative.0);
        let own = (!whole).then_some(self.base.me);
        let name = format!("{}/{}/{ring:?}/{}/{own:?}", id.0, last.epoch, last.sequence);
        ClientId(GroupId::of(&name).0)
    }

    /// An answer of a service. Returns it, unless it is the state of a history that was given up.
    pub(crate) fn take_parted(
        &mut self,
        group: GroupId,
        ticket: Ticket,
        executed: Executed,
    ) -> Option<Executed> {
        let key = match self.replicas.merges.is_idle() {
            true => return Some(executed),
            false => self.replicas.merges.asked_by(group, ticket),
        };
        let Some(key) = key else { return Some(executed) };
        match executed {
            Executed::Snapshot(Ok(state)) if state.len() > MAX_MERGE => {
                let bytes = state.len();
                let reason = format!("the state has {bytes} bytes, the limit is {MAX_MERGE}");
                self.not_merged(key, reason);
            }
            Executed::Snapshot(Ok(state)) => {
                if !self.replicas.merges.keep(key, state) {
                    let limit = MAX_PARTED_BYTES;
                    let reason =
                        format!("{limit} bytes of states wait to be merged here, the limit");
                    self.not_merged(key, reason);
                }
            }
            Executed::Snapshot(Err(reason)) => self.not_merged(key, reason),
            executed => panic!("{executed:?} is no state"),
        }
        None
    }

    /// The service that was asked for its state is gone.
    pub(crate) fn lose_parted(&mut self, group: GroupId) {
        if let Some(hosted) = self.replicas.hosted.get_mut(&group)
            && hosted.program.journal.is_some()
        {
            hosted.program.merges = None; // the next program may be another
        }
        for key in self.replicas.merges.asked(group) {
            self.not_merged(key, "the service ended before it had given its state".into());
        }
    }

    fn not_merged(&mut self, key: Key, reason: String) {
        if let Some(parted) = self.replicas.merges.end(key) {
            self.discarded(key.0, (parted.name, parted.calls), Some(reason));
        }
    }

    /// Sends states that are due, and tells of those that are merged. True if there were any.
    pub(crate) fn pump_merges(&mut self, now: Time) -> bool {
        if self.replicas.merges.is_idle() || !self.base.membership.is_active() {
            return false;
        }
        let (level, mut any) = (self.base.membership.levels().level(), false);
        for key in self.replicas.merges.kept() {
            any |= match level {
                0 => false, // it is not known yet
                WHOLE.. => self.pump_merge(now, key),
                _ => {
                    self.not_merged(key, "the program of a node is too old".into());
                    true
                }
            };
        }
        any
    }

    fn pump_merge(&mut self, now: Time, key: Key) -> bool {
        let (id, parted) = key;
        let Some(hosted) = self.replicas.hosted.get(&id) else {
            self.not_merged(key, "this node has no replica of the group any more".into());
            return true;
        };
        let group = self.base.directory.get(id);
        let state = group.and_then(|group| group.replica(self.base.me)).map(|it| it.state);
        if state != Some(State::Synced) || !hosted.replica.has_state() {
            return false; // its replica does not know yet what the history that goes on has
        }
        let claims = self.base.planted.is(Bug::ClaimMerged);
        let others = self.replicas.merges.awaits_others(key) && hosted.replica.has_logged(parted);
        let logged = others.then(|| Some(ServiceOutcome::Ok(Bytes::new())));
        match logged.or_else(|| hosted.replica.merged(parted)) {
            Some(None) => return false,
            outcome if claims || matches!(outcome, Some(Some(ServiceOutcome::Ok(_)))) => {
                self.tell_merged(key);
                return true;
            }
            Some(Some(ServiceOutcome::Refused(_, reason))) => {
                self.not_merged(key, reason);
                return true;
            }
            Some(Some(_)) => {
                self.not_merged(key, NO_MERGE.into());
                return true;
            }
            None if self.replicas.merges.is_overdue(key) => {
                self.not_merged(key, NOT_RUNNING.into());
                return true;
            }
            None => {}
        }
        let Some(within) = self.view_of_merge(id) else { return false };
        let first = self.replicas.merges.begin(now, key, within);
        let any = first.is_some();
        first.into_iter().for_each(|chunk| self.base.order(now, Ordered::MergeChunk(chunk)));
        any
    }

    fn view_of_merge(&self, id: GroupId) -> Option<(RingId, ViewNumber)> {
        let group = self.base.directory.get(id)?;
        Some((self.base.membership.ring(), group.view))
    }

    /// The primary of a cold passive group tells the outcome of a call that it had logged.
    pub(crate) fn merge_relayed(&mut self, sender: Member, relay: &Relay) {
        let key = (relay.group, relay.client);
        if self.replicas.merges.is_idle()
            || !self.replicas.merges.kept().contains(&key)
            || !self.base.directory.reigns(relay.group, sender, relay.since)
        {
            return;
        }
        match kept(relay.reply.clone()) {
            ServiceOutcome::Ok(_) => self.tell_merged(key),
            ServiceOutcome::Refused(_, reason) => self.not_merged(key, reason),
            ServiceOutcome::Error(_) => self.not_merged(key, NO_MERGE.into()),
        }
    }

    fn tell_merged(&mut self, key: Key) {
        if let Some(ended) = self.replicas.merges.end(key) {
            let (name, calls) = (ended.name, ended.calls);
            self.base.event(Event::Merged { group: key.0, name, calls });
        }
    }

    /// The next program has the pieces that its journal has: those of an earlier view are of no use.
    pub(crate) fn forget_stale_pieces(&mut self, now: Time, id: GroupId) {
        let within = self.view_of_merge(id);
        if !within.is_some_and(|within| self.replicas.merges.is_arriving(id, within)) {
            self.with_replica(now, id, |replica, _| replica.forget_merge_pieces());
        }
    }

    /// Pieces count within one view of the group: a replica that joins between would lack some.
    pub(crate) fn interrupt_merge(&mut self, now: Time, id: GroupId) {
        let Some(within) = self.view_of_merge(id) else { return };
        if self.replicas.merges.interrupted(id, within) {
            self.with_replica(now, id, |replica, _| replica.forget_merge_pieces());
        }
    }

    /// A piece of another history's state is delivered. With the last one the group has a call more.
    pub(crate) fn act_on_merge_chunk(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        chunk: &MergeChunk,
        payload: &Bytes,
    ) {
        let id = chunk.group;
        let within = self.view_of_merge(id);
        let counts = within.is_some_and(|(ring, view)| {
            view == chunk.view && self.replicas.merges.arrives(sender, ring, chunk)
        });
        if sender == self.base.me {
            let next = self.replicas.merges.delivered(now, chunk, counts);
            next.into_iter().for_each(|next| self.base.order(now, Ordered::MergeChunk(next)));
        }
        if counts {
            self.take_merge_chunk(now, (sender, sequence), chunk, payload);
        }
    }

    fn take_merge_chunk(
        &mut self,
        now: Time,
        (sender, sequence): (Member, u64),
        chunk: &MergeChunk,
        payload: &Bytes,
    ) {
        let id = chunk.group;
        let Some(group) = self.base.directory.get(id) else { return };
        let style = group.options.style;
        let listed = group.replica(self.base.me).is_some();
        if !listed || self.replicas.hosted.get(&id).is_none_or(|hosted| hosted.spared) {
            // Its place is the group's all the same.
            if chunk.last {
                self.act_on_request(now, sender, sequence, chunk.call(Bytes::new()), payload);
            }
            return;
        }
        let mut whole = None;
        self.with_replica(now, id, |replica, _| whole = replica.put_merge_chunk(chunk));
        if !chunk.last {
            // A primary that executes on arrival tells what that changed, later.
            if !style.executes_on_arrival() {
                self.keep_taken(id, payload);
            }
            return;
        }
        match whole {
            Some(state) => {
                self.act_on_request(now, sender, sequence, chunk.call(state), payload);
            }
            None => {
                let place = self.base.place(sequence);
                self.base.directory.requested(id, place);
                self.with_replica(now, id, |replica, effects| replica.misses_merge(effects));
            }
        }
    }
}
