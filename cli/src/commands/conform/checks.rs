//! All checks, in the order in which they are made.

mod attaching;
mod begun;
mod bytes;
mod calls;
mod ends;
mod merging;
mod reads;
mod same;
mod states;
mod whole;

use super::check::Check;

/// The check without which no other can succeed.
pub const FIRST: &Check = &attaching::HELLO;

/// All but the first.
pub fn others() -> impl Iterator<Item = &'static Check> {
    let all: [&'static [Check]; 10] = [
        attaching::CHECKS,
        calls::CHECKS,
        reads::CHECKS,
        states::CHECKS,
        whole::CHECKS,
        same::CHECKS,
        merging::CHECKS,
        begun::CHECKS,
        bytes::CHECKS,
        ends::CHECKS,
    ];
    all.into_iter().flatten()
}
