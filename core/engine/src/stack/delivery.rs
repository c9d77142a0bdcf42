//! Deliveries: configurations, ordered messages, and which members have them.

use alloc::boxed::Box;
use bytes::Bytes;
use wire::ordered::{Install, Move, Ordered, Restyle};
use wire::roster::Roster;
use wire::versions::WHOLE;
use wire::{Extension, Malformed, Member, Time};

use crate::api::{Event, Output, RosterNews};
use crate::component::{Disposition, StateMerge};
use crate::directory::recalled;
use crate::ordering::{self, Configuration, ConfigurationKind, Delivery, Ordering};
use crate::parts::Held;
use crate::stack::Stack;
use crate::style::StyleRules;

impl<O: Ordering> Stack<O> {
    /// Whether a message ordered before this component began concerns an earlier component only.
    fn is_of_the_past(&self, sender: Member, ordered: &Ordered) -> bool {
        match ordered {
            // Transfers have begun anew. Messages of earlier ones are void, even if a transfer of a
            // given-up history had the same name.
            Ordered::Synced(_)
            | Ordered::StateChunk(_)
            | Ordered::StateOffer(_)
            | Ordered::Anew(_)
            | Ordered::StateDeclined(_)
            | Ordered::MergeChunk(_) => true,
            // Replicas are compared anew.
            Ordered::Compare(_) | Ordered::Compared(_) => true,
            // Replicas vote anew.
            Ordered::Ballot(_) | Ordered::Absent(_) => true,
            // A passive primary had ordered all it had taken, but has taken calls again since.
            Ordered::Move(Move { group, .. }) | Ordered::Restyle(Restyle { group, .. }) => {
                self.base.directory.get(*group).is_some_and(|group| {
                    group.options.style.keeps_its_primary() && group.primary() == Some(sender)
                })
            }
            _ => false,
        }
    }

    pub(crate) fn handle_ordering(&mut self, now: Time, output: ordering::Output) {
        match output {
            ordering::Output::Send { to, datagram, route } => {
                self.base.outputs.push(Output::Send { to, datagram, route });
            }
            ordering::Output::Deliver(delivery) => self.deliver(now, delivery),
            ordering::Output::Configuration(configuration) => self.configure(now, configuration),
            ordering::Output::Held { ring, majority, all } => {
                if ring == self.base.membership.ring() {
                    self.base.progress.hold(Held { majority, all });
                    self.bench.held(now, all);
                    self.replies().release(ring);
                    self.replicas().pay_all(now);
                    self.replicas().go_on_trying(now);
                }
            }
            ordering::Output::Stored { ring } => {
                if ring == self.base.membership.ring() {
                    self.replies().release(ring);
                    self.replicas().pay_all(now);
                    self.replicas().go_on_trying(now);
                }
            }
            ordering::Output::Confirmed { ring, round, upto } => {
                if ring == self.base.membership.ring() {
                    self.replies().confirmed(round, upto);
                }
            }
            ordering::Output::Current { ring, at, upto } => {
                if ring == self.base.membership.ring() {
                    self.replies.clients.reads.learn(upto, at);
                }
            }
            ordering::Output::Nodes(nodes) => self.base.outputs.push(Output::Nodes(nodes)),
            ordering::Output::Roster { from, roster } => match Roster::decode(&roster) {
                Ok(roster) => self.base.roster_came(now, from, roster),
                Err(malformed) => self.base.event(Event::Malformed(malformed)),
            },
            ordering::Output::Event(event) => {
                let suspected = self.replies.faults.ring_says(now, &event);
                self.base.event(Event::Ring(event));
                suspected.into_iter().for_each(|suspected| self.base.event(suspected));
            }
        }
    }

    /// Stops all groups. Every member announces its states.
    fn configure(&mut self, now: Time, configuration: Configuration) {
        // Between the two, the last messages of the old ring are delivered. Each is marked as
        // contiguous or not.
        let (together, before) =
            (configuration.members.len(), self.base.membership.members().count());
        let transitional = configuration.kind == ConfigurationKind::Transitional;
        self.base.progress.set_transitional(transitional.then_some(together * 2 > before));
        if transitional {
            return;
        }
        self.replicas().end_of_component();
        self.replicas.hosted.values_mut().for_each(|hosted| hosted.spared = false);
        let Configuration { ring, members, .. } = configuration;
        self.replicas().settle_reads();
        self.base.event(Event::Configuration { ring, members: members.clone() });
        self.replies().tell_faults(now, ring, &members);
        self.groups().forget_usages(&members);
        self.replicas.notes.retain(&members);
        self.benchmarks().interrupted(now);
        // Messages about an earlier configuration are useless in this one.
        let lasting = |ordered: &Ordered| {
            !matches!(
                ordered,
                Ordered::Announce(_)
                    | Ordered::Install(_)
                    | Ordered::PrimaryChunk(_)
                    | Ordered::Relay(_)
                    | Ordered::Compare(_)
                    | Ordered::Compared(_)
                    | Ordered::Lineage(_)
                    | Ordered::MergeChunk(_)
            )
        };
        self.base.outbox.retain(lasting);
        self.base.progress.configured(now);
        self.base.records.new_configuration();
        self.replicas().suspend_primaries(now);
        let brought =
            (self.replicas.replicas_with_state(&self.base), self.replicas.replicas_ahead());
        self.base.take_later_roster(now);
        let recall = self.base.recall();
        let mut announce = self.base.membership.configuration(ring, members, brought, recall);
        if self.base.membership.levels().level() >= WHOLE {
            announce.extension = Extension::of_root(self.base.lineages.root());
            if self.base.membership.forks() {
                let lineage = self.base.lineages.own(ring);
                self.base.order(now, Ordered::Lineage(lineage));
            }
        }
        self.base.order(now, Ordered::Announce(Box::new(announce)));
    }

    fn deliver(&mut self, now: Time, delivery: Delivery) {
        self.base.progress.deliver(delivery.sequence);
        if !delivery.contiguous {
            self.replicas().note_settled();
            self.base.membership.gap();
        }
        match self.ordered_in(&delivery) {
            // A member that sends such bytes is broken, but alike for everybody.
            Err(malformed) => self.base.event(Event::Malformed(malformed)),
            Ok(Ordered::Announce(announce)) => {
                if let Some((quorate, install)) =
                    self.base.membership.announce(delivery.sender, *announce)
                {
                    self.judged(now, quorate, install);
                }
            }
            Ok(Ordered::Install(install)) => self.install(now, &delivery, &install),
            // These are part of no history: neither deferred for a component nor a step in one.
            Ok(Ordered::Load(load)) => {
                self.bench.load(now, delivery.sender, delivery.sequence, &load);
            }
            Ok(Ordered::Bench(word)) => self.benchmarks().word(now, delivery.sender, *word),
            Ok(Ordered::Usage(usage)) => self.groups().usage_told(now, delivery.sender, usage),
            Ok(Ordered::Shedding(shedding)) => self.groups().shedding_told(now, shedding),
            Ok(Ordered::Lineage(lineage)) => {
                if lineage.ring == self.base.membership.ring() {
                    self.base.lineages.heard(delivery.sender, lineage);
                }
            }
            Ok(Ordered::Notes(notes)) => self.replicas().notes_told(delivery.sender, notes),
            Ok(ordered) => {
                let Delivery { ring, sequence, .. } = delivery;
                match self.base.membership.disposition(ring, sequence) {
                    Disposition::Act => {
                        self.base.records.begin_to_act((sequence, sequence), false);
                        self.act(now, delivery.sender, sequence, ordered, &delivery.payload);
                        self.base.records.end_acting();
                    }
                    Disposition::Wait => self.base.progress.defer(delivery),
                    Disposition::Ignore => {}
                }
            }
        }
    }

    /// Returns the delivered message: an own one from memory, another decoded.
    fn ordered_in(&mut self, delivery: &Delivery) -> Result<Ordered, Malformed> {
        let own = delivery.sender == self.base.me;
        match own.then(|| self.base.outbox.delivered(&delivery.payload)).flatten() {
            Some(ordered) => {
                debug_assert_eq!(Ordered::decode(&delivery.payload).as_ref(), Ok(&ordered));
                Ok(ordered)
            }
            None => Ordered::decode(&delivery.payload),
        }
    }

    /// All announcements are here: the verdict is acted on.
    fn judged(&mut self, now: Time, quorate: bool, install: bool) {
        let (ring, epoch) = (self.base.membership.ring(), self.base.membership.next_epoch());
        if !quorate {
            self.base.event(Event::Quorum { ring, quorate, epoch });
            self.replicas().refuse_without_quorum(now);
        } else if install {
            let groups = self.base.directory.entries();
            let keys = self.keys.table();
            let membership = &self.base.membership;
            let programs = membership.levels().absent(membership.announces());
            let roster = membership.roll().newest(membership.announces());
            let install = Install { ring, epoch, groups, keys, programs, roster };
            self.base.order(now, Ordered::Install(Box::new(install)));
        }
    }

    /// Begins the component: its table applies to all, and deferred messages are acted on.
    fn install(&mut self, now: Time, delivery: &Delivery, install: &Install) {
        let installed =
            self.base.membership.install(now, delivery.sender, install, delivery.sequence);
        let Some(StateMerge { announces, installer, recalled: incomplete, gathering }) = installed
        else {
            return;
        };
        let planted = self.base.planted;
        let component_order = incomplete.then_some(gathering.component_order);
        let entries = recalled(&install.groups, announces, installer, component_order, planted);
        let changed = self.base.directory.install(install.ring, &entries, announces, gathering);
        self.base.tell_went_back();
        self.replicas().give_up_histories(now, delivery.sender, (install.epoch, install.ring));
        let Install { ring, epoch, .. } = *install;
        self.base.event(Event::Quorum { ring, quorate: true, epoch });
        // Messages ordered before the installation count only with it.
        let first = self.base.progress.first_deferred().unwrap_or(delivery.sequence);
        self.base.records.begin_to_act((first.min(delivery.sequence), delivery.sequence), true);
        self.base.tell_level(now);
        self.base.install_roster(now, &install.roster);
        self.base.note_installed();
        self.replicas.notes.tell_again();
        self.replicas.comparisons.in_new_component();
        self.keys().install(install.keys.as_ref());
        self.replicas.votes.begin_component(planted);
        self.base.enthrone_all();
        for id in changed {
            self.groups().view_changed(id);
        }
        self.base.progress.await_joins(now, self.base.membership.has_all_nodes());
        self.groups.load.changed();
        self.groups().reconcile_replicas(now);
        self.replicas().forget_recalls();
        self.replicas().open_votes(now);
        self.groups().calls_in_new_component(now, delivery.sequence);
        self.replicas().nested_in_new_component(now);
        self.replicas().reconcile_leads(now);
        let deferred = self.base.progress.take_deferred();
        for delivery in deferred {
            let Delivery { sender, sequence, payload, .. } = &delivery;
            if let Ok(ordered) = Ordered::decode(payload)
                && !self.is_of_the_past(*sender, &ordered)
            {
                self.act(now, *sender, *sequence, ordered, payload);
            }
        }
        self.base.records.end_acting();
        self.groups().forget_lost_joins();
        self.replies().release(install.ring);
        self.replicas().pay_all(now);
        self.replicas().go_on_trying(now);
    }

    /// Acts on an ordered message at its place.
    fn act(&mut self, now: Time, sender: Member, sequence: u64, ordered: Ordered, payload: &Bytes) {
        match ordered {
            Ordered::Request(request) => {
                self.replicas().nested_delivered(now, sender, &request);
                self.replicas().act_on_request(now, sender, sequence, request, payload);
            }
            Ordered::NestedEnd(end) => {
                self.replicas().act_on_nested_end(now, sender, sequence, end, payload);
            }
            Ordered::JoinGroup(join) => self.groups().act_on_join(now, sender, join),
            Ordered::LeaveGroup(leave) => self.groups().act_on_leave(now, sender, &leave),
            Ordered::Synced(synced) => {
                let change = self.base.directory.synced(sender, synced.group, synced.transfer);
                self.groups().changed(now, synced.group, change);
                self.groups().count_votes(now, synced.group);
            }
            Ordered::Anew(anew) => {
                let change = self.base.directory.give_anew(sender, anew.group, anew.transfer);
                self.groups().changed(now, anew.group, change);
            }
            Ordered::Compare(compare) => {
                self.replicas().act_on_compare(now, sequence, compare.group);
            }
            Ordered::Compared(compared) => self.replicas().act_on_compared(sender, compared),
            Ordered::StateChunk(chunk) => {
                let group = chunk.group;
                self.replicas().deposit_chunk(now, sender, &chunk);
                self.replicas().with_replica(now, group, |replica, effects| {
                    replica.state_chunk(now, chunk, effects);
                });
            }
            Ordered::StateOffer(offer) => {
                self.replicas().with_replica(now, offer.group, |replica, effects| {
                    replica.state_offered(sender, offer, effects);
                });
            }
            Ordered::StateDeclined(declined) => {
                self.replicas().deposit_declined(now, declined);
                self.replicas().with_replica(now, declined.group, |replica, effects| {
                    replica.state_declined(declined, effects);
                });
            }
            Ordered::Move(proposal) => self.groups().act_on_move(now, sender, proposal),
            Ordered::Restyle(restyle) => {
                self.groups().act_on_restyle(now, sender, sequence, restyle);
            }
            Ordered::Rank(rank) => self.groups().act_on_rank(now, &rank),
            Ordered::Demote(demote) => self.groups().act_on_demote(now, sender, demote),
            Ordered::PrimaryChunk(chunk) => {
                self.replicas().act_on_update(now, sender, sequence, &chunk, payload);
            }
            Ordered::MergeChunk(chunk) => {
                self.replicas().act_on_merge_chunk(now, sender, sequence, &chunk, payload);
            }
            Ordered::Recalled(recalled) => self.groups().act_on_recalled(now, sender, recalled),
            Ordered::Relay(relay) => {
                self.replicas().merge_relayed(sender, &relay);
                self.replies().act_on_relay(sender, relay);
            }
            Ordered::Key(step) => self.keys().act(sender, step),
            Ordered::Activate(activate) => {
                if self.base.act_on_activate(now, activate) {
                    self.groups().ask_again(now);
                }
            }
            Ordered::Roster(step) => {
                let news = self.base.act_on_roster(now, sender, sequence, *step);
                if let Some(RosterNews::Retired(node)) = news {
                    self.groups().node_gone(now, node);
                }
            }
            Ordered::Backup(step) => self.groups().act_on_backup(now, sender, sequence, step),
            Ordered::Ballot(ballot) => self.groups().act_on_ballot(now, sender, &ballot),
            Ordered::Absent(absent) => self.groups().act_on_absent(now, &absent),
            Ordered::Progress(progress) => {
                self.replicas().act_on_progress(now, sender, sequence, progress, payload);
            }
            Ordered::Poisoned(poisoned) => {
                self.replicas().act_on_poisoned(now, sender, sequence, poisoned, payload);
            }
            Ordered::Announce(_)
            | Ordered::Install(_)
            | Ordered::Bench(_)
            | Ordered::Load(_)
            | Ordered::Usage(_)
            | Ordered::Notes(_)
            | Ordered::Lineage(_)
            | Ordered::Shedding(_) => unreachable!("these are not part of a history"),
        }
    }
}
