//! The words of this node and the others about the states of their replicas.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use wire::limits::{MAX_NOTES, MAX_REASON};
use wire::ordered::{About, Note, Notes};
use wire::{GroupId, Member};

/// The facts about states, by replica.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateNotes {
    own: BTreeMap<(GroupId, About), String>,
    others: BTreeMap<Member, Vec<Note>>,
    /// The others have yet to be told.
    due: bool,
    /// They know of something.
    told: bool,
}

impl StateNotes {
    /// Something is so here, or (`None`) is so no more. Returns what is news.
    pub(crate) fn set(
        &mut self,
        group: GroupId,
        about: About,
        text: Option<String>,
    ) -> Option<Option<&str>> {
        let key = (group, about);
        let text = text.map(cut);
        if self.own.get(&key) == text.as_ref() {
            return None;
        }
        self.due = true;
        match text {
            Some(text) => {
                self.own.insert(key, text);
                Some(self.own.get(&key).map(String::as_str))
            }
            None => {
                self.own.remove(&key);
                Some(None)
            }
        }
    }

    /// The facts here about this group.
    pub(crate) fn of_own(&self, group: GroupId) -> impl Iterator<Item = (About, &str)> {
        let range = self.own.range((group, About::Give)..=(group, About::Discarded));
        range.map(|((_, about), text)| (*about, text.as_str()))
    }

    /// Something is said of this group's replica here.
    pub(crate) fn says(&self, group: GroupId, about: About) -> bool {
        self.own.contains_key(&(group, about))
    }

    /// Nobody says anything.
    pub(crate) fn are_none(&self) -> bool {
        self.own.is_empty() && self.others.is_empty()
    }

    /// This member says that its replica cannot give the state.
    pub(crate) fn cannot_give(&self, member: Member, group: GroupId) -> bool {
        let is_it = |note: &Note| (note.group, note.about) == (group, About::Give);
        self.others.get(&member).is_some_and(|notes| notes.iter().any(is_it))
    }

    /// All that is known about this group's replicas elsewhere.
    pub(crate) fn of_others(&self, group: GroupId) -> impl Iterator<Item = (Member, &Note)> {
        let all =
            self.others.iter().flat_map(|(member, notes)| notes.iter().map(|it| (*member, it)));
        all.filter(move |(_, note)| note.group == group)
    }

    /// The others may not have heard what is so here.
    pub(crate) fn tell_again(&mut self) {
        self.due |= self.told || !self.own.is_empty();
    }

    /// The others have to be told.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// The facts that they are told: the worst first, if there is too much of it.
    pub(crate) fn take_due(&mut self) -> Notes {
        let mut notes: Vec<Note> = self
            .own
            .iter()
            .map(|((group, about), text)| Note { group: *group, about: *about, text: text.clone() })
            .collect();
        notes.sort_by_key(|note| (!note.about.is_trouble(), note.about));
        notes.truncate(MAX_NOTES);
        (self.due, self.told) = (false, !notes.is_empty());
        Notes(notes)
    }

    /// Another member says this. Returns what it said before.
    pub(crate) fn heard(&mut self, member: Member, Notes(notes): Notes) -> Vec<Note> {
        let before = match notes.is_empty() {
            true => self.others.remove(&member),
            false => self.others.insert(member, notes),
        };
        before.unwrap_or_default()
    }

    /// Forgets members that are no more.
    pub(crate) fn retain(&mut self, members: &[Member]) {
        self.others.retain(|member, _| members.contains(member));
    }
}

/// The text, as long as a reason may be.
fn cut(mut text: String) -> String {
    let end = (0..=text.len().min(MAX_REASON)).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use wire::{Incarnation, NodeId};

    use super::*;

    const GROUP: GroupId = GroupId(7);

    #[test]
    fn what_is_so_no_more_is_told_as_well() {
        let mut notes = StateNotes::default();
        assert_eq!(notes.set(GROUP, About::Read, None), None, "nobody said so");
        let reason = || Some("missing field".to_string());
        assert_eq!(notes.set(GROUP, About::Read, reason()), Some(Some("missing field")));
        assert_eq!(notes.set(GROUP, About::Read, reason()), None, "it is no news");
        assert_eq!((notes.is_due(), notes.take_due().0.len()), (true, 1));
        assert_eq!(notes.set(GROUP, About::Read, None), Some(None));
        assert!(notes.is_due(), "the others know of something that is not so");
        assert_eq!(notes.take_due(), Notes::default());
        notes.tell_again();
        assert!(!notes.is_due(), "nobody knows of anything");
    }

    #[test]
    fn a_reason_is_cut_between_two_characters() {
        let mut notes = StateNotes::default();
        notes.set(GROUP, About::Give, Some("ü".repeat(MAX_REASON)));
        let Notes(told) = notes.take_due();
        assert_eq!(told[0].text.len(), MAX_REASON);
        notes.set(GROUP, About::Give, Some("a".to_string() + &"ü".repeat(MAX_REASON)));
        let Notes(told) = notes.take_due();
        assert_eq!(told[0].text.len(), MAX_REASON - 1);
    }

    #[test]
    fn who_is_gone_says_nothing() {
        let mut notes = StateNotes::default();
        let member = Member { node: NodeId(2), incarnation: Incarnation(1) };
        let note = Note { group: GROUP, about: About::Give, text: "no".to_string() };
        assert_eq!(notes.heard(member, Notes([note.clone()].to_vec())), []);
        assert_eq!(notes.of_others(GROUP).count(), 1);
        assert_eq!(notes.heard(member, Notes::default()), [note]);
        notes.retain(&[]);
        assert_eq!(notes.of_others(GROUP).count(), 0);
    }
}
