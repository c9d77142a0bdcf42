//! The report of a run, for people at a glance and for programs as JSON.

use std::io::{IsTerminal, Write};

use super::board;
use super::choice::Choice;
use super::fault::Role;
use super::outcome::{Latency, Outcome, Replica};
use super::paint::{Paint, counted, grouped, left, millis, right};

mod faults;
mod parts;

use parts::{heading, size};

/// Columns before the figures.
const LABEL: usize = 14;

/// Prints it on standard output. A reader that has gone away is no error of the demo.
pub fn print(outcome: &Outcome, json: bool) {
    let mut out = std::io::stdout().lock();
    let _ = if json {
        let text = serde_json::to_string(outcome).expect("an outcome is plain data");
        writeln!(out, "{text}")
    } else {
        let paint = Paint::for_stream(out.is_terminal());
        writeln!(out, "{}", text(outcome, paint))
    };
}

/// The report for people.
pub fn text(outcome: &Outcome, paint: Paint) -> String {
    let mut lines = vec![String::new()];
    lines.extend(head(outcome, paint));
    lines.push(String::new());
    lines.extend(events(outcome, paint));
    lines.push(String::new());
    lines.extend(replicas(outcome, paint));
    lines.push(String::new());
    lines.extend(latencies(outcome, paint));
    lines.push(String::new());
    lines.extend(choice(outcome, paint));
    lines.extend(faults::table(&outcome.faults, paint));
    if !outcome.boards.is_empty() {
        let boards = board::beside(&outcome.boards, &outcome.network, paint);
        lines.extend(boards.iter().map(|line| format!("  {line}")));
        lines.push(String::new());
    }
    lines.extend(verdict(outcome, paint));
    let trimmed: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    trimmed.join("\n")
}

fn head(outcome: &Outcome, paint: Paint) -> Vec<String> {
    let (plan, network) = (&outcome.plan, &outcome.network);
    let badges = network.lines.iter().map(|line| {
        let badge = paint.behind(line.colour, &format!(" {} ", line.letter));
        format!("{badge} {}", line.name)
    });
    let badges = badges.collect::<Vec<_>>().join("  ");
    vec![
        format!("  {}", paint.bold("Steadfast · the light rail of Porto")),
        format!("  {badges}"),
        paint.dim(&format!(
            "  {} lines, {} stations, {} sensors · {}, {} (semi-active)",
            network.lines.len(),
            network.stations.len(),
            network.sensors.len(),
            counted(plan.nodes, "node"),
            counted(plan.replicas, "replica"),
        )),
        paint.dim(&format!(
            "  {} s at {} events/s · seed {}",
            plan.seconds,
            grouped(plan.rate as u64),
            plan.seed
        )),
    ]
}

fn events(outcome: &Outcome, paint: Paint) -> Vec<String> {
    let audit = &outcome.audit;
    let columns = [
        ("sent", audit.sent, None),
        ("acknowledged", audit.acknowledged, None),
        ("unanswered", audit.unacknowledged, Some(false)),
        ("lost", audit.lost, Some(true)),
        ("executed twice", audit.duplicated, Some(true)),
        ("stale boards", audit.stale_boards, Some(true)),
    ];
    let (mut titles, mut values) = (String::new(), String::new());
    for (title, value, bad) in columns {
        let width = title.len().max(6) + 2;
        titles += &right(title, width);
        let shown = right(&grouped(value), width);
        values += &match (bad, value) {
            (Some(true), 0) => paint.good(&shown),
            (Some(true), _) => paint.bad(&shown),
            (Some(false), 1..) => paint.warn(&shown),
            _ => shown,
        };
    }
    let title = heading(&left("  Events", LABEL), paint);
    let mut lines =
        vec![format!("{title}{}", paint.dim(&titles)), format!("{:LABEL$}{values}", "")];
    for (error, count) in &audit.errors {
        lines.push(paint.warn(&format!("{:16}{} × {error}", "", grouped(*count))));
    }
    lines.extend(audit.examples.iter().map(|example| paint.bad(&format!("{:16}{example}", ""))));
    lines
}

fn replicas(outcome: &Outcome, paint: Paint) -> Vec<String> {
    let title = heading(&left("  Replicas", LABEL), paint);
    let titles = format!("  {:<18}{:>10}{:>14}", "state digest", "size", "executed");
    let mut lines = vec![format!("{title}{}", paint.dim(&titles))];
    let first = outcome.replicas.first().map(|replica| replica.digest.clone());
    for replica in &outcome.replicas {
        let Replica { node, primary, executed, bytes, digest, .. } = replica;
        let shown = left(digest.get(..16).unwrap_or(digest), 18);
        let same = first.as_ref() == Some(digest);
        let shown = if same { paint.good(&shown) } else { paint.bad(&shown) };
        lines.push(format!(
            "{}  {shown}{:>10}{:>14}{}",
            left(&format!("    node {node}"), LABEL),
            size(*bytes as u64),
            grouped(*executed),
            if *primary { "   primary" } else { "" },
        ));
    }
    lines
}

fn latencies(outcome: &Outcome, paint: Paint) -> Vec<String> {
    let title = heading(&left("  Latency", LABEL), paint);
    let titles: String =
        ["calls", "p50", "p99", "p99.9", "max", "over 2 s"].map(|title| right(title, 10)).concat();
    let mut lines = vec![format!("{title}{}", paint.dim(&titles))];
    for name in ["normal", "critical", "alarm", "query"] {
        let Some(latency) = outcome.latency.get(name) else { continue };
        let Latency { count, p50_ms, p99_ms, p999_ms, max_ms, late } = latency;
        let times = [p50_ms, p99_ms, p999_ms, max_ms].map(|&time| right(&millis(time), 10));
        let late_shown = right(&grouped(*late), 10);
        let late_shown = if *late == 0 { late_shown } else { paint.warn(&late_shown) };
        let label = left(&format!("    {name}"), LABEL);
        lines.push(format!("{label}{}{}{late_shown}", right(&grouped(*count), 10), times.concat()));
    }
    lines
}

/// The backup that was to take over, and the one that did.
fn choice(outcome: &Outcome, paint: Paint) -> Vec<String> {
    let Some(Choice { busy, used_percent, before, after, took_ms }) = &outcome.choice else {
        return Vec::new();
    };
    let list = |nodes: &[u32]| nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let title = heading(&left("  Next targets", LABEL), paint);
    let told = format!(
        "  nodes {}; node {busy} got something else to do (its part is used to {used_percent} %): after {} nodes {}",
        list(before),
        millis(*took_ms as f64),
        list(after)
    );
    let took_over = outcome.faults.iter().find(|fault| fault.role == Role::Primary);
    let mut lines = vec![format!("{title}{told}")];
    lines.extend(took_over.and_then(|fault| fault.primary).map(|node| {
        let text = format!("{:LABEL$}  node {node} took over", "");
        if node == *busy { paint.bad(&text) } else { paint.good(&text) }
    }));
    lines.push(String::new());
    lines
}

fn verdict(outcome: &Outcome, paint: Paint) -> Vec<String> {
    if outcome.passed {
        let survived = match outcome.faults.len() {
            0 => String::new(),
            1 => ", the fault survived".to_owned(),
            faults => format!(", {faults} faults survived"),
        };
        let text = "✔ nothing acknowledged was lost or executed twice, all replicas are equal";
        return vec![format!("  {}", paint.good(&format!("{text}{survived}")))];
    }
    outcome.failures.iter().map(|failure| paint.bad(&format!("  ✘ {failure}"))).collect()
}

#[cfg(test)]
mod tests;
