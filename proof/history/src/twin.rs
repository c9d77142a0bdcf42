//! The definition of linearizability, tried out: every choice of operations whose end is not known,
//! in every order.
//!
//! It shares nothing with the search but the model, and can be seen to be right. It takes as long
//! as that suggests: for ten operations at most.

use crate::model::{Model, Told};
use crate::record::{End, Operation};

/// Whether some order of the operations, all of one object, is one in which they can have been
/// executed.
pub fn is_linearizable<M: Model>(model: &M, operations: &[Told<M>]) -> bool {
    let Some(first) = operations.first() else { return true };
    is_linearizable_from(model, &model.initial(&model.key(&first.call)), operations)
}

/// The same for an object that is in this state at first.
pub fn is_linearizable_from<M: Model>(model: &M, start: &M::State, operations: &[Told<M>]) -> bool {
    let certain: Vec<_> =
        operations.iter().filter(|o| matches!(o.end, End::Answered { .. })).collect();
    let open: Vec<_> = operations.iter().filter(|o| matches!(o.end, End::Unknown)).collect();
    (0..1_u32 << open.len()).any(|chosen| {
        let happened = (0..open.len()).filter(|bit| chosen >> bit & 1 == 1).map(|bit| open[bit]);
        let mut all: Vec<_> = certain.iter().copied().chain(happened).collect();
        let count = all.len();
        let can_be = |order: &[&Told<M>]| {
            respects_time(order) && gives_the_replies(model, start.clone(), order)
        };
        orders(&mut all, count, &can_be)
    })
}

/// Whether `holds` for some order of the first `count` (Heap's algorithm).
fn orders<T: Copy>(all: &mut [T], count: usize, holds: &impl Fn(&[T]) -> bool) -> bool {
    if count <= 1 {
        return holds(all);
    }
    for i in 0..count {
        if orders(all, count - 1, holds) {
            return true;
        }
        let other = if count.is_multiple_of(2) { i } else { 0 };
        all.swap(other, count - 1);
    }
    false
}

fn respects_time<C, R>(order: &[&Operation<C, R>]) -> bool {
    order.iter().enumerate().all(|(place, later)| {
        let too_early =
            |earlier: &&Operation<C, R>| later.answer().is_some_and(|(at, _)| at < earlier.invoked);
        !order[..place].iter().any(too_early)
    })
}

fn gives_the_replies<M: Model>(model: &M, mut state: M::State, order: &[&Told<M>]) -> bool {
    order.iter().all(|operation| {
        let reply = model.execute(&mut state, &operation.call);
        operation.answer().is_none_or(|(_, seen)| *seen == reply)
    })
}
