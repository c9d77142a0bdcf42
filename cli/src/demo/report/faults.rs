//! The faults of a run, and where the time until the first reply went.

use super::super::fault::Means;
use super::super::paint::{Paint, left, millis, right};
use super::super::timeline::Timeline;
use super::parts::{heading, size};

/// Columns of a figure in the table of faults.
const FAULT_COLUMN: usize = 11;

/// Columns of a bar that shows where the time of a fail-over went.
const BAR: usize = 44;

/// Colours of the steps of a fail-over, and what stands for them where there are none.
const STEPS: [(&str, u8, char); 4] =
    [("detect", 203, 'd'), ("new ring", 215, 'r'), ("new view", 117, 'v'), ("reply", 114, 'a')];

/// The outcome of each fault, and where its time went.
pub fn table(faults: &[Timeline], paint: Paint) -> Vec<String> {
    if faults.is_empty() {
        return Vec::new();
    }
    let title = heading(&left("  Faults", 31), paint);
    let titles = ["detected", "new view", "1st reply", "gap", "longest", "restored"];
    let titles: String = titles.into_iter().map(|title| right(title, FAULT_COLUMN)).collect();
    let mut lines = vec![format!("{title}{}", paint.dim(&titles))];
    for (number, fault) in faults.iter().enumerate() {
        let Timeline { means, role, node, .. } = fault;
        let what = format!("  {} {} of node {node}, {}", number + 1, means.name(), role.name());
        let time = |time: Option<f64>| match time {
            Some(time) => right(&millis(time), FAULT_COLUMN),
            None => paint.bad(&right("never", FAULT_COLUMN)),
        };
        lines.push(format!(
            "{}{}{}{}{}{}{}",
            left(&what, 31),
            time(fault.detected_ms),
            time(fault.view_ms),
            time(fault.first_reply_ms),
            paint.bold(&time(Some(fault.gaps.gap_ms))),
            time(Some(fault.gaps.longest_gap_ms)),
            time(fault.synced_ms),
        ));
        lines.extend(fault_details(fault, paint));
        lines.push(String::new());
    }
    lines
}

fn fault_details(fault: &Timeline, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(bar(fault, paint).map(|bar| format!("    {bar}")));
    let dead = fault.dead_ms.map(|dead| format!("process gone after {}", millis(dead)));
    let detected = fault.detected_by.as_ref().map(|by| format!("detected by {by}"));
    let view = fault.view.map(|view| match fault.primary {
        Some(node) => format!("view {view} with primary node {node}"),
        None => format!("view {view} without a primary"),
    });
    let steps: Vec<String> = [dead, detected, view].into_iter().flatten().collect();
    lines.push(paint.dim(&format!("    {}", steps.join("; "))));
    let mut gaps = format!("    gap seen by {}", fault.gaps.gap_client);
    if fault.gaps.longest_gap_ms > fault.gaps.gap_ms {
        let (client, from) =
            (&fault.gaps.longest_gap_client, millis(fault.gaps.longest_gap_from_ms));
        gaps += &format!("; the longest {from} later by {client}");
    }
    lines.push(paint.dim(&gaps));
    let undone = match fault.means {
        Means::Kill => "started again",
        Means::Stop => "continued",
    };
    let state = fault.state_bytes.map_or(String::new(), |bytes| format!(", given {}", size(bytes)));
    if let (Some(on), Some(time)) = (fault.restored_on, fault.synced_ms) {
        let text = format!(
            "    all replicas again after {}, the new one on node {on}{state}",
            millis(time)
        );
        lines.push(paint.dim(&text));
    }
    lines.push(paint.dim(&format!(
        "    node {} {undone} after {}; gap meanwhile {}",
        fault.node,
        millis(fault.undone_ms),
        millis(fault.gaps.return_gap_ms)
    )));
    lines
}

/// Where the time from the fault to the first reply went, in proportion.
fn bar(fault: &Timeline, paint: Paint) -> Option<String> {
    let detected = fault.detected_ms?;
    let view = fault.view_ms?;
    let ring = fault.ring_ms.unwrap_or(view).clamp(detected.min(view), view);
    let total = fault.first_reply_ms?;
    let ends = [detected, ring, view, total];
    let (mut drawn, mut before) = (0, 0.0);
    let (mut bar, mut legend) = (String::new(), Vec::new());
    for ((name, colour, letter), end) in STEPS.into_iter().zip(ends) {
        let column = ((end / total * BAR as f64).round() as usize).clamp(drawn, BAR);
        let cells = column - drawn;
        bar += &if paint.is_on() {
            paint.colour(colour, &"█".repeat(cells))
        } else {
            letter.to_string().repeat(cells)
        };
        let key = if paint.is_on() { paint.colour(colour, "■") } else { letter.to_string() };
        legend.push(format!("{key} {name} {:.2}", (end - before).max(0.0)));
        (drawn, before) = (column, end);
    }
    Some(format!("{bar}\n    {}", legend.join("  ")))
}
