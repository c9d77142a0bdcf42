//! Changes of style that are proposed, ordered and carried out.

use alloc::vec::Vec;

use wire::ordered::{Ordered, Restyle, Style};
use wire::{GroupId, Member, Time, ViewNumber};

use super::{Granted, Outlook, Restyling, refusal};
use crate::api::{Event, Output, RestyleError};
use crate::bug::Bug;
use crate::directory::{Change, Group};
use crate::groups::{GroupHandler, Groups};
use crate::ordering::Ordering;
use crate::replicas::hosted::Hosted;
use crate::replicas::passive::Yield;
use crate::style::StyleRules;

impl Groups {
    /// Returns when the next proposal is given up.
    pub(crate) fn next_restyle_timeout(&self) -> Option<Time> {
        self.restyles.values().map(|restyling| restyling.until).min()
    }
}

impl<O: Ordering> GroupHandler<'_, O> {
    fn prospect(&self, id: GroupId, style: Style, granted: Option<Granted>) -> Outlook {
        if self.base.membership.is_minority() {
            return Outlook::Over(Err(RestyleError::NoQuorum));
        }
        if !self.base.membership.is_active() {
            return Outlook::Wait;
        }
        let Some(group) = self.base.directory.get(id) else {
            return Outlook::Over(Err(RestyleError::NoSuchGroup));
        };
        // The requester may rely on this answer even after all lives have ended.
        let goes_on = |granted: &Granted| {
            granted.ring == self.base.membership.ring() || group.options.style == style
        };
        if let Some(Granted { ring, sequence, view }) = granted.filter(goes_on) {
            let stored =
                ring != self.base.membership.ring() || self.base.is_stored_now(group, id, sequence);
            let still = group.options.style == style;
            let view = if still { group.view } else { view };
            return if stored { Outlook::Over(Ok(view)) } else { Outlook::Wait };
        }
        match refusal(group, style) {
            Some(error) => Outlook::Over(Err(error)),
            None => Outlook::Ready(group.view),
        }
    }

    /// Orders the proposals that can be ordered, and ends those that are over. True if there was
    /// anything to do.
    pub(crate) fn pump_restyles(&mut self, now: Time) -> bool {
        if self.groups.restyles.is_empty() {
            return false;
        }
        let proposals: Vec<GroupId> = self.groups.restyles.keys().copied().collect();
        let mut any = false;
        for id in proposals {
            let Restyling { style, until, granted, .. } = self.groups.restyles[&id];
            let ended = match self.prospect(id, style, granted) {
                Outlook::Over(outcome) => Some(outcome),
                Outlook::Ready(_) | Outlook::Wait if now >= until => {
                    Some(Err(RestyleError::Late(style)))
                }
                Outlook::Wait => None,
                Outlook::Ready(view) => {
                    any |= self.propose_style(now, id, view);
                    None
                }
            };
            if let Some(outcome) = ended {
                any = true;
                self.groups.restyles.remove(&id);
                self.base.outputs.push(Output::Restyled { group: id, style, outcome });
            }
        }
        any
    }

    /// Orders a proposal, once on each ring and for each view.
    pub(crate) fn propose_style(&mut self, now: Time, id: GroupId, view: ViewNumber) -> bool {
        let here = Some((self.base.membership.ring(), view));
        let restyling = self.groups.restyles.get_mut(&id).expect("it is looked at");
        if restyling.asked == here {
            return false;
        }
        restyling.asked = here;
        let restyle = Restyle { group: id, view, style: restyling.style };
        if !self.replicas().yield_to(Yield::Restyle(restyle)) {
            self.base.order(now, Ordered::Restyle(restyle));
        }
        true
    }

    /// A change of style at its place in the order.
    pub(crate) fn act_on_restyle(
        &mut self,
        now: Time,
        sender: Member,
        sequence: u64,
        restyle: Restyle,
    ) {
        let Restyle { group: id, view: asked, style: to } = restyle;
        if sender == self.base.me
            && let Some(restyling) = self.groups.restyles.get_mut(&id)
        {
            let of_view = restyling.asked.is_some_and(|(_, view)| view == asked);
            restyling.placed |= of_view && restyling.style == to;
        }
        let Some(group) = self.base.directory.get(id) else { return };
        if group.options.style == to {
            return self.grant(restyle);
        }
        let Some(primary) = group.primary() else { return };
        let (name, from) = (group.name.clone(), group.options.style);
        // The primary alone knows when it has ordered all that it has taken.
        let waits = from.keeps_its_primary() && sender != primary;
        if waits && !self.base.planted.is(Bug::ChangeUnasked) {
            self.replicas().yield_to(Yield::Restyle(restyle));
            return;
        }
        let stranger = group.replica(self.base.me).is_none();
        if stranger && self.base.planted.is(Bug::BystandersKeepStyle) {
            return;
        }
        let change = self.base.directory.restyle(id, asked, to, self.base.planted);
        if change != Change::View {
            return;
        }
        let on_disk = self.base.directory.get(id).is_some_and(Group::is_on_disk);
        if from.logs() || to.logs() || on_disk {
            self.replicas().count_change(id, sequence);
        }
        if to.keeps_its_primary() {
            self.base.directory.reign_anew(id, self.base.place(self.base.progress.delivered()));
        }
        // Replicas vote anew if the new style votes.
        self.replicas.votes.forget(id);
        if to.votes() {
            self.replicas.votes.begin(id, self.base.progress.delivered());
        }
        self.replies().park_reads_of(id);
        let view = self.base.directory.get(id).map_or(asked, |group| group.view);
        let (ring, sequence) = (self.base.membership.ring(), self.base.progress.delivered());
        self.base.event(Event::Restyled { group: id, name, ring, sequence, from, to, asked, view });
        if from.executes_on_arrival() {
            // Calls that others ordered for the primary, and that came after its last one, were
            // executed by nobody.
            self.replies().park_ordered(id);
        }
        self.changed(now, id, change);
        self.grant(restyle);
    }

    /// Marks this node's proposal of that view as fulfilled: the group has the style.
    pub(crate) fn grant(&mut self, restyle: Restyle) {
        let Restyle { group: id, view: asked, style } = restyle;
        let (ring, view) = (
            self.base.membership.ring(),
            self.base.directory.get(id).map_or(asked, |group| group.view),
        );
        let sequence = self.base.records.changed_at(id);
        if let Some(restyling) = self.groups.restyles.get_mut(&id)
            && (restyling.placed, restyling.style) == (true, style)
            && restyling.asked.is_some_and(|(_, view)| view == asked)
        {
            restyling.granted = Some(Granted { ring, sequence, view });
        }
    }

    /// Brings this node's replica to the style that the table has.
    pub(crate) fn reconcile_style(&mut self, now: Time, id: GroupId) {
        let Some(group) = self.base.directory.get(id) else { return };
        let style = group.options.style;
        let alone = group.synced().eq([self.base.me]);
        // A replica that is ahead in a sleeping group goes on as it is, or gets the state anew. The
        // announcements of other members decide.
        let differs =
            |hosted: &&Hosted| hosted.replica.style() != style && !hosted.replica.is_ahead();
        // A replica that the group refused keeps its configured style.
        let here = group.replica(self.base.me).is_some();
        let Some(hosted) =
            self.replicas.hosted.get_mut(&id).filter(|hosted| here && differs(&&**hosted))
        else {
            return;
        };
        if hosted.spared {
            return; // it does nothing here
        }
        if !(style.has_state() && hosted.replica.style().has_state()) {
            return self.begin_in_style(now, id, style);
        }
        let before = (hosted.replica.runs(), hosted.replica.is_finishing());
        let view = group.view;
        if style.logs() {
            // The primary answers all later requests, whenever this replica changes its style.
            hosted.cold.finishing = self.base.progress.delivered();
            self.groups.cold.insert(id);
        } else {
            self.groups.cold.remove(id);
        }
        self.replicas()
            .log_beside(id, &Ordered::Restyle(Restyle { group: id, view, style }).encode());
        self.replicas().keep_style(id, style);
        self.replicas()
            .with_replica(now, id, |replica, effects| replica.restyle(style, alone, effects));
        self.replicas().note_running(id, before);
    }

    /// Has the group's replicas begin with the service's initial state: the group has a state from
    /// here on, or none any more. Calls that one of them executed before were in no history.
    pub(crate) fn begin_in_style(&mut self, now: Time, id: GroupId, style: Style) {
        for call in self.replies.clients.callers.of_group(id) {
            self.replies.clients.callers.park(&call);
        }
        if style.logs() {
            self.groups.cold.insert(id);
        }
        let Some(group) = self.base.directory.get(id) else { return };
        let begins = group.synced().any(|member| member == self.base.me);
        let last = group.last;
        if let Some(hosted) = self.replicas.hosted.get_mut(&id) {
            hosted.taken = last;
        }
        self.replicas().with_replica(now, id, |replica, effects| {
            replica.begin_in_style(style, begins, effects);
        });
    }
}
