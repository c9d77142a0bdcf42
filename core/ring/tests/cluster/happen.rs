//! Carries out the requests of rings.

use bytes::Bytes;
use steadfast_ring::{Configuration, ConfigurationKind, Event, Level, Output};
use testkit::{Simulation, World};
use wire::ring::Datagram;
use wire::roster::Roster;

use super::words::{describe, kind};
use super::{CLUSTER, Cluster, Host, Seen};

impl Simulation for Cluster {
    type Machine = Host;
    type Event = ();

    fn world(&mut self) -> &mut World<Host> {
        &mut self.world
    }

    fn happen(&mut self, (): ()) {}

    fn drain(&mut self, node: usize) {
        let host = self.world.machine_mut(node);
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
                Output::Stored { .. } | Output::Current { .. } | Output::Nodes(_) => {}
                Output::Roster { roster, .. } => {
                    let roster = Roster::decode(&roster).expect("it was one when it left");
                    self.set_nodes(node, &roster);
                }
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
                    self.lives[life].events.push((self.world.now, event));
                }
            }
        }
        if dies {
            self.crash(node);
        }
    }
}

impl Cluster {
    fn send(&mut self, from: usize, to: usize, datagram: Bytes) {
        assert!(from != to && to < self.size());
        assert!(datagram.len() <= 1_400, "larger than a datagram");
        let message = Datagram::decode(CLUSTER, wire::versions::RING, &datagram)
            .expect("a ring writes what it reads")
            .message;
        *self.counts.entry(kind(&message)).or_default() += 1;
        if let Some(keep) = &mut self.keep {
            keep.push((to, datagram.clone()));
        }
        let dropped = self.drop_next.take_if(|drop_next| drop_next(&message)).is_some();
        let lost =
            dropped || (self.filter)(from, to, &message) || !self.world.send(from, to, datagram);
        self.note(|| {
            let lost = if lost { "  LOST" } else { "" };
            format!("n{from} -> n{to} {}{lost}", describe(&message))
        });
    }
}
