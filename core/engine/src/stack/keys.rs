//! The cluster's keys.

use alloc::vec::Vec;

use wire::keys::{KeyName, KeyStep, OfferedKey};
use wire::ordered::Ordered;
use wire::{Member, NodeId, Time};

use super::Stack;
use crate::api::{Event, KeyError, Output};
use crate::keys::{Effect, Stage};
use crate::ordering::Ordering;

impl<O: Ordering> Stack<O> {
    /// Gives the cluster another key. Every node keeps it, then all seal with it, then the old one is
    /// forgotten; each step waits for every configured node.
    ///
    /// # Errors
    /// Why it cannot begin now; nothing has happened then.
    pub fn change_key(&mut self, now: Time, key: OfferedKey) -> Result<(), KeyError> {
        let step = self.keys.offer(key);
        self.order_key_step(now, step)
    }

    /// Lets the change under way wait for present nodes only. Who is away needs the new key file to come back.
    ///
    /// # Errors
    /// There is none.
    pub fn force_key_change(&mut self, now: Time) -> Result<(), KeyError> {
        let step = self.keys.force();
        self.order_key_step(now, step)
    }

    /// Gives the change under way up, as long as nobody seals with the new key.
    ///
    /// # Errors
    /// There is none, or it is too late.
    pub fn abort_key_change(&mut self, now: Time) -> Result<(), KeyError> {
        let step = self.keys.abort();
        self.order_key_step(now, step)
    }

    fn order_key_step(
        &mut self,
        now: Time,
        step: Result<KeyStep, KeyError>,
    ) -> Result<(), KeyError> {
        let step = step?;
        if !self.membership.is_active() {
            return Err(KeyError::NoQuorum);
        }
        self.order(now, Ordered::Key(step));
        self.settle(now);
        Ok(())
    }

    /// A key is in this node's file, and opens; if `sealing`, it seals too.
    pub fn handle_key_kept(&mut self, now: Time, key: KeyName, sealing: bool) {
        if self.membership.is_active()
            && let Some(step) = self.keys.kept(key, sealing)
        {
            self.order(now, Ordered::Key(step));
        }
        self.settle(now);
    }

    pub(super) fn act_on_key(&mut self, sender: Member, step: KeyStep) {
        let mut effects = Vec::new();
        let present = self.present();
        self.keys.act(sender, step, &present, &mut effects);
        self.key_effects(effects);
    }

    /// The component's nodes.
    pub(super) fn present(&self) -> Vec<NodeId> {
        self.membership.members().map(|member| member.node).collect()
    }

    pub(super) fn key_effects(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Command(command) => self.outputs.push(Output::Key(command)),
                Effect::Told(stage) => self.event(match stage {
                    Stage::Offered(key) => Event::KeyOffered(key),
                    Stage::Switched(key) => Event::KeySwitched(key),
                    Stage::Retired(key) => Event::KeyRetired(key),
                    Stage::Aborted(key) => Event::KeyAborted(key),
                }),
            }
        }
    }
}
