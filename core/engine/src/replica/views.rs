//! The group's views, as its service is told of them among its commands
//! (`docs/protocol/group.md`, "Services and views").

use alloc::vec::Vec;

use wire::attach::View;

use super::{Effect, Mode, Replica, Waiting};
use crate::api::Command;
use crate::bug::Bug;
use crate::style::StyleRules;

impl Replica {
    /// The group has this view from this place of the order on. A service that executes what others
    /// log, or will execute when it has the state, is told behind all that was ordered before.
    pub(crate) fn view(&mut self, view: View, effects: &mut Vec<Effect>) {
        let waits = match self.mode {
            Mode::Live => false,
            Mode::Draining
            | Mode::Snapshotting
            | Mode::Joining { .. }
            | Mode::Restoring { .. }
            | Mode::Recalling { .. }
            | Mode::Launching { .. } => true,
            Mode::Idle | Mode::Fallen => return,
        };
        if self.service.viewed == Some(view.number) || self.style.logs() {
            return;
        }
        self.service.viewed = Some(view.number);
        if self.planted.is(Bug::ViewTooEarly) {
            return effects.push(Effect::Run(Command::View(view)));
        }
        match waits {
            true => self.wait_for(Waiting::View(view), effects),
            false => self.run(Command::View(view), effects),
        }
    }
}
