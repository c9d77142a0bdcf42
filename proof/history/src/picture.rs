//! Operations as bars on lanes: time goes to the right, each event has a column of its own.

use std::collections::BTreeMap;

use wire::Time;

/// One operation to be drawn.
pub(crate) struct Bar {
    pub(crate) client: u32,
    pub(crate) begin: Time,
    /// `None`: its end is not known.
    pub(crate) end: Option<Time>,
    pub(crate) words: String,
    /// The counterexample is about this operation.
    pub(crate) marked: bool,
}

/// Columns between two events.
const STEP: usize = 2;

/// More operations than these make no picture: the first are left out, and counted.
const MOST: usize = 24;

/// Draws the bars; `hidden` operations before them are not there.
pub(crate) fn draw(bars: &[Bar], hidden: usize) -> String {
    let left_out = bars.len().saturating_sub(MOST);
    let bars = &bars[left_out..];
    let columns = columns(bars);
    let width = columns.iter().map(|&(_, end)| end).max().unwrap_or_default() + 1;
    let mut lanes: BTreeMap<u32, Vec<Vec<char>>> = BTreeMap::new();
    let mut order: Vec<usize> = (0..bars.len()).collect();
    order.sort_by_key(|&bar| columns[bar]);
    for bar in order {
        let (begin, end) = columns[bar];
        let rows = lanes.entry(bars[bar].client).or_default();
        let free = |row: &Vec<char>| row[begin..].iter().all(|cell| *cell == ' ');
        let row = rows.iter().position(free).unwrap_or_else(|| {
            rows.push(vec![' '; width + 2]);
            rows.len() - 1
        });
        write(&mut rows[row], &bars[bar], begin, end);
    }
    let mut text = String::new();
    if hidden + left_out > 0 {
        text.push_str(&format!("  ({} earlier operations are not shown)\n", hidden + left_out));
    }
    for (client, rows) in lanes {
        for row in rows {
            let row: String = row.into_iter().collect();
            text.push_str(&format!("  c{client:<5}{}\n", row.trim_end()));
        }
    }
    text
}

fn write(row: &mut [char], bar: &Bar, begin: usize, end: usize) {
    let filling = if bar.end.is_some() { '─' } else { '╌' };
    row[begin] = '├';
    row[begin + 1..end].fill(filling);
    for (cell, letter) in row[begin + 1..].iter_mut().zip(bar.words.chars()) {
        *cell = letter;
    }
    row[end] = match (&bar.end, bar.marked) {
        (Some(_), true) => '╡',
        (Some(_), false) => '┤',
        (None, _) => '?',
    };
    if bar.marked {
        row[end + 1] = '✗';
    }
}

/// The first and last column of each bar: events in order of time, with room for the words.
fn columns(bars: &[Bar]) -> Vec<(usize, usize)> {
    let mut events: Vec<(Time, bool, usize)> = Vec::new();
    for (place, bar) in bars.iter().enumerate() {
        events.push((bar.begin, false, place));
        events.extend(bar.end.map(|end| (end, true, place)));
    }
    events.sort_unstable();
    let mut columns = vec![(0, 0); bars.len()];
    let mut next = 0;
    for (_, is_end, place) in events {
        if is_end {
            let least = columns[place].0 + bars[place].words.chars().count() + 1;
            columns[place].1 = least.max(next);
            next = columns[place].1 + STEP;
        } else {
            columns[place].0 = next;
            next += STEP;
        }
    }
    let last = bars.iter().zip(&columns).map(|(bar, &(begin, end))| {
        if bar.end.is_some() { end } else { begin + bar.words.chars().count() + 1 }
    });
    let last = last.max().unwrap_or_default();
    for (bar, column) in bars.iter().zip(&mut columns) {
        if bar.end.is_none() {
            column.1 = last;
        }
    }
    columns
}
