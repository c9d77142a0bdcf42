//! Ends of nested calls, kept with the log.

use alloc::vec::Vec;

use wire::limits::MAX_LOG_ENDS_BYTES;
use wire::ordered::NestedEnd;

use crate::bug::Bug;
use crate::replica::{Child, Effect, Replica, Task};

impl Replica {
    /// The end of a call is delivered: the log has it, if its handler's request is there. True if
    /// that is there.
    pub(in crate::replica) fn log_end(
        &mut self,
        end: &NestedEnd,
        sequence: u64,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let cold = self.cold.as_mut().expect("its group logs");
        let concerned = cold.ends.concerns(end);
        if self.planted.is(Bug::ForgetEndsOfLog) {
            return concerned;
        }
        cold.ends.put(end.clone(), cold.logged, sequence);
        if cold.ends.bytes > 4 * MAX_LOG_ENDS_BYTES {
            self.out_of_step("its log has too many ends of calls".into(), effects);
        }
        concerned
    }

    /// The logged end of this call, for the running handler.
    pub(in crate::replica) fn end_in_log(&self, child: Child) -> Option<(NestedEnd, u64)> {
        let (_, task) = self.service.tasks.front()?;
        let Task::Logged { number, .. } = task else { return None };
        self.cold.as_ref()?.ends.first(child, *number).cloned()
    }

    /// Another component is installed.
    pub(in crate::replica) fn renumber_log(&mut self) {
        if let Some(cold) = &mut self.cold {
            cold.ends.renumber();
        }
    }

    /// The log has so many ends of calls that its handlers' calls are refused.
    pub(crate) fn refuses_calls(&self) -> bool {
        let ends = self.cold.as_ref().map_or(0, |cold| cold.ends.bytes);
        ends >= 2 * MAX_LOG_ENDS_BYTES
    }
}
