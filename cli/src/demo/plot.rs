//! A fault's time line as a picture: SVG, for a README or a wall.

use std::fmt::Write;

use super::timeline::Timeline;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 36.0;
const ROW: f64 = 26.0;
const HEAD: f64 = 34.0;

/// One milestone of a fault: its name, when it came after the fault, and its colour.
type Milestone = (&'static str, Option<f64>, &'static str);

fn milestones(fault: &Timeline) -> [Milestone; 5] {
    [
        ("failure detected", fault.detected_ms, "#c0392b"),
        ("new membership", fault.ring_ms, "#b9770e"),
        ("new view", fault.view_ms, "#7d6608"),
        ("first reply", fault.first_reply_ms, "#1e8449"),
        ("replica replaced", fault.synced_ms, "#1f618d"),
    ]
}

/// All faults, one below the other, on a logarithmic axis of milliseconds after the fault.
pub fn svg(faults: &[Timeline]) -> String {
    let block = HEAD + 5.0 * ROW + 30.0;
    let height = block * faults.len() as f64 + 8.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for (index, fault) in faults.iter().enumerate() {
        draw(&mut svg, fault, block * index as f64);
    }
    svg += "</svg>\n";
    svg
}

/// Where so many milliseconds after the fault lie: from 1 ms to 1 s.
fn place(ms: f64) -> f64 {
    LEFT + ms.clamp(1.0, 1_000.0).log10() / 3.0 * (WIDTH - LEFT - RIGHT)
}

// Writing to a string cannot fail.
fn draw(svg: &mut String, fault: &Timeline, top: f64) {
    let (node, role) = (fault.node, fault.role.name());
    let (x, y) = (12.0, top + 22.0);
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" font-weight=\"bold\">{} of node {node}, {role}: longest gap of any \
         client {:.1} ms</text>",
        fault.means.name(),
        fault.gaps.longest_gap_ms
    );
    let bottom = top + HEAD + 5.0 * ROW;
    for ms in [1.0, 10.0, 100.0, 1_000.0] {
        let x = place(ms);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#d5d8dc\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#566573\">{ms} ms</text>",
            top + HEAD,
            bottom + 16.0
        );
    }
    for (row, (name, at, colour)) in milestones(fault).into_iter().enumerate() {
        let y = top + HEAD + (row as f64 + 0.5) * ROW;
        let baseline = y + 4.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{name}</text>",
            LEFT - 10.0
        );
        let Some(ms) = at else { continue };
        let (from, end) = (place(1.0), place(ms));
        // The label stands where there is room.
        let (label, anchor) = if end > WIDTH - 120.0 { (-8.0, "end") } else { (8.0, "start") };
        let _ = writeln!(
            svg,
            "<line x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{end:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" \
             stroke-width=\"6\" stroke-linecap=\"round\"/>\n\
             <text x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{ms:.1} \
             ms</text>",
            end + label
        );
    }
}
