//! What happens next, and what the network makes of what is sent.

use std::cmp::Reverse;

use bytes::Bytes;
use steadfast_ring::{Configuration, ConfigurationKind, Event, Level, Output};
use wire::ring::Datagram;
use wire::{Duration, NodeId, Time};

use super::words::{describe, kind};
use super::{CLUSTER, Cluster, Happening, SOCKET, Seen, millis};

impl Cluster {
    /// Runs until `done`, for at most this many milliseconds.
    pub fn run_until(&mut self, at_most: u64, done: impl Fn(&Cluster) -> bool) {
        let end = self.now + millis(at_most);
        while !done(self) {
            if !self.step(end) {
                let states: Vec<_> =
                    self.hosts.iter().flatten().map(|h| format!("{:?}", h.ring)).collect();
                panic!("not done after {at_most} ms: {states:#?}");
            }
        }
    }

    /// The next thing that happens, unless it is after `end`.
    pub fn step(&mut self, end: Time) -> bool {
        self.patience = self.patience.checked_sub(1).expect("the run comes to an end");
        let timer = self
            .hosts
            .iter()
            .enumerate()
            .filter_map(|(i, host)| {
                let host = host.as_ref()?;
                Some((host.ring.next_timeout()?.max(host.held_until).max(self.now), i))
            })
            .min();
        let arrival = self.heap.peek().map(|Reverse((at, _))| *at);
        match (timer, arrival) {
            // What has arrived is read before timers fire, as the porch does.
            (timer, Some(at)) if at <= end && timer.is_none_or(|(due, _)| at <= due) => {
                let Reverse((at, ticket)) = self.heap.pop().expect("peeked");
                self.now = self.now.max(at);
                let happening = self.happenings.remove(&ticket).expect("scheduled");
                self.happen(happening);
                true
            }
            (Some((due, node)), _) if due <= end => {
                self.now = due;
                self.ring_mut(node).handle_timeout(due);
                self.collect(node);
                true
            }
            _ => false,
        }
    }

    fn happen(&mut self, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::Arrive { from, to, datagram } => match &mut self.hosts[to] {
                Some(host) if host.held_until > now => host.waiting.push(datagram),
                Some(host) if host.unread > 0 || !host.reading.is_zero() => {
                    if host.unread < SOCKET {
                        host.unread += 1;
                        host.read_at = host.read_at.max(now) + host.reading;
                        let (at, life) = (host.read_at, host.life);
                        self.schedule(at, Happening::Read { at: to, life, datagram });
                    }
                }
                Some(_) => self.arrive(to, datagram),
                None => {
                    if self.refusals
                        && let Some(host) = &self.hosts[from]
                    {
                        let life = host.life;
                        let node = NodeId(to as u32);
                        let at = now + self.delay;
                        self.schedule(at, Happening::Refuse { at: from, life, node });
                    }
                }
            },
            Happening::Read { at, life, datagram } => {
                if let Some(host) = self.hosts[at].as_mut().filter(|host| host.life == life) {
                    host.unread -= 1;
                    self.arrive(at, datagram);
                }
            }
            Happening::Refuse { at, life, node } => {
                if let Some(host) = self.hosts[at].as_mut().filter(|host| host.life == life) {
                    host.ring.handle_unreachable(now, node);
                    self.collect(at);
                }
            }
            Happening::Wake { at } => {
                if let Some(host) = &mut self.hosts[at] {
                    for datagram in std::mem::take(&mut host.waiting) {
                        self.arrive(at, datagram);
                    }
                }
            }
        }
    }

    fn arrive(&mut self, to: usize, datagram: Bytes) {
        if !self.runs(to) {
            return;
        }
        let now = self.now;
        let datagram = Datagram::decode(CLUSTER, &datagram).expect("rings send what can be read");
        self.ring_mut(to).handle_message(now, datagram);
        self.collect(to);
    }

    pub(super) fn schedule(&mut self, at: Time, happening: Happening) {
        self.ticket += 1;
        self.heap.push(Reverse((at, self.ticket)));
        self.happenings.insert(self.ticket, happening);
    }

    /// Carries out what a ring asks for.
    pub(super) fn collect(&mut self, node: usize) {
        let host = self.hosts[node].as_mut().expect("runs");
        host.ring.check_invariants();
        let life = host.life;
        let mut outputs = Vec::new();
        while let Some(output) = host.ring.poll_output() {
            outputs.push(output);
        }
        let mut dies = false;
        for output in outputs {
            match output {
                Output::Send { .. } if dies => {}
                Output::Send { to, datagram, .. } => {
                    for place in to.iter() {
                        self.send(node, place, datagram.clone());
                    }
                }
                Output::Deliver(delivery) => {
                    self.note(|| {
                        let text = String::from_utf8_lossy(&delivery.payload);
                        let text = text.split(':').next().unwrap_or_default().to_owned();
                        let level = if delivery.level == Level::Safe { " safe" } else { "" };
                        let kind = if delivery.contiguous { "" } else { " after a gap" };
                        format!(
                            "n{node} delivers{level} {}/{} {text}{kind}",
                            delivery.ring, delivery.sequence
                        )
                    });
                    self.lives[life].seen.push(Seen::Delivery(delivery));
                }
                Output::Configuration(configuration) => {
                    let regular = configuration.kind == ConfigurationKind::Regular;
                    dies |= regular && self.fragile > 0 && self.random.one_in(self.fragile);
                    self.note(|| {
                        let Configuration { kind, ring, members } = &configuration;
                        let nodes: Vec<_> = members.iter().map(|m| m.node).collect();
                        format!("n{node} {kind:?} {ring} {nodes:?}")
                    });
                    self.lives[life].seen.push(Seen::Configuration(configuration));
                }
                Output::Stored { .. } => {}
                Output::Held { ring, majority, all } => {
                    self.note(|| format!("n{node} held {ring} majority={majority} all={all}"));
                    self.lives[life].seen.push(Seen::Held { ring, majority, all });
                }
                Output::Confirmed { ring, round, upto } => {
                    self.note(|| format!("n{node} confirmed {ring} round={round} upto={upto}"));
                    self.lives[life].seen.push(Seen::Confirmed { ring, round, upto });
                }
                Output::Event(event) => {
                    if !matches!(event, Event::Installed { .. }) {
                        self.note(|| format!("n{node} {event:?}"));
                    }
                    let now = self.now;
                    self.lives[life].events.push((now, event));
                }
            }
        }
        if dies {
            self.crash(node);
        }
    }

    fn send(&mut self, from: usize, to: usize, datagram: Bytes) {
        assert!(from != to && to < self.size());
        assert!(datagram.len() <= 1_400, "larger than a datagram");
        let message =
            Datagram::decode(CLUSTER, &datagram).expect("a ring writes what it reads").message;
        *self.counts.entry(kind(&message)).or_default() += 1;
        if let Some(keep) = &mut self.keep {
            keep.push((to, datagram.clone()));
        }
        let mut copies = 1;
        let mut lost = self.cut.contains(&(from, to)) || self.random.below(1_000) < self.loss;
        lost |= (self.filter)(from, to, &message);
        if let Some(drop_next) = self.drop_next
            && drop_next(&message)
        {
            lost = true;
            self.drop_next = None;
        }
        if lost {
            copies = 0;
        } else if self.random.below(1_000) < self.doubled {
            copies = 2;
        }
        self.note(|| {
            let lost = if lost { "  LOST" } else { "" };
            format!("n{from} -> n{to} {}{lost}", describe(&message))
        });
        for _ in 0..copies {
            let jitter = self.random.below(self.jitter.as_nanos() as u64 + 1);
            let host = self.hosts[from].as_mut().expect("runs");
            host.busy_until = host.busy_until.max(self.now) + self.pace;
            let at = host.busy_until + self.delay + Duration::from_nanos(jitter);
            self.schedule(at, Happening::Arrive { from, to, datagram: datagram.clone() });
        }
    }
}
