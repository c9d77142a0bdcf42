//! Changes of the cluster's keys.

use alloc::vec::Vec;

use wire::keys::{KeyName, KeyStep, KeyTable};
use wire::ordered::Ordered;
use wire::{Member, Time};

use crate::api::{Event, KeyError, Output};
use crate::base::Base;
use crate::keys::{Effect, Keys, Stage};
use crate::ordering::Ordering;

/// Changes keys, and carries out the consequences.
pub(super) struct KeyHandler<'a, O> {
    pub(super) base: &'a mut Base<O>,
    pub(super) keys: &'a mut Keys,
}

impl<O: Ordering> KeyHandler<'_, O> {
    pub(super) fn order(
        &mut self,
        now: Time,
        step: Result<KeyStep, KeyError>,
    ) -> Result<(), KeyError> {
        let step = step?;
        if !self.base.membership.is_active() {
            return Err(KeyError::NoQuorum);
        }
        self.base.order(now, Ordered::Key(step));
        Ok(())
    }

    /// A key is in this node's file and opens messages; if `sealing`, it seals too.
    pub(super) fn kept(&mut self, now: Time, key: KeyName, sealing: bool) {
        if self.base.membership.is_active()
            && let Some(step) = self.keys.kept(key, sealing)
        {
            self.base.order(now, Ordered::Key(step));
        }
    }

    /// Begins a component with this table.
    pub(super) fn install(&mut self, table: Option<&KeyTable>) {
        let (present, mut effects) = (self.base.present(), Vec::new());
        self.keys.install(table, &present, &mut effects);
        self.act_on(effects);
    }

    pub(crate) fn act(&mut self, sender: Member, step: KeyStep) {
        let mut effects = Vec::new();
        let present = self.base.present();
        self.keys.act(sender, step, &present, &mut effects);
        self.act_on(effects);
    }

    fn act_on(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Command(command) => self.base.outputs.push(Output::Key(command)),
                Effect::Told(stage) => self.base.event(match stage {
                    Stage::Offered(key) => Event::KeyOffered(key),
                    Stage::Switched(key) => Event::KeySwitched(key),
                    Stage::Retired(key) => Event::KeyRetired(key),
                    Stage::Aborted(key) => Event::KeyAborted(key),
                }),
            }
        }
    }
}
