//! Another style for a group that runs, on demand (`docs/protocol/group.md`, "Change of style").
//!
//! Whoever wishes it orders it, of the view that it knows. In a group whose replicas all execute nobody has to be ready: the first such
//! message of a view is the change, at its place in the order. In a warm passive group the primary's is, who says it when what it
//! has executed is ordered.

use alloc::vec::Vec;

use wire::limits::MAX_RESTYLES;
use wire::ordered::{Ordered, Place, Restyle, Style};
use wire::{Duration, GroupId, Member, RingId, Time, ViewNumber};

use super::Stack;
use super::passive::Yield;
use crate::api::{Event, Output, RestyleError};
use crate::bug::Bug;
use crate::callers::Stage;
use crate::directory::{Change, Group, State};
use crate::ordering::Ordering;
use crate::style::Conduct;

/// Whoever asked for a change of style hears of it within this time.
const RESTYLE_PATIENCE: Duration = Duration::from_secs(3);

/// A change of style that this node wishes.
pub(super) struct Restyling {
    style: Style,
    until: Time,
    /// Where the wish was ordered last: on a ring that ended it may be lost, of an old view it is void.
    asked: Option<(RingId, ViewNumber)>,
    /// It had its place in the order here. Before, this node may not know of a change that another has told already: a group that seems to have the
    /// style may have it no more.
    placed: bool,
    /// The group got the style after that.
    granted: Option<Granted>,
}

/// A group has the style that was wished.
#[derive(Clone, Copy)]
struct Granted {
    ring: RingId,
    sequence: u64,
    view: ViewNumber,
}

/// What can come of a wish.
enum Outlook {
    /// It is so, or cannot be.
    Over(Result<ViewNumber, RestyleError>),
    /// It can be ordered, of this view.
    Ready(ViewNumber),
    /// Groups do not act now.
    Wait,
}

impl<O: Ordering> Stack<O> {
    /// Gives a group another style while it serves. The outcome comes as [`Output::Restyled`], at once or within some seconds.
    ///
    /// # Errors
    /// Another change of this group, or too many of others, were asked for at this node and are not over.
    pub fn restyle(&mut self, now: Time, group: GroupId, style: Style) -> Result<(), RestyleError> {
        if let Some(under_way) = self.wishes.restyles.get(&group) {
            return Err(RestyleError::UnderWay(under_way.style));
        }
        if self.wishes.restyles.len() >= MAX_RESTYLES {
            return Err(RestyleError::TooMany);
        }
        let restyling = Restyling {
            style,
            until: now + RESTYLE_PATIENCE,
            asked: None,
            placed: false,
            granted: None,
        };
        self.wishes.restyles.insert(group, restyling);
        self.settle(now);
        Ok(())
    }

    /// When a wish is given up.
    pub(super) fn next_restyle_timeout(&self) -> Option<Time> {
        self.wishes.restyles.values().map(|restyling| restyling.until).min()
    }

    /// Orders the wishes that can be ordered, and ends those that are over. True if there was anything to do.
    pub(super) fn pump_restyles(&mut self, now: Time) -> bool {
        let wishes: Vec<GroupId> = self.wishes.restyles.keys().copied().collect();
        let mut any = false;
        for id in wishes {
            let Restyling { style, until, granted, .. } = self.wishes.restyles[&id];
            let ended = match self.prospect(id, style, granted) {
                Outlook::Over(outcome) => Some(outcome),
                Outlook::Ready(_) | Outlook::Wait if now >= until => {
                    Some(Err(RestyleError::Late(style)))
                }
                Outlook::Wait => None,
                Outlook::Ready(view) => {
                    any |= self.wish_style(now, id, view);
                    None
                }
            };
            if let Some(outcome) = ended {
                any = true;
                self.wishes.restyles.remove(&id);
                self.outputs.push(Output::Restyled { group: id, style, outcome });
            }
        }
        any
    }

    fn prospect(&self, id: GroupId, style: Style, granted: Option<Granted>) -> Outlook {
        if self.membership.is_minority() {
            return Outlook::Over(Err(RestyleError::NoQuorum));
        }
        if !self.membership.is_active() {
            return Outlook::Wait;
        }
        let Some(group) = self.directory.get(id) else {
            return Outlook::Over(Err(RestyleError::NoSuchGroup));
        };
        // Whoever is told so may rely on it after all lives have ended.
        let goes_on = |granted: &Granted| {
            granted.ring == self.membership.ring() || group.options.style == style
        };
        if let Some(Granted { ring, sequence, view }) = granted.filter(goes_on) {
            let stored = ring != self.membership.ring() || self.is_stored(group, id, sequence);
            let still = group.options.style == style;
            let view = if still { group.view } else { view };
            return if stored { Outlook::Over(Ok(view)) } else { Outlook::Wait };
        }
        match refusal(group, style) {
            Some(error) => Outlook::Over(Err(error)),
            None => Outlook::Ready(group.view),
        }
    }

    /// Orders a wish, once on each ring and for each view.
    fn wish_style(&mut self, now: Time, id: GroupId, view: ViewNumber) -> bool {
        let here = Some((self.membership.ring(), view));
        let restyling = self.wishes.restyles.get_mut(&id).expect("it is looked at");
        if restyling.asked == here {
            return false;
        }
        restyling.asked = here;
        let restyle = Restyle { group: id, view, style: restyling.style };
        if !self.yield_to(Yield::Restyle(restyle)) {
            self.order(now, Ordered::Restyle(restyle));
        }
        true
    }

    /// A change of style at its place in the order.
    pub(super) fn act_on_restyle(&mut self, now: Time, sender: Member, restyle: Restyle) {
        let Restyle { group: id, view: asked, style: to } = restyle;
        if sender == self.me
            && let Some(restyling) = self.wishes.restyles.get_mut(&id)
        {
            let of_view = restyling.asked.is_some_and(|(_, view)| view == asked);
            restyling.placed |= of_view && restyling.style == to;
        }
        let Some(group) = self.directory.get(id) else { return };
        if group.options.style == to {
            return self.grant(restyle);
        }
        let Some(primary) = group.primary() else { return };
        let (name, from) = (group.name.clone(), group.options.style);
        // Only the primary knows when it has ordered what it has taken.
        let waits = from.keeps_its_primary() && sender != primary;
        if waits && !self.planted.is(Bug::ChangeUnasked) {
            self.yield_to(Yield::Restyle(restyle));
            return;
        }
        let stranger = group.replica(self.me).is_none();
        if stranger && self.planted.is(Bug::BystandersKeepStyle) {
            return;
        }
        let change = self.directory.restyle(id, asked, to, self.planted);
        if change != Change::View {
            return;
        }
        let on_disk = self.directory.get(id).is_some_and(Group::is_on_disk);
        if from.logs() || to.logs() || on_disk {
            self.count_change(id);
        }
        if to.keeps_its_primary() {
            self.directory.reign_anew(id, self.place(self.progress.delivered()));
        }
        // Votes are told anew if there are to be any.
        self.votes.forget(id);
        if to.votes() {
            self.votes.begin(id, self.progress.delivered());
        }
        self.park_reads_of(id);
        let view = self.directory.get(id).map_or(asked, |group| group.view);
        let (ring, sequence) = (self.membership.ring(), self.progress.delivered());
        self.event(Event::Restyled { group: id, name, ring, sequence, from, to, asked, view });
        if from.executes_on_arrival() {
            // What others had ordered for the primary, and came after that took its last, was executed by nobody.
            self.park_ordered(id);
        }
        self.changed(now, id, change);
        self.grant(restyle);
    }

    /// The group has this style: whoever wished it here, in that view, has what it wants.
    fn grant(&mut self, restyle: Restyle) {
        let Restyle { group: id, view: asked, style } = restyle;
        let (ring, view) =
            (self.membership.ring(), self.directory.get(id).map_or(asked, |group| group.view));
        let sequence = self.records.changed_at(id);
        if let Some(restyling) = self.wishes.restyles.get_mut(&id)
            && (restyling.placed, restyling.style) == (true, style)
            && restyling.asked.is_some_and(|(_, view)| view == asked)
        {
            restyling.granted = Some(Granted { ring, sequence, view });
        }
    }

    /// Where a log begins or ends is part of the group's history, as its requests are: who has missed it has another log. So it is on
    /// disk, where a replica has to know from where on it votes. A group
    /// that was never called has none: anybody may begin it, in whatever style it has by then (seeds 4942 and 10849).
    fn count_change(&mut self, id: GroupId) {
        if self.directory.get(id).is_none_or(|group| group.last == Place::default()) {
            return;
        }
        let place = self.place(self.progress.delivered());
        self.directory.requested(id, place);
        let here = self.directory.get(id).is_some_and(|group| group.replica(self.me).is_some());
        if let Some(hosted) = self.hosted.get_mut(&id).filter(|hosted| here && !hosted.spared) {
            hosted.taken = place;
        }
    }

    /// How reads are answered is another matter from here on.
    fn park_reads_of(&mut self, id: GroupId) {
        for call in self.clients.callers.of_group(id) {
            let stage = self.clients.callers.get(&call).map(|waiting| &waiting.stage);
            if matches!(stage, Some(Stage::Asking { .. } | Stage::Placed { .. })) {
                self.clients.callers.park(&call);
            }
        }
    }

    /// This node's replica goes on in the style that the table has.
    pub(super) fn reconcile_style(&mut self, now: Time, id: GroupId) {
        let Some(group) = self.directory.get(id) else { return };
        let style = group.options.style;
        let alone = group.synced().eq([self.me]);
        // Who is ahead in a group that sleeps goes on as it is, or is given the state anew: others will tell.
        let differs =
            |hosted: &&super::Hosted| hosted.replica.style() != style && !hosted.replica.is_ahead();
        // One that the group would not have keeps what it was configured with.
        let here = group.replica(self.me).is_some();
        let Some(hosted) = self.hosted.get_mut(&id).filter(|hosted| here && differs(&&**hosted))
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
            // What comes from here on the primary answers, whenever this replica goes over.
            hosted.cold.finishing = self.progress.delivered();
            self.cold.insert(id);
        } else {
            self.cold.remove(id);
        }
        self.log_beside(id, &Ordered::Restyle(Restyle { group: id, view, style }).encode());
        self.keep_style(id, style);
        self.with_replica(now, id, |replica, effects| replica.restyle(style, alone, effects));
        self.note_running(id, before);
    }

    /// The group has a state from here on, or none any more: its replicas begin with the service's initial state. What was executed
    /// at one of them before was in no history.
    fn begin_in_style(&mut self, now: Time, id: GroupId, style: Style) {
        for call in self.clients.callers.of_group(id) {
            self.clients.callers.park(&call);
        }
        if style.logs() {
            self.cold.insert(id);
        }
        let Some(group) = self.directory.get(id) else { return };
        let begins = group.synced().any(|member| member == self.me);
        let last = group.last;
        if let Some(hosted) = self.hosted.get_mut(&id) {
            hosted.taken = last;
        }
        self.with_replica(now, id, |replica, effects| {
            replica.begin_in_style(style, begins, effects);
        });
    }

    /// Every replica that goes on in this component is in its group's style.
    pub(super) fn check_styles(&self) {
        if !self.membership.is_active() {
            return;
        }
        for (id, hosted) in &self.hosted {
            let group = self.directory.get(*id);
            let goes_on = |group: &&Group| {
                let state = group.replica(self.me).map(|replica| replica.state);
                state == Some(State::Synced)
                    && !hosted.lost
                    && !hosted.departure.abandoned
                    && !hosted.program.fallen
            };
            if let Some(group) = group.filter(goes_on) {
                let (style, own) = (group.options.style, hosted.replica.style());
                assert_eq!(style, own, "a replica is in its group's style");
            }
        }
    }
}

/// Why this group cannot have that style.
fn refusal(group: &Group, to: Style) -> Option<RestyleError> {
    let from = group.options.style;
    if !group.options.may_become(to) {
        return Some(RestyleError::LosesState { from });
    }
    group.primary().is_none().then_some(RestyleError::NoPrimary)
}
