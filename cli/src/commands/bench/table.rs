//! Measures for people: a line each.

use std::fmt::Write;

use steadfast::bench::{Ask, Outcome, Progress, Summary, Until};
use steadfast::status::Status;

/// Returns the lines above the rows.
pub fn head(status: &Status, latency: Until) -> String {
    let members: Vec<String> =
        status.ring.members.iter().map(|member| member.node.to_string()).collect();
    let until = match latency {
        Until::Own => "its delivery at the sender",
        Until::All => "its sender knows that every node has it",
        Until::Echo => "the farthest node's ordered answer is delivered at the sender",
    };
    let alone = match members.len() {
        1 => "\none node: nothing crosses a wire, so this is the floor of the program itself",
        _ => "",
    };
    let mut text = format!(
        "cluster {}, asked {}: {} nodes in the ring, {}{alone}\n\
         latency: until {until} (with pace full: its delivery at the sender); times in µs\n\n",
        status.cluster,
        status.node,
        members.len(),
        members.join(" "),
    );
    let groups = ["", "latency", "send", "own", "all", ""];
    let titles = [
        "PACE", "SIZE", "SENDERS", "LEVEL", "MSGS/S", "MIB/S", "N", "P50", "P99", "P99.9", "MAX",
        "P50", "P99", "P50", "P50", "P99", "VERIFIED",
    ];
    let spans = [WIDTHS[..7].iter().sum::<usize>() + 6, 33, 17, 8, 17, 9];
    for (group, span) in groups.iter().zip(spans) {
        let _ = write!(text, "{group:>span$} ");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text.push_str(&cells(&titles.map(str::to_owned)));
    text
}

/// Microseconds from the first message to the last without which no rate is told.
const SHORTEST_SPAN_US: f64 = 1_000.0;

const WIDTHS: [usize; 17] = [12, 7, 7, 6, 9, 7, 8, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8];

fn cells(cells: &[String; 17]) -> String {
    let mut line = String::new();
    for (i, (cell, width)) in cells.iter().zip(WIDTHS).enumerate() {
        // Writing to a string cannot fail.
        let _ = match i {
            0 => write!(line, "{cell:<width$}"),
            _ => write!(line, " {cell:>width$}"),
        };
    }
    line.push('\n');
    line
}

/// One measure.
pub fn row(outcome: &Outcome) -> String {
    let ask = &outcome.ask;
    let figure = |summary: Option<Summary>, which: fn(&Summary) -> f64| match &summary {
        Some(summary) => short(which(summary)),
        None => "-".to_owned(),
    };
    // Deliveries within a few turns of the data planes have no meaningful rate.
    let slowest = outcome.nodes.iter().map(|seen| seen.span_us).fold(0.0, f64::max);
    let rate = (slowest >= SHORTEST_SPAN_US).then_some(outcome.msgs_s);
    let latency = outcome.latency();
    let times = &outcome.times;
    cells(&[
        ask.pace.to_string(),
        ask.size.to_string(),
        ask.senders.len().to_string(),
        format!("{:?}", ask.level).to_lowercase(),
        rate.map_or("-".to_owned(), |rate| grouped(rate.round() as u64)),
        rate.map_or("-".to_owned(), |rate| short(rate * f64::from(ask.size) / f64::from(1 << 20))),
        latency.map_or("-".to_owned(), |latency| latency.n.to_string()),
        figure(latency, |it| it.p50_us),
        figure(latency, |it| it.p99_us),
        figure(latency, |it| it.p999_us),
        figure(latency, |it| it.max_us),
        figure(times.send, |it| it.p50_us),
        figure(times.send, |it| it.p99_us),
        figure(times.own, |it| it.p50_us),
        figure(times.all, |it| it.p50_us),
        figure(times.all, |it| it.p99_us),
        if outcome.is_verified() { "yes" } else { "NO" }.to_owned(),
    ])
}

/// How far a measure is.
pub fn progress(which: &str, ask: &Ask, progress: Progress) -> String {
    format!(
        "measure {which}: {} bytes, {} senders, {:?}, {}: {} messages",
        ask.size,
        ask.senders.len(),
        ask.level,
        ask.pace,
        grouped(progress.delivered)
    )
}

/// Which nodes saw what they should not.
pub fn mistakes(outcome: &Outcome) -> String {
    let sent: u64 = outcome.sent.iter().sum();
    let mut text =
        format!("{} bytes, {}: {sent} messages sent", outcome.ask.size, outcome.ask.pace);
    for seen in &outcome.nodes {
        let order = if seen.same_order { "the same order as" } else { "another order than" };
        let _ = write!(
            text,
            "\n  {}: {} received, {} corrupt, {} out of their sender's order, {order} {}",
            seen.node, seen.received, seen.corrupt, seen.disordered, outcome.nodes[0].node
        );
    }
    text
}

fn short(figure: f64) -> String {
    match figure {
        figure if figure < 1_000.0 => format!("{figure:.1}"),
        figure => format!("{figure:.0}"),
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast::NodeId;
    use steadfast::bench::{Figures, Level, Pace, Seen};

    fn outcome() -> Outcome {
        let times = Summary {
            n: 900,
            min_us: 1.0,
            p50_us: 62.5,
            p99_us: 120.25,
            p999_us: 900.0,
            max_us: 2_004.4,
        };
        let seen = |node, same_order| Seen {
            node: NodeId(node),
            received: 1_000,
            corrupt: 0,
            disordered: 0,
            same_order,
            span_us: 81_000.0,
        };
        Outcome {
            ask: Ask {
                senders: vec![NodeId(1)],
                size: 1_024,
                count: 1_000,
                warm: 100,
                span_ms: 2_000,
                level: Level::Safe,
                pace: Pace::Window(1),
                until: Until::All,
            },
            sent: vec![1_000],
            nodes: vec![seen(1, true), seen(2, true)],
            msgs_s: 12_345.6,
            times: Figures { all: Some(times), ..Figures::default() },
            late_us: 0.0,
        }
    }

    #[test]
    fn a_row_stands_below_its_titles() {
        let row = row(&outcome());
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[..6], ["one", "1024", "1", "safe", "12,346", "12.1"]);
        assert_eq!(words[6..11], ["900", "62.5", "120.2", "900.0", "2004"]);
        assert_eq!(words[11..], ["-", "-", "-", "62.5", "120.2", "yes"]);
    }

    #[test]
    fn a_mistake_names_its_node() {
        let mut outcome = outcome();
        outcome.nodes[1].same_order = false;
        outcome.nodes[1].corrupt = 3;
        assert!(row(&outcome).trim_end().ends_with("NO"));
        let text = mistakes(&outcome);
        assert!(text.contains("n2: 1000 received, 3 corrupt"), "{text}");
        assert!(text.contains("another order than n1"), "{text}");
    }

    #[test]
    fn thousands_are_told_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
