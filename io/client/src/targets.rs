//! A session's record of one group: its targets, the waiting calls, and the nodes to ask.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use wire::client::{Refusal, Targets};
use wire::limits::{MAX_REPLICAS, MAX_SESSION_WINDOW};
use wire::ordered::Style;
use wire::{GroupId, Time, ViewNumber};

use crate::CallError;
use crate::call::Call;
use crate::hedge::{Hedging, Pace};
use crate::invocation::Key;
use crate::links::Links;
use crate::output::{CallId, Link};
use crate::policy::{Balancing, News, Policy, Strategy, any_answers};
use crate::trail::Attempt;

/// The first targets that are kept connected: the one that serves and the one that takes over.
pub(crate) const WARM: usize = 2;

/// A node is asked for a followed group's targets this often, beside the news that nodes tell.
const FOLLOW: Duration = Duration::from_secs(1);

/// The same while the group's targets are not known.
const FOLLOW_UNKNOWN: Duration = Duration::from_millis(100);

/// So many answers in a row must say that a group does not exist before one that did exist is
/// given up: a node that has just started knows no group yet.
const DENIALS: u32 = 2;

/// The search for somebody who knows a group's targets.
#[derive(Debug, Default)]
pub(crate) struct Inquiry {
    pub(crate) state: Asking,
    /// The nodes that were asked since there was news last: the next is another one.
    pub(crate) asked: Vec<SocketAddr>,
    /// Rounds through everybody without news.
    pub(crate) rounds: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Nothing is to be found out.
    #[default]
    Settled,
    /// This address was asked, or will be when it is connected.
    Asked {
        address: SocketAddr,
        /// The question is out.
        sent: bool,
    },
    /// Nobody helped: the round begins anew after a pause.
    Pausing,
}

/// The node to ask.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Connected(Link, SocketAddr),
    ToDial(SocketAddr),
}

impl Inquiry {
    /// The next to ask: a connected node, else one to be dialled, nobody twice in a round.
    pub(crate) fn next_source(
        &mut self,
        now: Time,
        links: &Links,
        targets: &Targets,
    ) -> Option<Source> {
        let known = |asked: &[SocketAddr], address: &SocketAddr| asked.contains(address);
        for (link, address) in links.ready() {
            if !known(&self.asked, &address) {
                self.asked.push(address);
                return Some(Source::Connected(link, address));
            }
        }
        let others = targets.nodes.iter().map(|target| &target.address);
        for address in links.given.iter().chain(others) {
            if !known(&self.asked, address) && links.avoided_until(*address, now).is_none() {
                self.asked.push(*address);
                return Some(Source::ToDial(*address));
            }
        }
        None
    }
}

/// One group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) policy: Policy,
    /// Ranked, the first best. Empty: nobody may serve now, or nothing is known.
    pub(crate) targets: Targets,
    /// Somebody has told the targets.
    pub(crate) bound: bool,
    /// All targets failed, or nobody knew better: the next answer is believed even if its view is
    /// not newer. That heals a client after the cluster began anew, or after a node told it
    /// nonsense.
    pub(crate) doubt: bool,
    denials: u32,
    /// Its targets are kept known while no call is under way.
    pub(crate) followed: bool,
    pub(crate) inquiry: Inquiry,
    pub(crate) next_number: u64,
    /// The callers of a keyed session want no reply to a call below this number.
    given_up: u64,
    /// Digests of the calls from there on that the callers of a keyed session have made here.
    pub(crate) asked: BTreeMap<u64, u64>,
    /// Calls with a number, by it.
    pub(crate) active: BTreeMap<u64, CallId>,
    /// Calls that wait for targets, or for a place in the window; oldest first.
    pub(crate) queue: BTreeMap<CallId, Option<Key>>,
    pub(crate) pace: Pace,
    /// How long each target took to answer of late, and when it did last.
    answers: BTreeMap<SocketAddr, (Duration, Time)>,
    /// Where a node was asked to tell of newer views.
    pub(crate) watched: BTreeSet<Link>,
    /// The last calls that were answered by one replica while another had them too.
    outrun: BTreeSet<u64>,
    /// A target that was named by one that has too much to do, and until when calls go there first.
    pub(crate) instead: Option<(SocketAddr, Time)>,
}

/// An answer's time counts half for each second since.
fn faded(now: Time, (smooth, at): &(Duration, Time)) -> Duration {
    *smooth / (1 << now.since(*at).as_secs().min(31))
}

impl Group {
    pub(crate) fn new(name: &str, policy: Policy) -> Self {
        Group {
            name: name.into(),
            policy,
            targets: Targets::default(),
            bound: false,
            doubt: false,
            denials: 0,
            followed: false,
            inquiry: Inquiry::default(),
            next_number: 1,
            given_up: 1,
            asked: BTreeMap::new(),
            active: BTreeMap::new(),
            queue: BTreeMap::new(),
            pace: Pace::new(),
            answers: BTreeMap::new(),
            watched: BTreeSet::new(),
            outrun: BTreeSet::new(),
            instead: None,
        }
    }

    /// It is no group: the session asks where another cell is called, and calls nothing there.
    pub(crate) fn is_place(&self) -> bool {
        self.name.ends_with(':')
    }

    /// Nothing of it need be kept. Once a number was given it must be: none is used twice.
    pub(crate) fn is_forgettable(&self) -> bool {
        self.next_number == 1 && self.queue.is_empty() && !self.followed
    }

    /// How often a node is asked for the targets, whatever is known.
    pub(crate) fn refresh_period(&self) -> Option<Duration> {
        let follows = if self.targets.nodes.is_empty() { FOLLOW_UNKNOWN } else { FOLLOW };
        self.policy.period().or(self.followed.then_some(follows))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_empty() && self.queue.is_empty()
    }

    /// The lowest number without a reply.
    pub(crate) fn unanswered(&self) -> u64 {
        self.active.first_key_value().map_or(self.next_number, |(number, _)| *number)
    }

    /// The oldest call in the queue and a number for it, if it may be sent.
    pub(crate) fn admit(&mut self, hedging: &Hedging) -> Option<(CallId, u64)> {
        if self.targets.nodes.is_empty() {
            return None;
        }
        let waiting = self.queue.first_entry()?;
        let number = match waiting.get() {
            Some(key) => key.number,
            None => self.next_number,
        };
        let oldest = self.active.first_key_value().map_or(number, |(oldest, _)| *oldest);
        if number.saturating_sub(oldest) >= MAX_SESSION_WINDOW {
            return None;
        }
        let (call, _) = waiting.remove_entry();
        self.next_number = self.next_number.max(number + 1);
        self.active.insert(number, call);
        self.pace.earn(hedging);
        Some((call, number))
    }

    /// The caller of a keyed session makes a call. Those that it makes again thereby, or wants no
    /// reply to, are told.
    ///
    /// # Errors
    /// The caller has given this call up before, or has made another one of its number: a late reply
    /// to that would be taken for this one's.
    pub(crate) fn take_key(&mut self, key: Key, asked: u64) -> Result<Vec<CallId>, CallError> {
        self.given_up = self.given_up.max(key.unanswered);
        let from = self.given_up;
        if key.number < from {
            let reason = format!(
                "call {} comes after its caller gave up all calls below {from}: make a new one",
                key.number
            );
            return Err(CallError::Refused { refusal: Refusal::Stale, reason });
        }
        // At most a window of numbers, as each is less than that above what its caller has given up.
        self.asked = self.asked.split_off(&from);
        if *self.asked.entry(key.number).or_insert(asked) != asked {
            return Err(CallError::NumberTaken(key.number));
        }
        let is_over = |number: u64| number < from || number == key.number;
        let sent = self.active.iter().filter(|(number, _)| is_over(**number)).map(|(_, id)| *id);
        let queued =
            self.queue.iter().filter(|(_, key)| key.is_some_and(|key| is_over(key.number)));
        Ok(sent.chain(queued.map(|(id, _)| *id)).collect())
    }

    /// After how long a second replica is asked for a call that is sent now, if at all.
    pub(crate) fn hedge_after(&self, hedging: &Hedging) -> Option<Duration> {
        let takes = matches!(self.targets.style, Style::Active | Style::Voting);
        let several = takes && self.targets.nodes.len() > 1;
        self.pace.delay(hedging).filter(|_| several)
    }

    /// An attempt of a call has its result, and the other attempts have not.
    pub(crate) fn answered(&mut self, now: Time, answered: &Attempt, call: &Call) {
        self.pace.took(now.since(answered.at));
        self.took(now, answered.address, now.since(answered.at));
        let outrun = call.trail.attempts().iter().filter(|attempt| attempt.sent);
        for attempt in outrun {
            self.pace.outrun(now.since(attempt.at));
            self.took(now, attempt.address, now.since(attempt.at));
            self.expect_copy(call.number);
        }
    }

    /// Another replica may have given an answer to this call, too.
    pub(crate) fn expect_copy(&mut self, number: u64) {
        self.outrun.insert(number);
        if self.outrun.len() > MAX_SESSION_WINDOW as usize {
            self.outrun.pop_first();
        }
    }

    /// A result that comes for this call is a copy of the one that it has.
    pub(crate) fn was_outrun(&self, number: u64) -> bool {
        self.outrun.contains(&number)
    }

    /// Targets were told. True if that is news.
    pub(crate) fn learn(&mut self, mut told: Targets, news: News) -> bool {
        told.nodes.truncate(MAX_REPLICAS);
        self.denials = 0;
        if !self.targets.nodes.is_empty() && !self.policy.believes(news) {
            // A client that never believes news has nothing to wait for.
            self.doubt &= self.policy.strategy != Strategy::Static;
            return false;
        }
        let is_newer = told.view > self.targets.view || self.is_place();
        if self.bound && !self.doubt && !is_newer {
            return false;
        }
        let news = !self.bound || told != self.targets;
        if told.view < self.targets.view {
            // A node that was asked for newer views than the former one does not report those
            // between: ask it anew.
            self.watched.clear();
        }
        self.bound = true;
        self.doubt = false;
        self.targets = told;
        let targets = &self.targets.nodes;
        self.answers.retain(|address, _| targets.iter().any(|target| target.address == *address));
        if news && !self.targets.nodes.is_empty() {
            self.inquiry.asked.clear();
            self.inquiry.rounds = 0;
        }
        news
    }

    /// A target has answered by this view. If it is the known one, older news is not believed: a
    /// node that was asked before may have known no view at all.
    pub(crate) fn confirmed(&mut self, view: ViewNumber) {
        self.doubt &= view != self.targets.view;
    }

    /// A node says that there is no such group. True if that is to be believed.
    pub(crate) fn deny(&mut self) -> bool {
        self.denials += 1;
        let believed = !self.bound || self.denials >= DENIALS;
        if believed {
            self.targets = Targets::default();
            self.watched.clear();
            self.bound = false;
        }
        believed
    }

    pub(crate) fn was_denied(&self) -> bool {
        self.denials > 0
    }

    /// The best target that is not among `tried` and not avoided. Silent ones come last, and where
    /// all answer alike those that have just returned come behind the others.
    pub(crate) fn best(
        &self,
        now: Time,
        links: &Links,
        tried: &[SocketAddr],
    ) -> Option<SocketAddr> {
        let addresses = self.targets.nodes.iter().map(|target| target.address);
        // Not of reads: a primary that has returned answers them, and it may be the only one.
        let waits = any_answers(self.targets.style, false);
        let fit = |address: &SocketAddr| {
            !tried.contains(address) && links.avoided_until(*address, now).is_none()
        };
        let mut best: Option<(bool, bool, SocketAddr)> = None;
        for address in addresses.filter(fit) {
            let returns = waits && links.is_returning(address, now, self.policy.fail_back);
            let flaws = (links.is_suspect(address), returns);
            // Among equals the first stays: rank decides.
            if best.is_none_or(|best| flaws < (best.0, best.1)) {
                best = Some((flaws.0, flaws.1, address));
            }
            if flaws == (false, false) {
                // No other can be better. It is the first of all, as a rule, and this is on the way
                // of every call.
                break;
            }
        }
        best.map(|(.., address)| address)
    }

    /// The targets that are not among `tried`, neither avoided nor silent, and have not just
    /// returned.
    pub(crate) fn fit(&self, now: Time, links: &Links, tried: &[SocketAddr]) -> Vec<SocketAddr> {
        let addresses = self.targets.nodes.iter().map(|target| target.address);
        let fit = |address: &SocketAddr| {
            let avoided = links.avoided_until(*address, now).is_some();
            let returns = links.is_returning(*address, now, self.policy.fail_back);
            !tried.contains(address) && !avoided && !links.is_suspect(*address) && !returns
        };
        addresses.filter(fit).collect()
    }

    /// A target took so long for an answer, or has taken so long so far.
    pub(crate) fn took(&mut self, now: Time, address: SocketAddr, span: Duration) {
        if self.targets.nodes.iter().all(|target| target.address != address) {
            return;
        }
        let before = self.answers.get(&address).map(|known| faded(now, known));
        let smooth = before.map_or(span, |before| (before * 7 + span) / 8);
        self.answers.insert(address, (smooth, now));
    }

    /// How long a target takes to answer, in nanoseconds: half for each second since it did last,
    /// so that one that was slow is asked again. One of which nothing is known is taken for twice
    /// as quick as the quickest: it is asked soon, and not by all at once.
    pub(crate) fn answer_time(&self, now: Time, address: SocketAddr) -> u64 {
        let nanos = |known: &(Duration, Time)| {
            u64::try_from(faded(now, known).as_nanos()).unwrap_or(u64::MAX)
        };
        let least = || self.answers.values().map(nanos).min().unwrap_or(0) / 2;
        self.answers.get(&address).map_or_else(least, nanos).max(1)
    }

    /// The targets to be kept connected.
    pub(crate) fn warm(&self, now: Time, links: &Links) -> Vec<SocketAddr> {
        let addresses = self.targets.nodes.iter().map(|target| target.address);
        let fit = |address: &SocketAddr| {
            links.avoided_until(*address, now).is_none() && !links.is_suspect(*address)
        };
        addresses.filter(fit).take(self.warm_places()).collect()
    }

    /// So many of the first targets are kept connected: all, where any of them may be asked next.
    pub(crate) fn warm_places(&self) -> usize {
        match self.policy.balancing {
            _ if self.is_place() => 0,
            Balancing::Primary => WARM,
            _ => MAX_REPLICAS,
        }
    }

    pub(crate) fn view(&self) -> ViewNumber {
        self.targets.view
    }

    pub(crate) fn check_invariants(&self, id: GroupId) {
        assert_eq!(GroupId::of(&self.name), id);
        assert!(self.next_number - self.unanswered() <= MAX_SESSION_WINDOW);
        assert!(self.active.keys().all(|number| *number < self.next_number));
        assert!(self.targets.nodes.len() <= MAX_REPLICAS);
        assert!(self.outrun.len() <= MAX_SESSION_WINDOW as usize);
        assert!(self.asked.len() <= MAX_SESSION_WINDOW as usize);
        assert!(self.answers.len() <= MAX_REPLICAS);
    }
}
