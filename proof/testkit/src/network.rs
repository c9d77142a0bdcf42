//! The fate of a datagram, and which hosts can reach which.

use wire::{Duration, NodeId, Time};

use crate::draw::Draw;

/// A host in the network: the nodes come first, then the clients.
pub type Place = usize;

/// How bad the network is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// Datagrams lost, of 1,000.
    pub loss: u64,
    /// Datagrams that arrive twice, of 1,000.
    pub duplicate: u64,
    /// Datagrams that others overtake, of 1,000.
    pub reorder: u64,
    /// Datagrams that are held up for long, of 1,000.
    pub spike: u64,
    /// Datagrams of which a copy arrives when nobody thinks of them any more, of 10,000.
    pub ghost: u64,
    /// The shortest way takes this long.
    pub latency: Duration,
    /// And up to this much more.
    pub jitter: Duration,
    /// The longest hold-up.
    pub longest: Duration,
    /// A datagram takes so long to leave its host, and the next one waits for it.
    pub pace: Duration,
}

/// The latest copy of a datagram: later than rings and lives last here.
const GHOST: Duration = Duration::from_secs(3);

impl Weather {
    /// No way takes longer than within one building: timers are not made for many nodes far from
    /// each other.
    pub fn near(self) -> Weather {
        Weather { latency: self.latency.min(Duration::from_micros(200)), ..self }
    }

    /// Nothing is lost, only time passes.
    pub fn calm(self) -> Weather {
        let Weather { latency, jitter, pace, .. } = self;
        Weather { latency, jitter, pace, ..Weather::default() }
    }
}

/// The network between the hosts.
pub struct Network {
    weather: Weather,
    /// One word per sender: bit `to` is set when nothing gets there.
    cut: Vec<u64>,
    /// The time until which each sender is busy sending.
    busy: Vec<Time>,
    draw: Draw,
}

impl Network {
    /// A network of so many places without any cut.
    pub fn new(places: usize, weather: Weather, draw: Draw) -> Self {
        assert!(places <= 64, "a cut is one word per place");
        Network { weather, cut: vec![0; places], busy: vec![Time::ZERO; places], draw }
    }

    /// The weather changes.
    pub fn set_weather(&mut self, weather: Weather) {
        self.weather = weather;
    }

    /// The weather, to be changed in part.
    pub fn weather_mut(&mut self) -> &mut Weather {
        &mut self.weather
    }

    /// The weather now.
    pub fn weather(&self) -> Weather {
        self.weather
    }

    /// Nothing gets from `from` to `to` any more.
    pub fn cut(&mut self, from: Place, to: Place) {
        self.cut[from] |= 1 << to;
    }

    /// All these ways are cut.
    pub fn cut_all(&mut self, cuts: &[(Place, Place)]) {
        for &(from, to) in cuts {
            self.cut(from, to);
        }
    }

    /// These ways work again.
    pub fn mend(&mut self, cuts: &[(Place, Place)]) {
        for &(from, to) in cuts {
            self.cut[from] &= !(1 << to);
        }
    }

    /// Nothing is cut.
    pub fn is_whole(&self) -> bool {
        self.cut.iter().all(|&cut| cut == 0)
    }

    /// How many hosts there are: nodes and clients.
    pub fn places(&self) -> usize {
        self.cut.len()
    }

    /// Everybody reaches everybody.
    pub fn heal(&mut self) {
        self.cut.fill(0);
    }

    /// Something gets from `from` to `to`.
    pub fn reaches(&self, from: Place, to: Place) -> bool {
        self.cut[from] & (1 << to) == 0
    }

    /// Both reach each other.
    pub fn joined(&self, a: Place, b: Place) -> bool {
        self.reaches(a, b) && self.reaches(b, a)
    }

    /// One way, as long as it takes without a hold-up.
    pub fn passage(&mut self) -> Duration {
        let Weather { latency, jitter, .. } = self.weather;
        latency + self.draw.span(Duration::ZERO, jitter)
    }

    /// When a datagram sent now arrives: never, once or twice.
    pub fn arrivals(&mut self, now: Time, from: Place, to: Place) -> [Option<Time>; 2] {
        if !self.reaches(from, to) || self.draw.permille(self.weather.loss) {
            return [None, None];
        }
        let first = self.arrival(now, from);
        let second = if self.draw.permille(self.weather.duplicate) {
            Some(self.arrival(now, from))
        } else if self.draw.permille(self.weather.ghost) && self.draw.one_in(10) {
            Some(now + self.draw.scale(Duration::from_millis(20), GHOST))
        } else {
            None
        };
        [Some(first), second]
    }

    fn arrival(&mut self, now: Time, from: Place) -> Time {
        let Weather { latency, jitter, reorder, spike, longest, pace, .. } = self.weather;
        let mut span = latency + self.draw.span(Duration::ZERO, jitter);
        if self.draw.permille(reorder) {
            span += self.draw.span(Duration::ZERO, (latency + jitter) * 8);
        }
        if self.draw.permille(spike) {
            span += self.draw.scale(Duration::from_millis(1), longest);
        }
        self.busy[from] = self.busy[from].max(now) + pace;
        self.busy[from] + span
    }
}

/// The id of the node at this place.
pub fn node_id(place: Place) -> NodeId {
    NodeId(place as u32 + 1)
}

/// The place of this node.
pub fn place_of(node: NodeId) -> Place {
    node.0 as usize - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_one_way_cut_is_one_way() {
        let mut network = Network::new(3, Weather::default(), Draw::new(1));
        network.cut(0, 2);
        assert!(!network.reaches(0, 2) && network.reaches(2, 0));
        assert!(!network.joined(2, 0) && network.joined(0, 1));
        assert_eq!(network.arrivals(Time(5), 0, 2), [None, None]);
        assert_eq!(network.arrivals(Time(5), 2, 0), [Some(Time(5)), None]);
        network.heal();
        assert!(network.joined(0, 2));
    }

    #[test]
    fn rates_are_what_they_say() {
        let weather = Weather { loss: 300, duplicate: 100, ..Weather::default() };
        let mut network = Network::new(2, weather, Draw::new(7));
        let fates: Vec<_> = (0..10_000).map(|_| network.arrivals(Time::ZERO, 0, 1)).collect();
        let lost = fates.iter().filter(|fate| fate[0].is_none()).count();
        let twice = fates.iter().filter(|fate| fate[1].is_some()).count();
        assert!((2_800..3_200).contains(&lost), "{lost}");
        assert!((600..800).contains(&twice), "{twice}");
    }
}
