//! Changes of the cluster key, in the ring's order.

use alloc::vec::Vec;

use wire::keys::{KeyName, KeyStep, KeyTable};
use wire::ordered::Ordered;
use wire::{Member, Time};

use crate::api::{Event, KeyError, Output};
use crate::base::Base;
use crate::keys::{Effect, Keys, Nodes, Stage};
use crate::ordering::Ordering;

/// Orders the steps of a key change, and carries out their effects on this node.
pub(super) struct KeyHandler<'a, O> {
    pub(super) base: &'a mut Base<O>,
    pub(super) keys: &'a mut Keys,
}

impl<O: Ordering> KeyHandler<'_, O> {
    /// Orders a step, or passes the error on.
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

    /// The driver has stored this key in the node's file, and opens with it; with `sealing`, it
    /// seals with it too. The node confirms that to the others.
    pub(super) fn kept(&mut self, now: Time, key: KeyName, sealing: bool) {
        if self.base.membership.is_active()
            && let Some(step) = self.keys.kept(key, sealing)
        {
            self.base.order(now, Ordered::Key(step));
        }
    }

    /// Begins a component with the key table that its members agreed on.
    pub(super) fn install(&mut self, table: Option<&KeyTable>) {
        let (present, mut effects) = (self.base.present(), Vec::new());
        let nodes = Nodes { all: self.base.membership.nodes(), present: &present };
        self.keys.install(table, nodes, &mut effects);
        self.act_on(effects);
    }

    /// Acts on a delivered step.
    pub(crate) fn act(&mut self, sender: Member, step: KeyStep) {
        let mut effects = Vec::new();
        let present = self.base.present();
        let nodes = Nodes { all: self.base.membership.nodes(), present: &present };
        self.keys.act(sender, step, nodes, &mut effects);
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
