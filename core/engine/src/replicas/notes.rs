//! Things that services cannot do with the states of their groups: told to people at every node
//! (`docs/protocol/group.md`, "A state that cannot be had").

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wire::attach::{Notice, NoticeCode};
use wire::ordered::{About, Anew, Note, Notes, Ordered};
use wire::versions::WHOLE;
use wire::{GroupId, Member, Time};

use crate::api::Event;
use crate::bug::Bug;
use crate::directory::State;
use crate::ordering::Ordering;
use crate::replicas::ReplicaHandler;

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// This node's replica cannot do this with the state, or can again.
    pub(crate) fn note_state(&mut self, group: GroupId, about: About, text: Option<String>) {
        if about == About::Read && text.is_none() {
            self.replicas.retries.forget(group);
        }
        let news = self.replicas.notes.set(group, about, text);
        if let Some(news) = news.map(|text| text.map(String::from)) {
            self.tell_note(self.base.me, group, about, news);
        }
    }

    /// The service of this node's replica says something about its state.
    pub(crate) fn service_says(&mut self, group: GroupId, notice: Notice) {
        if !self.replicas.hosted.contains_key(&group) {
            return;
        }
        let Notice { code, text } = notice;
        match code {
            NoticeCode::Unreadable => self.note_state(group, About::ReadBack, Some(text)),
            NoticeCode::Dropped => self.note_state(group, About::Dropped, Some(text)),
            NoticeCode::Well => {
                for about in [About::ReadBack, About::Give] {
                    self.note_state(group, about, None);
                }
            }
            NoticeCode::Other(_) => {}
        }
    }

    /// The replica is gone, and what was said of it.
    pub(crate) fn forget_notes(&mut self, group: GroupId) {
        About::ALL.into_iter().for_each(|about| self.note_state(group, about, None));
        self.replicas.comparisons.forget(group);
    }

    /// Another member's facts replace those that it told before. They are part of no history.
    pub(crate) fn notes_told(&mut self, sender: Member, notes: Notes) {
        if sender == self.base.me {
            return;
        }
        let before = self.replicas.notes.heard(sender, notes.clone());
        let lacks = |all: &[Note], note: &Note| {
            !all.iter().any(|it| (it.group, it.about) == (note.group, note.about))
        };
        for note in before.iter().filter(|note| lacks(&notes.0, note)) {
            self.tell_note(sender, note.group, note.about, None);
        }
        for note in notes.0.iter().filter(|note| !before.contains(note)) {
            self.tell_note(sender, note.group, note.about, Some(note.text.to_string()));
        }
    }

    /// Tells the others what they do not know. True if there was anything.
    pub(crate) fn pump_notes(&mut self, now: Time) -> bool {
        let membership = &self.base.membership;
        let may = self.replicas.notes.is_due() && membership.is_active();
        if !may || membership.levels().level() < WHOLE {
            return false;
        }
        let notes = self.replicas.notes.take_due();
        self.base.order(now, Ordered::Notes(notes));
        true
    }

    /// Asks again for states that could not be given or read. True if there were any.
    pub(crate) fn pump_retries(&mut self, now: Time) -> bool {
        let membership = &self.base.membership;
        if self.replicas.notes.are_none() && self.replicas.retries.are_none() {
            return false;
        }
        if self.base.planted.is(Bug::AskOnce)
            || !membership.is_active()
            || membership.levels().level() < WHOLE
        {
            return false;
        }
        let (me, ring) = (self.base.me, membership.ring());
        let (mut due, mut failing) = (Vec::new(), Vec::new());
        for (id, hosted) in &self.replicas.hosted {
            let state = self.base.directory.get(*id).and_then(|group| group.replica(me));
            let Some(State::Unsynced { transfer, donor: Some(donor) }) = state.map(|it| it.state)
            else {
                continue;
            };
            let fails = hosted.replica.has_failed(transfer)
                || self.replicas.notes.cannot_give(donor, *id)
                || self.replicas.retries.knows(*id, transfer);
            if !fails || hosted.spared {
                continue;
            }
            failing.push(*id);
            if self.replicas.retries.is_due(now, *id, transfer, ring) {
                due.push(Anew { group: *id, transfer });
            }
        }
        self.replicas.retries.rest_all_but(&failing);
        let any = !due.is_empty();
        due.into_iter().for_each(|anew| self.base.order(now, Ordered::Anew(anew)));
        any
    }

    fn tell_note(&mut self, member: Member, group: GroupId, about: About, text: Option<String>) {
        let hosted = || self.replicas.hosted.get(&group).map(|hosted| hosted.name.clone());
        let known = self.base.directory.get(group).map(|known| known.name.clone());
        let Some(name) = known.or_else(hosted) else { return };
        self.base.event(Event::StateNote { group, name, member, about, text });
    }
}
