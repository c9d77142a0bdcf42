//! Newer rules come into force, at a place in the order.

use wire::kept::NodeRecord;
use wire::ordered::{Activate, Ordered};
use wire::{Speaks, Time};

use crate::api::{Event, UpgradeError, Versions};
use crate::base::Base;
use crate::ordering::Ordering;

impl<O: Ordering> Base<O> {
    /// The first member orders newer rules, when all have known them for long enough.
    pub(crate) fn leads_upgrade(&self) -> bool {
        let founded = self.membership.levels().has_founded();
        let is_first = self.membership.members().next() == Some(self.me);
        self.membership.is_active() && (is_first || founded)
    }

    /// Orders newer rules that are due. True if there were any.
    pub(crate) fn pump_levels(&mut self, now: Time) -> bool {
        if !self.leads_upgrade() {
            return false;
        }
        let due = self.membership.levels_mut().due(now);
        if let Some(level) = due {
            self.order(now, Ordered::Activate(Activate { level }));
        }
        due.is_some()
    }

    /// Orders newer rules now: there is no way back to the program before.
    pub(crate) fn finish_upgrade(&mut self, now: Time) -> Result<u8, UpgradeError> {
        if !self.membership.is_active() {
            return Err(UpgradeError::NoQuorum);
        }
        let levels = self.membership.levels();
        let Some(level) = levels.next() else {
            return Err(match levels.lacking() {
                lacking if lacking.is_empty() => UpgradeError::Nothing(levels.level()),
                lacking => UpgradeError::Lacking(lacking),
            });
        };
        self.order(now, Ordered::Activate(Activate { level }));
        Ok(level)
    }

    /// The versions in use, for people.
    pub(crate) fn versions(&self) -> Versions {
        let (levels, ordering) = (self.membership.levels(), &self.outbox.ordering);
        let program = levels.program();
        let programs = levels.programs().iter();
        Versions {
            ring: ordering.version(),
            level: levels.level(),
            next: levels.next().map(|next| (next, levels.next_timeout())),
            lacking: levels.lacking(),
            programs: programs.map(|(node, program)| (*node, program.clone())).collect(),
            unfit: ordering.unfit(),
            speaks: Speaks { ring: program.ring, rules: program.rules, level: levels.level() },
        }
    }

    /// Newer rules come into force here. Not where the order ends with this node and a minority: the
    /// others may never have heard of it, and people may take their programs back.
    /// True if that is news.
    pub(crate) fn act_on_activate(&mut self, now: Time, Activate { level }: Activate) -> bool {
        if self.progress.is_left_behind() {
            return false;
        }
        let news = self.membership.levels_mut().activate(now, level);
        if news {
            self.note(NodeRecord::Level(level));
            self.tell_level(now);
            self.event(Event::Level(level));
        }
        news
    }

    /// The ring tells the level to nodes that want to come in, and keeps those out that do not know
    /// it.
    pub(crate) fn tell_level(&mut self, now: Time) {
        self.outbox.ordering.set_level(now, self.membership.levels().level());
    }
}
