//! Panics of the machines under test, which become violations of the seed that they strike.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::check::{Verdict, Violation};

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    /// A seed runs on this thread, whose panics are told as violations.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics of machines under test quiet: they become violations of the seed that they
/// strike. All others are told as ever. To be called before the first seed.
pub fn catch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                return others(info);
            }
            PANIC.with(|panic| *panic.borrow_mut() = Some(info.to_string().replace('\n', " ")));
        }));
    });
}

/// Runs it; a panic inside is a violation.
pub fn guarded(run: impl FnOnce() -> Verdict) -> Verdict {
    GUARDED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(false);
    outcome.unwrap_or_else(|payload| {
        let kept = PANIC.with(|panic| panic.borrow_mut().take());
        let said = payload.downcast_ref::<&str>().map(ToString::to_string);
        let text = kept.or(said).unwrap_or_else(|| "a machine panicked".into());
        Err(Violation { property: "invariants", text })
    })
}
