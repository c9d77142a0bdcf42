//! A station's board as passengers see it.

use super::network::{Line, Network, SensorKind, StationId};
use super::paint::{Paint, left, right};
use super::service::Board;

/// Departures shown.
const SHOWN: usize = 5;

/// Columns inside the frame.
pub const WIDTH: usize = 40;

/// Boards beside each other.
pub fn beside(boards: &[Board], network: &Network, paint: Paint) -> Vec<String> {
    let boards: Vec<_> = boards.iter().map(|board| lines(board, network, paint)).collect();
    let height = boards.iter().map(Vec::len).max().unwrap_or(0);
    let gap = " ".repeat(WIDTH + 4);
    let row = |row: usize| {
        let cells = boards.iter().map(|board| board.get(row).map_or(gap.as_str(), String::as_str));
        cells.collect::<Vec<_>>().join("  ")
    };
    (0..height).map(row).collect()
}

/// The lines of a board, all of one width.
fn lines(board: &Board, network: &Network, paint: Paint) -> Vec<String> {
    let name = |id: StationId| network.station(id).map_or("?", |station| station.name.as_str());
    let station = name(board.station);
    let time = time_of_day(board.time);
    let rule = "─".repeat(WIDTH.saturating_sub(station.chars().count() + time.len() + 4));
    let mut lines = vec![format!("╭─ {} {rule} {time} ─╮", paint.bold(station))];
    let mut line = |text: &str, painted: String| {
        let fill = " ".repeat(WIDTH.saturating_sub(text.chars().count()));
        lines.push(format!("│ {painted}{fill} │"));
    };
    for departure in board.departures.iter().take(SHOWN) {
        let Some(Line { letter, colour, .. }) = network.lines.get(usize::from(departure.line.0))
        else {
            continue;
        };
        let wait = departure.leaves.saturating_sub(board.time) / 1_000_000_000;
        let wait = if wait < 60 { "now".to_owned() } else { format!("{} min", wait / 60) };
        let badge = format!(" {letter} ");
        let place = left(name(departure.destination), 21);
        let rest = format!(" {place} {:>4} {}", departure.train, right(&wait, 8));
        line(&format!("{badge}{rest}"), format!("{}{rest}", paint.behind(*colour, &badge)));
    }
    if board.departures.is_empty() {
        line("no departures", paint.dim("no departures"));
    }
    for equipment in &board.malfunctions {
        let text = format!(" ▲  {} out of order", equipment.name());
        line(&text, paint.warn(&text));
    }
    for sensor in &board.alarms {
        let what = match network.sensor(*sensor).map(|sensor| sensor.kind) {
            Some(SensorKind::HelpPoint) => "help point: somebody calls".to_owned(),
            Some(SensorKind::Track(toward)) => format!("track to {}: blocked", name(toward)),
            _ => "alarm".to_owned(),
        };
        let text = format!(" !  {what}");
        line(&text, paint.bad(&text));
    }
    lines.push(format!("╰{}╯", "─".repeat(WIDTH + 2)));
    lines
}

/// Hours, minutes and seconds of the day, in UTC.
fn time_of_day(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::network::{LineId, SensorId};
    use super::super::service::{Departure, Equipment};
    use super::*;

    #[test]
    fn a_board_is_framed_and_stands_in_line() {
        let network = Network::porto();
        let id = |name| network.station_named(name).unwrap();
        let help = network
            .sensors
            .iter()
            .position(|s| s.station == id("Trindade") && s.kind == SensorKind::HelpPoint)
            .unwrap();
        let leaves = |line, destination, train, seconds: u64| Departure {
            line: LineId(line),
            destination: id(destination),
            train,
            leaves: (43_200 + seconds) * 1_000_000_000,
        };
        let board = Board {
            station: id("Trindade"),
            time: 43_200_000_000_000,
            events: 17,
            departures: vec![
                leaves(3, "Hospital São João", 407, 30),
                leaves(1, "Póvoa de Varzim", 212, 185),
            ],
            malfunctions: vec![Equipment::Lift],
            alarms: vec![SensorId(help as u16)],
        };
        let shown = lines(&board, &network, Paint::PLAIN);
        assert!(shown.iter().all(|line| line.chars().count() == WIDTH + 4), "{shown:#?}");
        expect![[r#"
            ╭─ Trindade ──────────────── 12:00:00 UTC ─╮
            │  D  Hospital São João      407      now  │
            │  B  Póvoa de Varzim        212    3 min  │
            │  ▲  lift out of order                    │
            │  !  help point: somebody calls           │
            ╰──────────────────────────────────────────╯"#]]
        .assert_eq(&shown.join("\n"));
    }
}
