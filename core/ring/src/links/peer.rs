//! The links to one peer: which of them carry, and what its host has refused.

use alloc::vec::Vec;

use wire::report::Report;
use wire::{Duration, Extension, Incarnation, Time};

use super::config::LinkTiming;

/// Rounds that a link must have missed, while another did not, before it is down.
const MISSED: u64 = 3;

/// Reports that must confirm a lost link, one after the other, before it carries again.
const PROOF: u32 = 4;

/// A link that is lost again soon after it came back must prove twice as much each time, up to
/// this.
const MAX_PROOF: u32 = 64;

/// After this long without a loss the past is forgiven.
const FORGIVEN: Duration = Duration::from_secs(60);

/// Quick rounds that a peer may leave without an answer before it is given up as silent.
const UNANSWERED: u8 = 12;

/// A dying process closes its sockets one by one: the probe is repeated after these pauses.
const PAUSES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_micros(200),
    Duration::from_millis(1),
    Duration::from_millis(4),
    Duration::from_millis(16),
];

/// The state of one link to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// It carries from here to there, as far as is known.
    pub up: bool,
    /// When a datagram came by it last.
    pub heard: Option<Time>,
}

/// A link's fate has turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Lost(usize),
    Back(usize),
}

#[derive(Debug)]
pub(super) struct Peer {
    life: Option<Incarnation>,
    links: Vec<Link>,
    /// Rounds begun towards this peer, and when the last one was.
    round: u64,
    round_at: Time,
    pub next_round: Time,
    /// [`Route::Best`](crate::Route) uses all links until this round confirms the best one.
    doubt: Option<u64>,
    /// Rounds follow each other closely; so many may still be left without an answer.
    quick: Option<u8>,
    /// A link was refused; what the others say is being asked: the next pause, and when it ends.
    asking: Option<(usize, Time)>,
}

#[derive(Debug)]
struct Link {
    up: bool,
    /// The latest of our rounds that the peer had by this link, as it says; and since when.
    told: u64,
    told_at: Time,
    /// The latest of the peer's rounds that came here by this link.
    round: u64,
    heard: Option<Time>,
    /// Reports in a row that confirmed this link while it is down, and how many it needs.
    proof: u32,
    needed: u32,
    back: Option<Time>,
    refused: bool,
}

impl Peer {
    pub fn new(count: usize, now: Time) -> Peer {
        let link = |_| Link {
            up: true,
            told: 0,
            told_at: now,
            round: 0,
            heard: None,
            proof: 0,
            needed: PROOF,
            back: None,
            refused: false,
        };
        Peer {
            life: None,
            links: (0..count).map(link).collect(),
            round: 0,
            round_at: now,
            next_round: now,
            doubt: (count > 1).then_some(1),
            quick: None,
            asking: None,
        }
    }

    /// Whether this is the peer's present life. A later one begins here: it knows nothing of our
    /// rounds.
    pub fn is_of_life(&mut self, now: Time, life: Incarnation, timing: &LinkTiming) -> bool {
        if self.life.is_some_and(|known| life < known) {
            return false;
        }
        if self.life != Some(life) {
            self.life = Some(life);
            self.doubt = (self.links.len() > 1).then_some(self.round + 1);
            self.hurry(now, timing);
            for link in &mut self.links {
                link.told = self.round;
                link.told_at = now;
                link.round = 0;
                link.proof = 0;
            }
        }
        true
    }

    pub fn heard(&mut self, now: Time, link: usize) {
        self.links[link].heard = Some(now);
        // A node that sends is alive. Its last datagram may be read after the refusal that follows
        // its end: then the repeated probe is refused once more.
        for link in &mut self.links {
            link.refused = false;
        }
    }

    /// Something was lost on the way, perhaps. True if that changes by which links it is sent.
    pub fn doubt(&mut self, now: Time, timing: &LinkTiming) -> bool {
        let silent = self.quick.is_none() && now.since(self.told_at()) > 3 * timing.probe;
        if self.doubt.is_some() || silent {
            return false;
        }
        self.doubt = Some(self.round + 1);
        self.hurry(now, timing);
        true
    }

    /// Rounds follow each other closely from now on.
    fn hurry(&mut self, now: Time, timing: &LinkTiming) {
        if self.quick.is_none() {
            self.quick = Some(UNANSWERED);
            self.next_round = self.next_round.min(now.max(self.round_at + timing.quick()));
        }
    }

    /// When the peer confirmed anything last.
    fn told_at(&self) -> Time {
        self.links.iter().map(|link| link.told_at).max().unwrap_or(Time::ZERO)
    }

    /// The peer reports which of our rounds arrived.
    pub fn reported(&mut self, now: Time, by: usize, report: &Report, timing: &LinkTiming) {
        let arrived = &mut self.links[by];
        arrived.round = arrived.round.max(report.round);
        if self.quick.is_some() {
            self.quick = Some(UNANSWERED);
        }
        // A round that was never sent cannot have arrived.
        let heard = report.heard.iter().map(|heard| (*heard).min(self.round));
        let lead = heard.clone().max().unwrap_or(0).max(self.lead());
        for (link, heard) in self.links.iter_mut().zip(heard) {
            let grown = heard > link.told;
            if grown {
                link.told = heard;
                link.told_at = now;
            }
            // One round may still be on its way by the slower link.
            if lead - link.told > 1 {
                link.proof = 0;
            } else if grown && !link.up {
                link.proof += 1;
            }
        }
        if self.is_unsure() {
            self.hurry(now, timing);
        }
    }

    /// By a link that carried until a moment ago, rounds of the peer do not come that came by
    /// another. Only until a moment ago: else two peers would make each other doubt for ever.
    pub fn misses_rounds(&self, now: Time, timing: &LinkTiming) -> bool {
        let lead = self.links.iter().map(|link| link.round).max().unwrap_or(0);
        let fresh = |link: &Link| link.heard.is_some_and(|at| now.since(at) < 2 * timing.probe);
        self.links.iter().any(|link| link.up && lead - link.round > 1 && fresh(link))
    }

    /// The largest round that the peer had by any link.
    fn lead(&self) -> u64 {
        self.links.iter().map(|link| link.told).max().unwrap_or(0)
    }

    /// It is not known whether all links that are taken for sound are.
    fn is_unsure(&self) -> bool {
        let lead = self.lead();
        self.doubt.is_some() || self.links.iter().any(|link| link.up && link.told < lead)
    }

    /// Draws the conclusions. Also the end of haste, when nothing is unsure any more.
    pub fn judge(&mut self, now: Time, timing: &LinkTiming) -> Vec<Change> {
        let lead = self.lead();
        let mut changes = Vec::new();
        for (number, link) in self.links.iter_mut().enumerate() {
            let missed = lead - link.told >= MISSED && now.since(link.told_at) >= timing.timeout;
            if link.up && missed {
                link.up = false;
                link.proof = 0;
                let again = link.back.is_some_and(|back| now.since(back) < FORGIVEN);
                link.needed = if again { (link.needed * 2).min(MAX_PROOF) } else { PROOF };
                changes.push(Change::Lost(number));
            } else if !link.up && link.proof >= link.needed {
                link.up = true;
                link.back = Some(now);
                changes.push(Change::Back(number));
            }
        }
        let sure = self.lowest_up().map(|best| self.links[best].told);
        if let (Some(doubt), Some(told)) = (self.doubt, sure)
            && told >= doubt
        {
            self.doubt = None;
        }
        if self.quick.is_some() && !self.is_unsure() {
            self.quick = None;
            self.next_round = self.round_at + timing.probe;
        }
        changes
    }

    fn lowest_up(&self) -> Option<usize> {
        self.links.iter().position(|link| link.up)
    }

    /// The one link to use; none: all.
    pub fn best(&self) -> Option<usize> {
        if self.doubt.is_some() && self.links.len() > 1 { None } else { self.lowest_up() }
    }

    /// Begins a round. Tells whether the peer is to answer at once.
    pub fn begin_round(&mut self, now: Time, timing: &LinkTiming, spread: Duration) -> bool {
        self.round += 1;
        self.round_at = now;
        self.quick = self.quick.and_then(|left| left.checked_sub(1));
        let wanted = self.quick.is_some();
        self.next_round = now + if wanted { timing.quick() } else { timing.probe + spread };
        wanted
    }

    pub fn report(&self, wanted: bool) -> Report {
        let heard = self.links.iter().map(|link| link.round).collect();
        Report { round: self.round, wanted, heard, extension: Extension::default() }
    }

    /// Its host refused a datagram on this link. True if that proves that its process is gone: all
    /// links that are up have been refused since it was heard last.
    pub fn refused(&mut self, now: Time, link: usize) -> bool {
        self.links[link].refused = true;
        let contradicted = self.links.iter().any(|link| link.up && !link.refused);
        if contradicted {
            self.asking.get_or_insert((0, now + PAUSES[0]));
            return false;
        }
        self.asking = None;
        for link in &mut self.links {
            link.refused = false;
        }
        true
    }

    /// The links to probe now: all that are up, because another was refused.
    pub fn take_probes(&mut self, now: Time) -> Vec<usize> {
        let Some((step, _)) = self.asking.filter(|(_, due)| *due <= now) else { return Vec::new() };
        let next = step + 1;
        self.asking = PAUSES.get(next).map(|pause| (next, now + *pause));
        (0..self.links.len()).filter(|link| self.links[*link].up).collect()
    }

    /// When something is due next.
    pub fn due(&self, several: bool) -> Time {
        let asking = self.asking.map_or(Time::FAR, |(_, due)| due);
        if several { asking.min(self.next_round) } else { asking }
    }

    pub fn state(&self) -> impl Iterator<Item = LinkState> + '_ {
        self.links.iter().map(|link| LinkState { up: link.up, heard: link.heard })
    }

    pub fn check(&self) {
        for link in &self.links {
            assert!(link.told <= self.round, "no round is confirmed before it is begun");
            assert!((PROOF..=MAX_PROOF).contains(&link.needed));
        }
    }
}
