//! Groups of other cells that callers of this cell may call directly: where their nodes are, and
//! whether they can be reached from here.
//!
//! A caller is carried until that is known. A caller's host may reach less than this one: then its
//! client comes back to be carried.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cells::{Name, Path, Record, Scope};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use wire::Time;
use wire::client::Targets;

use crate::inbound::{Inbound, Tell};

/// A group of another cell.
pub(crate) type Key = (Path, String);

/// Groups that can be called directly.
pub(crate) type Direct = Arc<BTreeMap<Key, Targets>>;

/// Groups that are kept known.
const MAX_ROUTES: usize = 4_096;

/// A group is asked for anew after this time. Answers are told of changes for longer.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// For so long after a caller has asked for it last.
const WANTED: Duration = Duration::from_secs(60);

/// A node that takes a connection does so within this time, which is more than a round trip takes.
const PROBE: Duration = Duration::from_millis(500);

/// All that is known of other cells' groups.
#[derive(Debug)]
pub(crate) struct Routes {
    routes: BTreeMap<Key, Route>,
    tokens: BTreeMap<u64, Key>,
    next: u64,
    /// Nothing is due before: this is asked at each event.
    due: Option<Time>,
    told: watch::Sender<Direct>,
    tell: Tell,
}

#[derive(Debug)]
struct Route {
    token: u64,
    ask_at: Time,
    wanted_until: Time,
}

impl Routes {
    pub fn new(tell: Tell) -> Routes {
        let (routes, tokens, due) = Default::default();
        Routes { routes, tokens, next: 0, due, told: watch::Sender::default(), tell }
    }

    /// The groups that can be called directly, now and when that changes.
    pub fn told(&self) -> watch::Receiver<Direct> {
        self.told.subscribe()
    }

    /// Somebody will call this group.
    pub fn want(&mut self, now: Time, to: Path, group: String) {
        let (key, wanted_until) = ((to, group), now + WANTED);
        if let Some(route) = self.routes.get_mut(&key) {
            route.wanted_until = wanted_until;
        } else if self.routes.len() < MAX_ROUTES {
            self.next += 1;
            let token = self.next;
            self.tokens.insert(token, key.clone());
            self.routes.insert(key, Route { token, ask_at: now, wanted_until });
            self.due = Some(now);
        }
    }

    /// The next group to ask for, if one is due.
    pub fn next_question(&mut self, now: Time) -> Option<(u64, Name)> {
        self.due.filter(|due| *due <= now)?;
        while let Some((key, _)) = self.routes.iter().find(|(_, it)| it.wanted_until <= now) {
            let key = key.clone();
            self.forget(&key);
        }
        let next = self.routes.iter_mut().find(|(_, it)| it.ask_at <= now);
        let Some(((path, group), route)) = next else {
            self.due = self.routes.values().map(|it| it.ask_at.min(it.wanted_until)).min();
            return None;
        };
        route.ask_at = now + ASK_AGAIN;
        let scope = Scope::Cell(path.clone());
        Some((route.token, Name { scope, group: group.clone() }))
    }

    pub fn next_timeout(&self) -> Option<Time> {
        self.due
    }

    fn forget(&mut self, key: &Key) {
        if let Some(route) = self.routes.remove(key) {
            self.tokens.remove(&route.token);
            self.tell(key, None);
        }
    }

    /// The answer to a question.
    pub fn found(&mut self, token: u64, found: Option<Record>) {
        let Some(key) = self.tokens.get(&token).cloned() else { return };
        let targets = found.map(|record| record.targets);
        let first = targets.as_ref().and_then(|targets| targets.nodes.first()).copied();
        let (Some(targets), Some(first)) = (targets, first) else { return self.tell(&key, None) };
        let tell = self.tell.clone();
        tokio::spawn(async move {
            let dialled = timeout(PROBE, TcpStream::connect(first.address)).await;
            let is_reached = matches!(dialled, Ok(Ok(_)));
            let _ = tell.send(Inbound::Probed { token, targets, is_reached }).await;
        });
    }

    pub fn probed(&mut self, token: u64, targets: Targets, is_reached: bool) {
        if let Some(key) = self.tokens.get(&token).cloned() {
            self.tell(&key, is_reached.then_some(targets));
        }
    }

    fn tell(&self, key: &Key, targets: Option<Targets>) {
        if self.told.borrow().get(key) == targets.as_ref() {
            return;
        }
        self.told.send_modify(|direct| {
            let direct = Arc::make_mut(direct);
            match targets {
                Some(targets) => _ = direct.insert(key.clone(), targets),
                None => _ = direct.remove(key),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::TcpListener;
    use tokio::sync::mpsc;
    use wire::client::Target;
    use wire::{NodeId, ViewNumber};

    use super::*;

    fn record(path: &Path, view: u64, at: SocketAddr) -> Option<Record> {
        let targets = Targets {
            view: ViewNumber(view),
            nodes: vec![Target { node: NodeId(1), address: at }],
            ..Targets::default()
        };
        Some(Record { cell: path.clone(), targets })
    }

    #[tokio::test]
    async fn a_group_is_told_once_its_node_takes_a_connection_and_for_as_long_as_it_is_wanted() {
        let (tell, mut inbound) = mpsc::channel(4);
        let mut routes = Routes::new(tell);
        let told = routes.told();
        let path: Path = "line-a.porto".parse().unwrap();
        let key = (path.clone(), "boards".to_owned());
        let now = Time(1_000_000_000);
        routes.want(now, key.0.clone(), key.1.clone());
        let (token, name) = routes.next_question(now).expect("it is asked for");
        assert_eq!(name.to_string(), "line-a.porto:boards");
        assert_eq!(routes.next_question(now), None);
        assert_eq!(routes.next_timeout(), Some(now + ASK_AGAIN));

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        for (view, at, is_told) in [(1, open, true), (2, closed, false), (3, open, true)] {
            routes.found(token, record(&path, view, at));
            let Some(Inbound::Probed { token, targets, is_reached }) = inbound.recv().await else {
                panic!("it is probed");
            };
            routes.probed(token, targets, is_reached);
            let now_told = told.borrow().get(&key).map(|targets| targets.view.0);
            assert_eq!(now_told, is_told.then_some(view));
        }
        let again = now + ASK_AGAIN;
        assert!(routes.next_question(again).is_some());
        routes.want(again, key.0.clone(), key.1.clone());
        assert!(routes.next_question(now + WANTED).is_some(), "it was wanted later");
        assert_eq!(routes.next_question(again + WANTED), None);
        assert!(told.borrow().is_empty() && routes.tokens.is_empty());
    }
}
