//! What a run came to, for people at a glance and for programs as JSON.

use std::io::{IsTerminal, Write};

use super::board;
use super::outcome::{Latency, Outcome, Replica};
use super::paint::{Paint, counted, grouped, left, millis, right};
use super::timeline::{Means, Timeline};

/// Columns before the figures.
const LABEL: usize = 14;

/// Columns of a figure in the table of faults.
const FAULT_COLUMN: usize = 11;

/// Columns of a bar that shows where the time of a fail-over went.
const BAR: usize = 44;

/// Colours of the steps of a fail-over, and what stands for them where there are none.
const STEPS: [(&str, u8, char); 4] =
    [("detect", 203, 'd'), ("new ring", 215, 'r'), ("new view", 117, 'v'), ("reply", 114, 'a')];

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
    lines.extend(faults(&outcome.faults, paint));
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

fn heading(text: &str, paint: Paint) -> String {
    paint.bold(text)
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

fn size(bytes: u64) -> String {
    if bytes < 10_000 { format!("{bytes} B") } else { format!("{} KiB", bytes / 1024) }
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

fn faults(faults: &[Timeline], paint: Paint) -> Vec<String> {
    if faults.is_empty() {
        return Vec::new();
    }
    let title = heading(&left("  Faults", 31), paint);
    let titles = ["detected", "new view", "1st reply", "gap", "longest", "in step"];
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
            paint.bold(&time(Some(fault.gap_ms))),
            time(Some(fault.longest_gap_ms)),
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
    let mut gaps = format!("    gap seen by {}", fault.gap_client);
    if fault.longest_gap_ms > fault.gap_ms {
        let (client, from) = (&fault.longest_gap_client, millis(fault.longest_gap_from_ms));
        gaps += &format!("; the longest {from} later by {client}");
    }
    lines.push(paint.dim(&gaps));
    let undone = match fault.means {
        Means::Kill => "started again",
        Means::Stop => "continued",
    };
    let state = fault.state_bytes.map_or(String::new(), |bytes| format!(", given {}", size(bytes)));
    lines.push(paint.dim(&format!(
        "    {undone} after {}{state}; gap meanwhile {}",
        millis(fault.undone_ms),
        millis(fault.return_gap_ms)
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
mod tests {
    use std::sync::Arc;

    use expect_test::expect;
    use steadfast::State;

    use super::super::Plan;
    use super::super::audit::Audit;
    use super::super::network::Network;
    use super::super::service::PassengerInformation;
    use super::super::timeline::Role;
    use super::*;

    fn timeline(role: Role, node: u32) -> Timeline {
        Timeline {
            means: Means::Kill,
            role,
            node,
            at_s: 5.0,
            dead_ms: Some(0.31),
            detected_ms: Some(0.4),
            detected_by: Some("node 2: its host refuses".to_owned()),
            ring_ms: Some(1.9),
            view_ms: Some(2.3),
            view: Some(4),
            primary: Some(2),
            first_reply_ms: Some(3.15),
            gap_ms: 3.32,
            gap_client: "display Trindade".to_owned(),
            longest_gap_ms: 7.5,
            longest_gap_from_ms: 617.2,
            longest_gap_client: "line B session 3".to_owned(),
            return_gap_ms: 2.1,
            undone_ms: 2_000.4,
            synced_ms: Some(2_112.0),
            state_bytes: Some(49_152),
            survived: true,
        }
    }

    fn outcome() -> Outcome {
        let network = Network::porto();
        let state = PassengerInformation::new(Arc::new(network.clone())).snapshot().unwrap();
        let replica = |node, primary| Replica::new(node, primary, 21_400, &state).unwrap();
        let latency = Latency {
            count: 18_003,
            p50_ms: 0.41,
            p99_ms: 1.23,
            p999_ms: 9.8,
            max_ms: 14.1,
            late: 0,
        };
        Outcome {
            passed: true,
            failures: Vec::new(),
            audit: Audit { sent: 20_000, acknowledged: 20_000, boards: 1_400, ..Audit::default() },
            digests_equal: true,
            replicas: vec![replica(1, false), replica(2, true), replica(3, false)],
            latency: ["normal", "critical", "alarm", "query"].map(|k| (k, latency.clone())).into(),
            faults: vec![timeline(Role::Primary, 1), timeline(Role::Backup, 3)],
            plan: Plan {
                seconds: 20.0,
                rate: 1_000.0,
                nodes: 5,
                replicas: 3,
                faults: vec![Role::Primary, Role::Backup],
                means: Means::Kill,
                seed: 1,
                secure: false,
                keep: false,
            },
            boards: Vec::new(),
            network,
        }
    }

    #[test]
    fn a_good_run_is_taken_in_at_a_glance() {
        expect![[r#"

            Steadfast · the light rail of Porto
             A  Azul   B  Vermelha   C  Verde   D  Amarela   E  Violeta
            5 lines, 70 stations, 219 sensors · 5 nodes, 3 replicas (semi-active)
            20 s at 1,000 events/s · seed 1

            Events          sent  acknowledged  unanswered    lost  executed twice  stale boards
                          20,000        20,000           0       0               0             0

            Replicas      state digest            size      executed
              node 1      ea03fd8311f69931       502 B        21,400
              node 2      ea03fd8311f69931       502 B        21,400   primary
              node 3      ea03fd8311f69931       502 B        21,400

            Latency          calls       p50       p99     p99.9       max  over 2 s
              normal        18,003   0.41 ms   1.23 ms   9.80 ms   14.1 ms         0
              critical      18,003   0.41 ms   1.23 ms   9.80 ms   14.1 ms         0
              alarm         18,003   0.41 ms   1.23 ms   9.80 ms   14.1 ms         0
              query         18,003   0.41 ms   1.23 ms   9.80 ms   14.1 ms         0

            Faults                          detected   new view  1st reply        gap    longest    in step
            1 kill -9 of node 1, primary     0.40 ms    2.30 ms    3.15 ms    3.32 ms    7.50 ms     2.11 s
              ddddddrrrrrrrrrrrrrrrrrrrrrvvvvvaaaaaaaaaaaa
              d detect 0.40  r new ring 1.50  v new view 0.40  a reply 0.85
              process gone after 0.31 ms; detected by node 2: its host refuses; view 4 with primary node 2
              gap seen by display Trindade; the longest 617 ms later by line B session 3
              started again after 2.00 s, given 48 KiB; gap meanwhile 2.10 ms

            2 kill -9 of node 3, backup      0.40 ms    2.30 ms    3.15 ms    3.32 ms    7.50 ms     2.11 s
              ddddddrrrrrrrrrrrrrrrrrrrrrvvvvvaaaaaaaaaaaa
              d detect 0.40  r new ring 1.50  v new view 0.40  a reply 0.85
              process gone after 0.31 ms; detected by node 2: its host refuses; view 4 with primary node 2
              gap seen by display Trindade; the longest 617 ms later by line B session 3
              started again after 2.00 s, given 48 KiB; gap meanwhile 2.10 ms

            ✔ nothing acknowledged was lost or executed twice, all replicas are equal, 2 faults survived"#]]
            .assert_eq(&text(&outcome(), Paint::PLAIN).replace("\n  ", "\n"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut outcome = outcome();
        outcome.passed = false;
        outcome.failures = vec!["2 acknowledged events are lost".to_owned()];
        outcome.audit.lost = 2;
        outcome.faults[1].view_ms = None;
        let text = text(&outcome, Paint::PLAIN);
        assert!(text.contains("✘ 2 acknowledged events are lost"), "{text}");
        assert!(text.contains("never"), "{text}");
        assert!(!text.contains('✔'), "{text}");
    }

    #[test]
    fn the_json_form_has_the_documented_keys() {
        let json = serde_json::to_value(outcome()).unwrap();
        for key in ["passed", "sent", "acknowledged", "lost", "duplicated", "digests_equal"] {
            assert!(!json[key].is_null(), "{key}");
        }
        assert_eq!(json["latency"]["alarm"]["p999_ms"], 9.8);
        assert_eq!(json["faults"][0]["role"], "primary");
        assert_eq!(json["replicas"][1]["primary"], true);
    }
}
