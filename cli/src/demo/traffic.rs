//! The events that the sensors of one line report, decided by the seed.

use steadfast::Random;

use super::network::{LineId, Network, SensorId, SensorKind};
use super::service::{Equipment, Event, Traffic, What};

/// Percentages of equipment's news and of alarms. The rest is normal traffic.
const CRITICAL_PERCENT: u64 = 8;
const ALARM_PERCENT: u64 = 2;

/// Seconds between two trains of a line in one direction: the demo's, not the operator's.
const HEADWAY: u64 = 420;

/// Trains that a track sensor's line tells of: the next one, the one after it, ...
const AHEAD: u64 = 3;

/// Trains of one line have one of so many numbers.
const TRAINS: u64 = 40;

/// The events of a line's sensors, as many as are asked for.
pub struct Generator<'a> {
    network: &'a Network,
    random: Random,
    sensors: Vec<Wired>,
    track: Vec<usize>,
    equipment: Vec<usize>,
    watchful: Vec<usize>,
}

/// A sensor and its last report, so that broken equipment is mended and raised alarms are cleared.
struct Wired {
    id: SensorId,
    numbers: u64,
    broken: Vec<Equipment>,
    raised: bool,
}

impl<'a> Generator<'a> {
    /// The sensors that are wired to this line.
    pub fn new(network: &'a Network, line: LineId, seed: u64) -> Generator<'a> {
        let mut generator = Generator {
            network,
            // Each line draws its own numbers, whatever the others do.
            random: Random::new(seed ^ (u64::from(line.0) + 1).wrapping_mul(0x9e37_79b9)),
            sensors: Vec::new(),
            track: Vec::new(),
            equipment: Vec::new(),
            watchful: Vec::new(),
        };
        for (index, sensor) in network.sensors.iter().enumerate() {
            if sensor.line != line {
                continue;
            }
            let place = generator.sensors.len();
            match sensor.kind {
                SensorKind::Track(_) => generator.track.push(place),
                SensorKind::Equipment => generator.equipment.push(place),
                SensorKind::HelpPoint => {}
            }
            if sensor.kind != SensorKind::Equipment {
                generator.watchful.push(place);
            }
            generator.sensors.push(Wired {
                id: SensorId(index as u16),
                numbers: 0,
                broken: Vec::new(),
                raised: false,
            });
        }
        generator
    }

    /// How many sensors.
    pub fn sensors(&self) -> usize {
        self.sensors.len()
    }

    fn traffic(&mut self) -> Traffic {
        match self.random.below(100) {
            draw if draw < ALARM_PERCENT => Traffic::Alarm,
            draw if draw < ALARM_PERCENT + CRITICAL_PERCENT => Traffic::Critical,
            _ => Traffic::Normal,
        }
    }

    fn draw<T: Copy>(random: &mut Random, from: &[T]) -> T {
        from[random.below(from.len() as u64) as usize]
    }

    /// A train, or (one in ten) an announcement.
    fn normal(&mut self, elapsed: u64) -> (usize, What) {
        if self.random.one_in(10) {
            return (Self::draw(&mut self.random, &self.equipment), What::Announcement);
        }
        let place = Self::draw(&mut self.random, &self.track);
        let sensor = self.network.sensors[usize::from(self.sensors[place].id.0)];
        let SensorKind::Track(toward) = sensor.kind else { unreachable!("chosen among the track") };
        let directions = self.network.directions(sensor.station, toward);
        let (line, destination) = Self::draw(&mut self.random, &directions);
        // Trains pass here at a fixed phase of the headway, give or take some seconds.
        let phase = (u64::from(self.sensors[place].id.0) * 97 + u64::from(line.0) * 31) % HEADWAY;
        let next = elapsed.saturating_sub(phase).div_ceil(HEADWAY) + self.random.below(AHEAD);
        let train = (100 * (u64::from(line.0) + 1) + (phase + next) % TRAINS) as u16;
        let leaves_in = (phase + next * HEADWAY - elapsed + self.random.below(20)) as u16;
        (place, What::Train { line, destination, train, leaves_in })
    }

    /// Something fails; where something is broken, mending it is more likely.
    fn critical(&mut self) -> (usize, What) {
        let place = Self::draw(&mut self.random, &self.equipment);
        let broken = &mut self.sensors[place].broken;
        if !broken.is_empty() && self.random.below(3) > 0 {
            let mended = broken.swap_remove(self.random.below(broken.len() as u64) as usize);
            return (place, What::Equipment { equipment: mended, works: true });
        }
        let equipment = Self::draw(&mut self.random, &Equipment::ALL);
        if !broken.contains(&equipment) {
            broken.push(equipment);
        }
        (place, What::Equipment { equipment, works: false })
    }

    /// An alarm, or the end of one.
    fn alarm(&mut self) -> (usize, What) {
        let over = self.watchful.iter().copied().find(|&place| self.sensors[place].raised);
        let place = match over {
            // Few alarms stand at a time: an old one is cleared before the next is raised, as a
            // rule.
            Some(place) if self.random.below(4) > 0 => place,
            _ => Self::draw(&mut self.random, &self.watchful),
        };
        let raised = &mut self.sensors[place].raised;
        *raised = !*raised;
        (place, What::Alarm { raised: *raised })
    }

    /// The next event, so many seconds after the start.
    pub fn event(&mut self, elapsed: u64) -> Event {
        let (place, what) = match self.traffic() {
            Traffic::Normal => self.normal(elapsed),
            Traffic::Critical => self.critical(),
            Traffic::Alarm => self.alarm(),
        };
        let sensor = &mut self.sensors[place];
        sensor.numbers += 1;
        Event { sensor: sensor.id, number: sensor.numbers, what }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn events(line: u8, seed: u64, count: usize) -> Vec<Event> {
        let network = Network::porto();
        let mut generator = Generator::new(&network, LineId(line), seed);
        (0..count).map(|n| generator.event(n as u64 / 200)).collect()
    }

    #[test]
    fn the_seed_decides_everything() {
        assert_eq!(events(1, 7, 2_000), events(1, 7, 2_000));
        assert_ne!(events(1, 7, 20), events(1, 8, 20));
    }

    #[test]
    fn numbers_are_consecutive_for_each_sensor() {
        let mut last: BTreeMap<SensorId, u64> = BTreeMap::new();
        for event in events(0, 1, 10_000) {
            let last = last.entry(event.sensor).or_default();
            assert_eq!(event.number, *last + 1);
            *last = event.number;
        }
        assert!(last.len() > 20, "all sensors speak");
    }

    #[test]
    fn the_shares_are_sensible() {
        for line in 0..5 {
            let mut counts = BTreeMap::new();
            for event in events(line, 3, 20_000) {
                *counts.entry(event.what.traffic()).or_insert(0u32) += 1;
            }
            assert!((17_500..18_500).contains(&counts[&Traffic::Normal]), "{counts:?}");
            assert!((1_300..1_900).contains(&counts[&Traffic::Critical]), "{counts:?}");
            assert!((300..500).contains(&counts[&Traffic::Alarm]), "{counts:?}");
        }
    }

    #[test]
    fn trains_keep_to_their_headway_for_hours() {
        let network = Network::porto();
        let mut generator = Generator::new(&network, LineId(0), 5);
        for elapsed in 0..3 * 3_600 {
            let What::Train { leaves_in, train, line, .. } = generator.event(elapsed).what else {
                continue;
            };
            assert!(u64::from(leaves_in) < AHEAD * HEADWAY + 20);
            assert_eq!(train / 100, u16::from(line.0) + 1);
        }
    }

    #[test]
    fn each_sensor_tells_only_what_it_can_see() {
        let network = Network::porto();
        for line in 0..network.lines.len() as u8 {
            for event in events(line, 9, 5_000) {
                let sensor = network.sensor(event.sensor).unwrap();
                assert_eq!(sensor.line, LineId(line));
                let fits = match event.what {
                    What::Train { line, destination, .. } => {
                        let SensorKind::Track(toward) = sensor.kind else { panic!("{event:?}") };
                        network.directions(sensor.station, toward).contains(&(line, destination))
                    }
                    What::Announcement | What::Equipment { .. } => {
                        sensor.kind == SensorKind::Equipment
                    }
                    What::Alarm { .. } => sensor.kind != SensorKind::Equipment,
                };
                assert!(fits, "{event:?} of {sensor:?}");
            }
        }
    }
}
