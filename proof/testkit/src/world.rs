//! Machines on hosts that crash, are stopped and read slowly, joined by a network, in virtual time.

use wire::{Duration, Time};

use crate::network::{Network, Place};
use crate::queue::Queue;

/// A machine that runs on a host, as far as network and time are concerned.
pub trait Machine {
    /// A packet that travels between hosts.
    type Packet: Clone;

    /// When its timer is due.
    fn next_timeout(&self) -> Option<Time>;

    /// Its timer is due.
    fn handle_timeout(&mut self, now: Time);

    /// Something has come from this place.
    fn handle_packet(&mut self, now: Time, from: Place, packet: Self::Packet);

    /// Nobody listens at this place.
    fn handle_refused(&mut self, _now: Time, _place: Place) {}
}

/// The kind of a step of a world.
pub enum Step<E> {
    /// The machine at this place ran: its outputs are to be carried out.
    Ran(Place),
    /// This was scheduled, and happens.
    Event(E),
}

/// Datagrams that a socket keeps for a slow reader, as I/O drivers ask the kernel for: two windows
/// of each peer.
const SOCKET: usize = 4_096;

struct Host<M: Machine> {
    machine: M,
    runs: bool,
    life: u64,
    /// Until when its process is stopped.
    held_until: Time,
    waiting: Vec<(Place, M::Packet)>,
    /// How long it takes to read a datagram from its socket, when it has read what waits there,
    /// and how much does.
    reading: Duration,
    read_at: Time,
    unread: usize,
}

enum Happening<P, E> {
    Arrive { from: Place, to: Place, packet: P },
    Read { at: Place, life: u64, from: Place, packet: P },
    Refuse { at: Place, life: u64, by: Place },
    Wake { at: Place },
    Event(E),
}

/// Hosts, a network and time.
pub struct World<M: Machine, E = ()> {
    /// Virtual time.
    pub now: Time,
    /// The network that delivers, loses or delays packets.
    pub network: Network,
    /// Hosts tell senders that nobody listens.
    pub refusals: bool,
    /// The steps left: a run that never ends is an error, too.
    pub steps_left: u64,
    hosts: Vec<Option<Host<M>>>,
    lives: u64,
    queue: Queue<Happening<M::Packet, E>>,
}

impl<M: Machine, E> World<M, E> {
    /// Hosts on which nothing has run yet.
    pub fn new(now: Time, network: Network) -> World<M, E> {
        World {
            now,
            hosts: (0..network.places()).map(|_| None).collect(),
            network,
            refusals: true,
            steps_left: 2_000_000,
            lives: 0,
            queue: Queue::default(),
        }
    }

    /// A machine begins to run at this place.
    pub fn start(&mut self, place: Place, machine: M) {
        assert!(!self.runs(place), "two machines at one place");
        self.lives += 1;
        self.hosts[place] = Some(Host {
            machine,
            runs: true,
            life: self.lives,
            held_until: Time::ZERO,
            waiting: Vec::new(),
            reading: Duration::ZERO,
            read_at: Time::ZERO,
            unread: 0,
        });
    }

    /// The machine at this place ends; it can still be looked at.
    pub fn crash(&mut self, place: Place) {
        self.host_mut(place).runs = false;
    }

    /// A machine runs at this place, stopped or not.
    pub fn runs(&self, place: Place) -> bool {
        self.hosts[place].as_ref().is_some_and(|host| host.runs)
    }

    /// Stops the process at this place for so long: packets that arrive meanwhile wait in its
    /// socket.
    pub fn hold_up(&mut self, place: Place, span: Duration) {
        let until = self.now + span;
        self.host_mut(place).held_until = until;
        self.queue.push(until, Happening::Wake { at: place });
    }

    /// The process at this place is stopped until it is resumed.
    pub fn pause(&mut self, place: Place) {
        self.host_mut(place).held_until = Time::FAR;
    }

    /// The process at this place goes on.
    pub fn resume(&mut self, place: Place) {
        self.hold_up(place, Duration::ZERO);
    }

    /// The process at this place is stopped.
    pub fn is_held(&self, place: Place) -> bool {
        self.hosts[place].as_ref().is_some_and(|host| host.held_until > self.now)
    }

    /// From now on this place takes so long to read a datagram. Datagrams beyond its socket's room
    /// are lost.
    pub fn read_slowly(&mut self, place: Place, each: Duration) {
        self.host_mut(place).reading = each;
    }

    /// The machine that runs at this place, or ran there last.
    pub fn machine(&self, place: Place) -> &M {
        &self.hosts[place].as_ref().expect("something has run there").machine
    }

    /// The same, to be given something.
    pub fn machine_mut(&mut self, place: Place) -> &mut M {
        &mut self.host_mut(place).machine
    }

    /// The machines that run, with their places.
    pub fn running(&self) -> impl Iterator<Item = (Place, &M)> + Clone {
        let hosts = self.hosts.iter().enumerate();
        hosts.filter_map(|(place, host)| {
            Some((place, &host.as_ref().filter(|host| host.runs)?.machine))
        })
    }

    /// Those that are not stopped.
    pub fn awake(&self) -> impl Iterator<Item = (Place, &M)> {
        self.running().filter(|(place, _)| !self.is_held(*place))
    }

    /// The network loses this, or carries it once or twice. False if it is lost.
    pub fn send(&mut self, from: Place, to: Place, packet: M::Packet) -> bool {
        self.send_late(Duration::ZERO, from, to, packet)
    }

    /// The same for what takes so much longer than the weather says.
    pub fn send_late(&mut self, late: Duration, from: Place, to: Place, packet: M::Packet) -> bool {
        let arrivals = self.network.arrivals(self.now, from, to);
        for at in arrivals.into_iter().flatten() {
            let packet = packet.clone();
            self.queue.push(at + late, Happening::Arrive { from, to, packet });
        }
        arrivals[0].is_some()
    }

    /// Something of the cluster's own happens after this time.
    pub fn later(&mut self, span: Duration, event: E) {
        self.queue.push(self.now + span, Happening::Event(event));
    }

    /// The next event until `end`. Arrived packets are read before timers fire, as I/O drivers do.
    pub fn step(&mut self, end: Time) -> Option<Step<E>> {
        loop {
            self.steps_left = self.steps_left.checked_sub(1).expect("the run comes to an end");
            let timer = self.next_timer();
            let timer_at = timer.map_or(Time::FAR, |(at, _)| at);
            if let Some(at) = self.queue.due().filter(|at| *at <= timer_at) {
                if at > end {
                    return None;
                }
                self.now = self.now.max(at);
                let happening = self.queue.pop()?;
                if let Some(step) = self.happen(happening) {
                    return Some(step);
                }
            } else {
                let (at, place) = timer.filter(|(at, _)| *at <= end)?;
                self.now = at;
                self.machine_mut(place).handle_timeout(at);
                return Some(Step::Ran(place));
            }
        }
    }

    /// The first timer that is due, and where.
    fn next_timer(&self) -> Option<(Time, Place)> {
        let due = |(place, host): (Place, &Option<Host<M>>)| {
            let host = host.as_ref().filter(|host| host.runs)?;
            let at = host.machine.next_timeout()?.max(host.held_until).max(self.now);
            Some((at, place)).filter(|_| host.held_until < Time::FAR)
        };
        self.hosts.iter().enumerate().filter_map(due).min()
    }

    fn happen(&mut self, happening: Happening<M::Packet, E>) -> Option<Step<E>> {
        match happening {
            Happening::Arrive { from, to, packet } => self.arrive(from, to, packet),
            Happening::Read { at, life, from, packet } => {
                let now = self.now;
                let host = self.living(at, life)?;
                host.unread -= 1;
                host.machine.handle_packet(now, from, packet);
                Some(Step::Ran(at))
            }
            Happening::Refuse { at, life, by } => {
                let now = self.now;
                self.living(at, life)?.machine.handle_refused(now, by);
                Some(Step::Ran(at))
            }
            Happening::Wake { at } => {
                let host = self.hosts[at].as_mut().filter(|host| host.runs)?;
                let (life, now) = (host.life, self.now);
                for (from, packet) in std::mem::take(&mut host.waiting) {
                    host.unread += 1;
                    self.queue.push(now, Happening::Read { at, life, from, packet });
                }
                None
            }
            Happening::Event(event) => Some(Step::Event(event)),
        }
    }

    fn arrive(&mut self, from: Place, to: Place, packet: M::Packet) -> Option<Step<E>> {
        let now = self.now;
        match self.hosts[to].as_mut().filter(|host| host.runs) {
            Some(host) if host.held_until > now => host.waiting.push((from, packet)),
            Some(host) if host.unread > 0 || !host.reading.is_zero() => {
                if host.unread < SOCKET {
                    host.unread += 1;
                    host.read_at = host.read_at.max(now) + host.reading;
                    let (at, life) = (host.read_at, host.life);
                    self.queue.push(at, Happening::Read { at: to, life, from, packet });
                }
            }
            Some(host) => {
                host.machine.handle_packet(now, from, packet);
                return Some(Step::Ran(to));
            }
            None => {
                if let Some(host) = self.hosts[from].as_ref().filter(|host| host.runs)
                    && self.refusals
                {
                    let refuse = Happening::Refuse { at: from, life: host.life, by: to };
                    self.queue.push(now + self.network.weather().latency, refuse);
                }
            }
        }
        None
    }

    fn living(&mut self, place: Place, life: u64) -> Option<&mut Host<M>> {
        self.hosts[place].as_mut().filter(|host| host.runs && host.life == life)
    }

    fn host_mut(&mut self, place: Place) -> &mut Host<M> {
        self.hosts[place].as_mut().expect("something has run there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;
    use crate::network::Weather;

    const MS: Duration = Duration::from_millis(1);

    /// Keeps all that it receives.
    #[derive(Default)]
    struct Ear {
        heard: Vec<(Time, Place, u8)>,
        refused: Vec<Place>,
        alarm: Option<Time>,
    }

    impl Machine for Ear {
        type Packet = u8;

        fn next_timeout(&self) -> Option<Time> {
            self.alarm
        }

        fn handle_timeout(&mut self, _: Time) {
            self.alarm = None;
        }

        fn handle_packet(&mut self, now: Time, from: Place, packet: u8) {
            self.heard.push((now, from, packet));
        }

        fn handle_refused(&mut self, _: Time, place: Place) {
            self.refused.push(place);
        }
    }

    fn world() -> World<Ear, char> {
        let weather = Weather { latency: MS, ..Weather::default() };
        let mut world = World::new(Time::ZERO, Network::new(3, weather, Draw::new(1)));
        (0..3).for_each(|place| world.start(place, Ear::default()));
        world
    }

    fn run(world: &mut World<Ear, char>) -> Vec<char> {
        let mut events = Vec::new();
        while let Some(step) = world.step(Time::FAR) {
            if let Step::Event(event) = step {
                events.push(event);
            }
        }
        events
    }

    #[test]
    fn what_is_sent_arrives_and_what_has_arrived_comes_before_timers() {
        let mut world = world();
        world.machine_mut(1).alarm = Some(Time::ZERO + MS);
        assert!(world.send(0, 1, 7));
        world.later(MS * 2, 'x');
        assert!(matches!(world.step(Time::FAR), Some(Step::Ran(1))));
        assert_eq!(world.machine(1).heard, [(Time::ZERO + MS, 0, 7)]);
        assert!(world.machine(1).alarm.is_some());
        assert_eq!(run(&mut world), ['x']);
        assert!(world.machine(1).alarm.is_none());
    }

    #[test]
    fn a_stopped_process_reads_later_and_a_cut_or_dead_one_nothing() {
        let mut world = world();
        world.network.cut(0, 2);
        world.hold_up(1, MS * 9);
        world.machine_mut(1).alarm = Some(Time::ZERO);
        assert!(world.send(0, 1, 1) && !world.send(0, 2, 2));
        assert_eq!(world.awake().count(), 2);
        run(&mut world);
        assert_eq!(world.machine(1).heard, [(Time::ZERO + MS * 9, 0, 1)]);
        world.crash(1);
        world.send(0, 1, 3);
        run(&mut world);
        assert_eq!((world.machine(1).heard.len(), &world.machine(0).refused[..]), (1, &[1][..]));
        assert_eq!(world.running().count(), 2);
        world.start(1, Ear::default());
        world.send(0, 1, 4);
        run(&mut world);
        assert_eq!(world.machine(1).heard.len(), 1, "a new life with nothing of the old one");
    }

    #[test]
    fn a_slow_reader_reads_one_after_the_other() {
        let mut world = world();
        world.read_slowly(1, MS * 5);
        for packet in 1..=3 {
            world.send(0, 1, packet);
        }
        run(&mut world);
        let times: Vec<Time> = world.machine(1).heard.iter().map(|heard| heard.0).collect();
        assert_eq!(times, [6, 11, 16].map(|ms| Time::ZERO + MS * ms));
    }
}
