//! The behaviour of an object, one operation after the other.

use std::fmt::Debug;
use std::hash::Hash;

use crate::record::Operation;

/// An operation of a model's object.
pub type Told<M> = Operation<<M as Model>::Call, <M as Model>::Reply>;

/// A sequential object, or many alike of which each has a key.
///
/// Keys make a history of many objects as cheap to check as its objects one by one: a history is
/// linearizable if that of each of its objects is (Herlihy and Wing's locality; Horn and Kroening,
/// *Faster linearizability checking via P-compositionality*, FORTE 2015, for parts of one object).
pub trait Model {
    /// Which object.
    type Key: Clone + Ord + Debug;
    /// A request. Calls that are equal must do the same.
    type Call: Clone + Eq + Debug;
    /// An answer.
    type Reply: Clone + Eq + Debug;
    /// The state of an object.
    type State: Clone + Eq + Hash + Debug;

    /// The object that a call is about.
    fn key(&self, call: &Self::Call) -> Self::Key;

    /// An object at the beginning.
    fn initial(&self, key: &Self::Key) -> Self::State;

    /// Executes a call.
    fn execute(&self, state: &mut Self::State, call: &Self::Call) -> Self::Reply;

    /// The state after a call if it is answered like that; `None` for an answer that cannot be. If
    /// nobody saw the answer (`reply` is `None`), any answer will do.
    fn step(
        &self,
        state: &Self::State,
        call: &Self::Call,
        reply: Option<&Self::Reply>,
    ) -> Option<Self::State> {
        let mut next = state.clone();
        let right = self.execute(&mut next, call);
        reply.is_none_or(|reply| *reply == right).then_some(next)
    }

    /// Whether the call, if it is answered like that, changes nothing in any state: a read, or a
    /// refused change. A write of the present value is no read: elsewhere in the order it changes
    /// something.
    fn is_read(&self, call: &Self::Call, reply: Option<&Self::Reply>) -> bool;

    /// An operation in few words: `write 3`, `read → 3`.
    fn tell(&self, call: &Self::Call, reply: Option<&Self::Reply>) -> String;
}
