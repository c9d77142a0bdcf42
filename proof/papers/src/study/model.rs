//! The latency of a call between groups on a ring whose token always circulates: equations (1) to
//! (7) of W. Zhao, L. E. Moser, P. M. Melliar-Smith: *End-to-End Latency Analysis and Evaluation of
//! a Fault-Tolerant CORBA Infrastructure*, section 4.2.
//!
//! All times are in microseconds. A *step* is one pass of the token; a node that is `k` steps away
//! from another gets the token `k` passes after it.

use wire::Random;

use super::law::Law;

/// The ring's parameters in the equations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ring {
    /// How many members it has: n.
    pub nodes: u32,
    /// How long a pass of the token takes: T_0.
    pub pass: f64,
    /// The time that sending and handling a message adds to a rotation: T_m.
    pub message: f64,
}

/// The four parts of a call's latency that are not the messages themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// From when the reply is delivered at the client's node until the client goes on, and from
    /// when the client calls until its request is handed to the ring: T_cproc.
    pub client: f64,
    /// The same at the server, and the time that it serves: T_sproc.
    pub server: f64,
    /// Until the request is sent: T_cdelay.
    pub client_delay: f64,
    /// Until the reply is sent: T_sdelay.
    pub server_delay: f64,
}

impl Ring {
    /// Equation (4): a rotation in which so many messages are sent.
    pub fn rotation(&self, messages: f64) -> f64 {
        f64::from(self.nodes) * self.pass + messages * self.message
    }

    /// Equation (1).
    pub fn latency(&self, parts: &Parts) -> f64 {
        let Parts { client, server, client_delay, server_delay } = parts;
        client + server + client_delay + server_delay + 2.0 * self.message
    }

    /// Equation (5): `whole` is i + j, how many whole rotations both sides wait, each with so many
    /// messages that are not the call's own.
    pub fn latency_of_rotations(&self, whole: f64, extra: f64, think: f64) -> f64 {
        let rest = f64::from(self.nodes) * self.pass - think;
        whole * self.rotation(extra) + 2.0 * self.message + rest
    }

    /// Equation (6), and (7) for a client that does not think: nobody sends anything else.
    pub fn latency_alone(&self, whole: f64, think: f64) -> f64 {
        (whole + 1.0) * f64::from(self.nodes) * self.pass + 2.0 * self.message - think
    }

    /// How many steps `to` is away from `from`; all the way round from a node to itself.
    pub fn steps(&self, from: u32, to: u32) -> u32 {
        match (to + self.nodes - from) % self.nodes {
            0 => self.nodes,
            steps => steps,
        }
    }
}

/// Equations (2) and (3): how many whole rotations it takes besides (i, or j), and the send delay
/// of the member that is `steps` away from the token's last place and has something to send after
/// `busy`.
pub fn send_delay(ring: &Ring, rotation: f64, steps: u32, busy: f64) -> (u32, f64) {
    let first = f64::from(steps) * ring.pass;
    let whole = ((busy - first) / rotation).ceil().max(0.0);
    (whole as u32, whole * rotation + first - busy)
}

/// The senders of both groups, and how busy both are.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// The places on the ring of those who may send the request: one that is semi-active, all that
    /// are active.
    pub clients: Vec<u32>,
    /// The same of the reply.
    pub servers: Vec<u32>,
    /// T_cproc without think time.
    pub client: f64,
    /// T_sproc without the time that the server takes by itself.
    pub server: f64,
    /// The think time.
    pub think: Law,
    /// The time that the server takes by itself.
    pub service: Law,
}

/// A call as the equations have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Its parts.
    pub parts: Parts,
    /// i + j.
    pub whole: u32,
    /// T_think before it.
    pub think: f64,
    /// The place of the reply's sender.
    pub sender: u32,
}

impl Conversation {
    /// So many calls one after the other: each begins where the token was used by the one before.
    /// If several may send, the first to get the token does ("automatic selection", end of section
    /// 4.2).
    pub fn calls(&self, ring: &Ring, count: usize, random: &mut Random) -> Vec<Predicted> {
        let rotation = ring.rotation(0.0);
        let first = |from: u32, among: &[u32], busy: f64| {
            let delays = among.iter().map(|to| {
                let (whole, delay) = send_delay(ring, rotation, ring.steps(from, *to), busy);
                (delay, whole, *to)
            });
            delays.min_by(|a, b| a.0.total_cmp(&b.0)).expect("somebody may send")
        };
        let mut last = self.servers[0];
        let mut calls = Vec::with_capacity(count);
        for _ in 0..count {
            let (think, service) = (self.think.draw(random), self.service.draw(random));
            let server = self.server + service;
            let (client_delay, j, from) = first(last, &self.clients, self.client + think);
            let (server_delay, i, sender) = first(from, &self.servers, server);
            let parts = Parts { client: self.client, server, client_delay, server_delay };
            calls.push(Predicted { parts, whole: i + j, think, sender });
            last = sender;
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's testbed (sections 5.1 and 5.3): four nodes, 205 µs for an idle rotation.
    const PAPER: Ring = Ring { nodes: 4, pass: 205.0 / 4.0, message: 120.0 };

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    fn semi_active(server: u32, service: f64, think: f64) -> Conversation {
        Conversation {
            clients: vec![0],
            servers: vec![server],
            client: 10.0,
            server: 10.0,
            think: Law::fixed(think),
            service: Law::fixed(service),
        }
    }

    fn active(service: f64) -> Conversation {
        Conversation { servers: vec![1, 2, 3], ..semi_active(1, service, 0.0) }
    }

    fn last(conversation: &Conversation) -> Predicted {
        conversation.calls(&PAPER, 20, &mut Random::new(1))[19]
    }

    #[test]
    fn an_idle_rotation_of_the_papers_ring_takes_205_us_and_a_pass_about_51() {
        assert!(near(PAPER.rotation(0.0), 205.0));
        assert_eq!(PAPER.pass.round(), 51.0);
        assert!(near(PAPER.rotation(2.0), 445.0));
    }

    #[test]
    fn a_delay_is_never_negative_nor_more_than_a_rotation() {
        for steps in 1..=4 {
            for busy in 0..1_000 {
                let busy = f64::from(busy);
                let (whole, delay) = send_delay(&PAPER, 205.0, steps, busy);
                assert!((0.0..=205.0).contains(&delay), "{steps} {busy}: {delay}");
                assert!(near(
                    delay + busy,
                    f64::from(whole) * 205.0 + f64::from(steps) * PAPER.pass
                ));
            }
        }
        assert_eq!(send_delay(&PAPER, 205.0, 4, 0.0), (0, 205.0 - 0.0));
    }

    #[test]
    fn the_parts_add_up_to_what_rotations_say() {
        for server in 1..=3 {
            for tenths in 0..60 {
                for think in [0.0, 40.0, 300.0] {
                    let call = last(&semi_active(server, f64::from(tenths) * 10.0, think));
                    let one = PAPER.latency(&call.parts);
                    let whole = f64::from(call.whole);
                    assert!(near(one, PAPER.latency_of_rotations(whole, 0.0, think)), "(1) is (5)");
                    assert!(near(one, PAPER.latency_alone(whole, think)), "(5) is (6)");
                }
            }
        }
    }

    #[test]
    fn duplicates_make_each_whole_rotation_longer() {
        let clean = PAPER.latency_of_rotations(2.0, 0.0, 0.0);
        assert!(near(PAPER.latency_of_rotations(2.0, 2.0, 0.0) - clean, 4.0 * PAPER.message));
    }

    #[test]
    fn the_place_of_the_primary_costs_nothing_or_a_whole_idle_rotation() {
        let mut differ = 0;
        for service in 0..400 {
            let latency =
                |server| PAPER.latency(&last(&semi_active(server, f64::from(service), 0.0)).parts);
            for (a, b) in [(1, 2), (2, 3), (1, 3)] {
                let rotations = (latency(a) - latency(b)).abs() / 205.0;
                assert!(near(rotations, 0.0) || near(rotations, 1.0), "{service}: {rotations}");
                differ += u32::from(rotations > 0.5);
            }
        }
        assert!(differ > 0, "somewhere it matters");
    }

    #[test]
    fn the_latency_grows_in_steps_while_the_server_is_ever_busier() {
        let latency =
            |service: u32| PAPER.latency(&last(&semi_active(2, f64::from(service), 0.0)).parts);
        let steps = (1..1_000).filter(|service| !near(latency(*service), latency(service - 1)));
        let steps: Vec<u32> = steps.collect();
        assert_eq!(steps.len(), 5, "one a rotation in 1,000 us: {steps:?}");
        assert!(steps.windows(2).all(|pair| pair[1] - pair[0] == 205), "{steps:?}");
    }

    #[test]
    fn of_active_replicas_the_best_placed_one_answers() {
        for service in 0..400 {
            let service = f64::from(service);
            let best = last(&active(service));
            for server in 1..=3 {
                let alone = last(&semi_active(server, service, 0.0));
                assert!(best.parts.server_delay <= alone.parts.server_delay + 1e-6);
            }
            // It misses the token only where that is at the client: one pass more, at most.
            assert!(best.parts.server_delay <= 2.0 * PAPER.pass);
        }
        // The sender moves on by a place with each pass that the server is busier, and is back
        // after a rotation.
        let senders: Vec<u32> =
            [0.0, 50.0, 100.0, 205.0, 255.0].map(|service| last(&active(service)).sender).to_vec();
        assert_eq!(senders, [1, 2, 3, 1, 2]);
    }

    #[test]
    fn random_think_times_take_the_token_from_wherever_it_is() {
        let think = Law { mean_us: 1_000.0, kind: super::super::law::Kind::Exponential };
        let conversation = Conversation { think, ..semi_active(2, 0.0, 0.0) };
        let calls = conversation.calls(&PAPER, 20_000, &mut Random::new(7));
        let delays: f64 = calls.iter().map(|call| call.parts.client_delay).sum();
        let mean = delays / calls.len() as f64;
        assert!((mean - 102.5).abs() < 5.0, "half a rotation on average: {mean}");
    }
}
