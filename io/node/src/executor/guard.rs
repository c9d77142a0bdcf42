//! A service's code, run so that its panic ends neither the replica nor the node.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wire::limits::MAX_REASON;

use crate::service::BoxError;

/// Runs the service's code; its panic ends neither the replica nor the node. The service's state
/// after it is the service's affair, and the same at every replica.
pub(super) fn guarded<T>(what: &str, run: impl FnOnce() -> T) -> Result<T, ()> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        tracing::error!(panic = panic_text(&*panic), "a service panicked in its {what}");
    })
}

/// Returns a service's answer about its state, with errors and panics as text.
pub(super) fn ask<T>(what: &str, run: impl FnOnce() -> Result<T, BoxError>) -> Result<T, String> {
    match guarded(what, run) {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(()) => Err(format!("the service panicked in its {what}")),
    }
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// A reason, cut between characters where the wire would refuse it.
pub(crate) fn cut(mut reason: String) -> String {
    let fits = |end: &usize| reason.is_char_boundary(*end);
    let end = (0..=reason.len().min(MAX_REASON)).rev().find(fits).unwrap_or(0);
    reason.truncate(end);
    reason
}
