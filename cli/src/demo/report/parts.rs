//! The elements that all parts of a report share.

use super::super::paint::Paint;

pub fn heading(text: &str, paint: Paint) -> String {
    paint.bold(text)
}

pub fn size(bytes: u64) -> String {
    if bytes < 10_000 { format!("{bytes} B") } else { format!("{} KiB", bytes / 1024) }
}
