//! Clients that are told of newer views of a group before they call again (`docs/protocol/client.md`, "News").

use wire::client::{Bound, Frame, Watch};
use wire::{Caller, GroupId, ViewNumber};

use super::Stack;
use crate::api::Output;
use crate::bug::Bug;
use crate::ordering::Ordering;

impl<O: Ordering> Stack<O> {
    /// A client wants to hear of a group's newer views, and of one that it has missed now. At the limit it is not told: it hears of them with its
    /// replies, as it does without asking.
    pub(super) fn watch(&mut self, caller: Caller, watch: Watch) {
        if self.clients.watches.add(watch.group, caller) {
            self.tell_watcher(caller, watch.group, watch.view);
        }
    }

    /// Tells those who watch groups that have newer views. After everything else that a view asks for: who takes over has no time to lose.
    pub(super) fn tell_watchers(&mut self) {
        for group in self.clients.watches.take_changed() {
            for caller in self.clients.watches.of(group) {
                self.tell_watcher(caller, group, ViewNumber(0));
            }
        }
    }

    fn tell_watcher(&mut self, caller: Caller, group: GroupId, view: ViewNumber) {
        if self.planted.is(Bug::TellNobody) {
            return;
        }
        let Some(known) = self.directory.get(group).filter(|known| known.view > view) else {
            return;
        };
        let frame = Frame::News(Bound { group, targets: Some(self.targets(known)) });
        self.outputs.push(Output::Frame { caller, frame });
    }
}
