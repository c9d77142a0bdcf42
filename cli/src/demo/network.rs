//! The light rail that the demo runs: lines and stations from a data file, sensors derived.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The file names the sources of its facts, and what is uncertain.
const PORTO: &str = include_str!("../../data/porto-metro.toml");

/// A station, by its place in [`Network::stations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StationId(pub u16);

/// A line, by its place in [`Network::lines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineId(pub u8);

/// A sensor, by its place in [`Network::sensors`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SensorId(pub u16);

/// A line as riders know it.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its letter.
    pub letter: char,
    /// Its colour's name, by which riders call it.
    pub name: String,
    /// The colour's number among the 256 of a terminal.
    pub colour: u8,
    /// Its stations in order.
    pub stations: Vec<StationId>,
}

/// A station.
#[derive(Clone, Debug)]
pub struct Station {
    /// Its name.
    pub name: String,
    /// The lines that stop here.
    pub lines: Vec<LineId>,
}

/// The thing that a sensor watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SensorKind {
    /// The track out of the station towards this neighbour.
    Track(StationId),
    /// Lifts, escalators, machines, panels.
    Equipment,
    /// A column with a button.
    HelpPoint,
}

/// A sensor, and the line whose concentrator it is wired to.
#[derive(Clone, Copy, Debug)]
pub struct Sensor {
    /// Where it is.
    pub station: StationId,
    /// The line whose process sends its events.
    pub line: LineId,
    /// The thing that it watches.
    pub kind: SensorKind,
}

/// The whole network.
#[derive(Clone, Debug)]
pub struct Network {
    /// In order of letter.
    pub lines: Vec<Line>,
    /// In the order in which the lines name them first.
    pub stations: Vec<Station>,
    /// In order of station.
    pub sensors: Vec<Sensor>,
}

#[derive(Deserialize)]
struct File {
    lines: Vec<FileLine>,
}

#[derive(Deserialize)]
struct FileLine {
    letter: char,
    name: String,
    colour: u8,
    stations: Vec<String>,
}

impl Network {
    /// Porto's.
    pub fn porto() -> Network {
        Network::parse(PORTO).expect("the data file is part of the program and is tested")
    }

    fn parse(text: &str) -> Result<Network, toml::de::Error> {
        let file: File = toml::from_str(text)?;
        let mut ids = BTreeMap::new();
        let mut stations: Vec<Station> = Vec::new();
        let mut lines = Vec::new();
        for (index, line) in file.lines.into_iter().enumerate() {
            let line_id = LineId(index as u8);
            let mut stops = Vec::new();
            for name in line.stations {
                let id = *ids.entry(name.clone()).or_insert_with(|| {
                    stations.push(Station { name, lines: Vec::new() });
                    StationId((stations.len() - 1) as u16)
                });
                stations[usize::from(id.0)].lines.push(line_id);
                stops.push(id);
            }
            lines.push(Line {
                letter: line.letter,
                name: line.name,
                colour: line.colour,
                stations: stops,
            });
        }
        let mut network = Network { lines, stations, sensors: Vec::new() };
        network.sensors = network.derive_sensors();
        Ok(network)
    }

    /// A track sensor for each direction out of a station, one for the station's equipment, and a
    /// help point where lines part or end (where riders change and ask).
    fn derive_sensors(&self) -> Vec<Sensor> {
        let neighbours = self.neighbours();
        let wired = self.wiring();
        let mut sensors = Vec::new();
        for (index, around) in neighbours.iter().enumerate() {
            let station = StationId(index as u16);
            let mut add = |kind| sensors.push(Sensor { station, line: wired[index], kind });
            for &toward in around {
                add(SensorKind::Track(toward));
            }
            add(SensorKind::Equipment);
            if around.len() != 2 {
                add(SensorKind::HelpPoint);
            }
        }
        sensors
    }

    /// The stations next to each station.
    pub fn neighbours(&self) -> Vec<BTreeSet<StationId>> {
        let mut neighbours = vec![BTreeSet::new(); self.stations.len()];
        for line in &self.lines {
            for pair in line.stations.windows(2) {
                neighbours[usize::from(pair[0].0)].insert(pair[1]);
                neighbours[usize::from(pair[1].0)].insert(pair[0]);
            }
        }
        neighbours
    }

    /// The line that each station's sensors are wired to: of those that stop there the one with
    /// the fewest stations so far, so that the shared trunk spreads over all. Stations with
    /// fewer lines choose first: they have less choice.
    fn wiring(&self) -> Vec<LineId> {
        let mut order: Vec<usize> = (0..self.stations.len()).collect();
        order.sort_by_key(|&station| self.stations[station].lines.len());
        let mut load = vec![0u32; self.lines.len()];
        let mut wired = vec![LineId(0); self.stations.len()];
        for station in order {
            let line = *self.stations[station]
                .lines
                .iter()
                .min_by_key(|line| load[usize::from(line.0)])
                .expect("a station is named by a line");
            load[usize::from(line.0)] += 1;
            wired[station] = line;
        }
        wired
    }

    /// The station.
    pub fn station(&self, id: StationId) -> Option<&Station> {
        self.stations.get(usize::from(id.0))
    }

    /// The station of this name.
    pub fn station_named(&self, name: &str) -> Option<StationId> {
        let index = self.stations.iter().position(|station| station.name == name)?;
        Some(StationId(index as u16))
    }

    /// The sensor.
    pub fn sensor(&self, id: SensorId) -> Option<&Sensor> {
        self.sensors.get(usize::from(id.0))
    }

    /// The lines that run from a station to its neighbour, and where each of them ends.
    pub fn directions(&self, from: StationId, toward: StationId) -> Vec<(LineId, StationId)> {
        let mut found = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let end = line.stations.windows(2).find_map(|pair| match (pair[0], pair[1]) {
                (a, b) if (a, b) == (from, toward) => line.stations.last(),
                (a, b) if (b, a) == (from, toward) => line.stations.first(),
                _ => None,
            });
            found.extend(end.map(|&end| (LineId(index as u8), end)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_size_that_the_paper_says() {
        let network = Network::porto();
        assert_eq!(network.lines.len(), 5);
        assert_eq!(network.stations.len(), 70);
        assert!((190..=220).contains(&network.sensors.len()), "{}", network.sensors.len());
        let letters: String = network.lines.iter().map(|line| line.letter).collect();
        assert_eq!(letters, "ABCDE");
    }

    #[test]
    fn every_line_is_a_path_and_all_hang_together() {
        let network = Network::porto();
        for line in &network.lines {
            let distinct: BTreeSet<_> = line.stations.iter().collect();
            assert_eq!(distinct.len(), line.stations.len(), "line {} meets itself", line.letter);
        }
        let neighbours = network.neighbours();
        let mut reached = BTreeSet::from([StationId(0)]);
        let mut ahead = vec![StationId(0)];
        while let Some(station) = ahead.pop() {
            ahead.extend(neighbours[usize::from(station.0)].iter().filter(|&&n| reached.insert(n)));
        }
        assert_eq!(reached.len(), 70);
    }

    #[test]
    fn lines_share_their_interchanges() {
        let network = Network::porto();
        let letters = |name: &str| -> String {
            let station = network.station(network.station_named(name).unwrap()).unwrap();
            station.lines.iter().map(|line| network.lines[usize::from(line.0)].letter).collect()
        };
        assert_eq!(letters("Trindade"), "ABCDE");
        assert_eq!(letters("Senhora da Hora"), "ABCE");
        assert_eq!(letters("Campanhã"), "ABCE");
        assert_eq!(letters("Verdes"), "BE");
        assert_eq!(letters("Aeroporto"), "E");
        assert_eq!(letters("São Bento"), "D");
    }

    #[test]
    fn every_line_speaks_for_a_fair_share_of_the_sensors() {
        let network = Network::porto();
        for index in 0..network.lines.len() {
            let line = LineId(index as u8);
            let share = network.sensors.iter().filter(|sensor| sensor.line == line).count();
            assert!(share >= 20, "line {index} has {share} sensors");
        }
        for sensor in &network.sensors {
            let station = network.station(sensor.station).unwrap();
            assert!(station.lines.contains(&sensor.line), "a sensor is wired to a line that stops");
        }
    }

    #[test]
    fn a_direction_leads_to_the_ends_of_the_lines_that_run_there() {
        let network = Network::porto();
        let id = |name| network.station_named(name).unwrap();
        let ends: Vec<_> = network
            .directions(id("Verdes"), id("Botica"))
            .into_iter()
            .map(|(line, end)| (line.0, network.station(end).unwrap().name.as_str()))
            .collect();
        assert_eq!(ends, [(4, "Aeroporto")]);
        assert_eq!(network.directions(id("Trindade"), id("Bolhão")).len(), 4);
        assert!(network.directions(id("Trindade"), id("Aeroporto")).is_empty());
    }
}
