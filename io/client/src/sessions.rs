//! A client's conversation with the groups of a system of cells: one session with its own cell, and
//! one with each other cell that it calls.
//!
//! A group of another cell is called by its full name, `line-a.porto:boards`. Its cell's session
//! asks nodes of the client's own cell, which carry calls there, and goes to that cell's nodes
//! directly where it learns that they can be reached. The session with the own cell finds out which
//! nodes carry. Each session has calls and numbers of its own, so no name of a group stands for two.

use wire::client::{Frame, Targets};
use wire::limits::MAX_CELLS;
use wire::path::{Name, Path};
use wire::{ClientId, Time, fnv1a};

use crate::output::CallId;
use crate::{
    CallError, Config, Followed, Invocation, Link, Output, Reach, Session, Stats, Trouble,
};

/// Calls and connections of one session have numbers of their own: this many bits.
const BITS: u32 = 48;

/// The sessions of one client. Drivers use it as they would use a [`Session`].
#[derive(Debug)]
pub struct Sessions {
    home: Session,
    away: Vec<Away>,
    /// The beginnings of a session with another cell.
    config: Config,
}

/// The session with another cell.
#[derive(Debug)]
struct Away {
    path: Path,
    session: Session,
    /// The own cell is asked where that one is called.
    asks: bool,
    /// It has said so at least once.
    knows: bool,
}

impl Away {
    /// The own cell knows it as the place where this one is called.
    fn place(&self) -> String {
        place(&self.path)
    }

    /// Calls wait, and no node can be reached.
    fn is_lost(&self) -> bool {
        self.session.under_way() > 0 && self.session.reach() != Reach::Connected
    }
}

fn place(path: &Path) -> String {
    format!("{path}:")
}

impl Sessions {
    /// Makes a client's sessions, which know only addresses of nodes of its own cell.
    pub fn new(config: Config, now: Time) -> Sessions {
        let home = Session::new(config.clone(), now);
        Sessions { home, away: Vec::new(), config }
    }

    /// The session with the own cell.
    pub fn home(&self) -> &Session {
        &self.home
    }

    /// Looks for a node before the first call.
    pub fn connect(&mut self, now: Time) {
        self.home.connect(now);
    }

    /// Begins a call. [`Output::Done`] tells how it ends, also if it could not be begun.
    pub fn call(&mut self, now: Time, mut invocation: Invocation<'_>) -> CallId {
        let Some((path, group)) = Name::full(&invocation.group) else {
            return self.home.call(now, invocation);
        };
        let Some(index) = self.away(now, &path) else {
            return self.home.refuse_call(CallError::TooManyCalls);
        };
        invocation.group = group.into();
        let id = self.away[index].session.call(now, invocation);
        self.look(now);
        id
    }

    /// The session with this cell, which begins with this. `None`: it is one cell too many.
    fn away(&mut self, now: Time, path: &Path) -> Option<usize> {
        if let Some(index) = self.away.iter().position(|away| away.path == *path) {
            return Some(index);
        }
        if self.away.len() >= MAX_CELLS {
            return None;
        }
        let first = (self.away.len() as u64 + 1) << BITS;
        let seed = self.config.seed ^ first;
        // The same at each client of a session that several take part in.
        let text = format!("{}@{path}", self.config.client.0);
        let policies = self.config.group_policies.iter().filter_map(|(name, policy)| {
            let (cell, group) = Name::full(name)?;
            (cell == *path).then_some((group, *policy))
        });
        let config = Config {
            client: ClientId(fnv1a(text.as_bytes())),
            cell: Some(path.clone()),
            addresses: Vec::new(),
            group_policies: policies.collect(),
            seed,
            ..self.config.clone()
        };
        let session = Session::numbered(config, now, first);
        self.away.push(Away { path: path.clone(), session, asks: false, knows: false });
        Some(self.away.len() - 1)
    }

    /// Asks where cells are called that cannot be reached, and passes on what the own cell knows.
    fn look(&mut self, now: Time) {
        for away in &mut self.away {
            let wants = away.is_lost();
            if wants != away.asks {
                away.asks = wants;
                if wants {
                    // At the limit of groups the calls end at their deadlines.
                    let _ = self.home.follow(now, &away.place());
                    self.home.handle_timeout(now);
                } else {
                    self.home.unfollow(&away.place());
                }
            }
            if !wants {
                continue;
            }
            match self.home.followed(&away.place()) {
                Followed::Known(Targets { nodes, .. }) => {
                    away.knows = true;
                    away.session.give(now, nodes.into_iter().map(|node| node.address));
                }
                Followed::Absent if !away.knows => away.session.give_up_all(now),
                Followed::Absent | Followed::Unknown => {}
            }
        }
    }

    fn of(&mut self, number: u64) -> &mut Session {
        match (number >> BITS) as usize {
            0 => &mut self.home,
            index => &mut self.away[index - 1].session,
        }
    }

    /// The cell that this connection is for, if it is another than the client's own.
    pub fn cell_of(&self, link: Link) -> Option<&Path> {
        let index = (link.0 >> BITS) as usize;
        index.checked_sub(1).map(|index| &self.away[index].path)
    }

    /// Gives a call up: it ends without [`Output::Done`]. A replica may still execute it.
    pub fn cancel(&mut self, now: Time, call: CallId) {
        self.of(call.0).cancel(now, call);
    }

    /// The driver made a connection that a session asked for.
    pub fn handle_connected(&mut self, now: Time, link: Link) {
        self.of(link.0).handle_connected(now, link);
    }

    /// A connection failed, or ended.
    pub fn handle_disconnected(&mut self, now: Time, link: Link) {
        self.of(link.0).handle_disconnected(now, link);
        self.look(now);
    }

    /// A connection is of no use, for a reason that only the driver knows.
    pub fn handle_failed(&mut self, now: Time, link: Link, trouble: Trouble) {
        self.of(link.0).handle_failed(now, link, trouble);
        self.look(now);
    }

    /// A frame came.
    pub fn handle_frame(&mut self, now: Time, link: Link, frame: Frame) {
        // A reply is on the way of every call, and changes nothing here.
        let is_news = matches!(frame, Frame::Bound(_) | Frame::Welcome(_) | Frame::Farewell(_));
        self.of(link.0).handle_frame(now, link, frame);
        if is_news {
            self.look(now);
        }
    }

    /// Does what is due at this time.
    pub fn handle_timeout(&mut self, now: Time) {
        self.home.handle_timeout(now);
        self.away.iter_mut().for_each(|away| away.session.handle_timeout(now));
        self.look(now);
    }

    /// The next time at which the driver must call `handle_timeout`.
    pub fn next_timeout(&self) -> Option<Time> {
        self.all().filter_map(Session::next_timeout).min()
    }

    fn all(&self) -> impl Iterator<Item = &Session> {
        std::iter::once(&self.home).chain(self.away.iter().map(|away| &away.session))
    }

    /// Takes the next thing that the driver must do or know.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.home.poll_output() {
            return Some(output);
        }
        let Sessions { home, away, .. } = self;
        away.iter_mut().find_map(|away| {
            let mut output = away.session.poll_output()?;
            if let Output::Done { result: Err(error), .. } = &mut output {
                tell_of_cell(error, away, home);
            }
            Some(output)
        })
    }

    /// Counters since the client began, of all sessions.
    pub fn stats(&self) -> Stats {
        self.all().map(Session::stats).fold(Stats::default(), Stats::and)
    }

    /// Keeps a group's targets known: see [`Session::follow`].
    ///
    /// # Errors
    /// As there, or one cell too many.
    pub fn follow(&mut self, now: Time, name: &str) -> Result<(), CallError> {
        match Name::full(name) {
            None => self.home.follow(now, name),
            Some((path, group)) => {
                let index = self.away(now, &path).ok_or(CallError::TooManyCalls)?;
                self.away[index].session.follow(now, &group)
            }
        }
    }

    /// Ends [`follow`](Sessions::follow).
    pub fn unfollow(&mut self, name: &str) {
        match Name::full(name) {
            None => self.home.unfollow(name),
            Some((path, group)) => {
                let away = self.away.iter_mut().find(|away| away.path == path);
                away.into_iter().for_each(|away| away.session.unfollow(&group));
            }
        }
    }

    /// Tells what is known of a group that is followed.
    pub fn followed(&self, name: &str) -> Followed {
        match Name::full(name) {
            None => self.home.followed(name),
            Some((path, group)) => {
                let away = self.away.iter().find(|away| away.path == path);
                away.map_or(Followed::Unknown, |away| away.session.followed(&group))
            }
        }
    }

    #[cfg(feature = "net")]
    /// The addresses that the client was given, and what each did: for an error's text.
    pub(crate) fn describe(&self) -> String {
        self.home.links.describe()
    }
}

/// Errors name the group as their caller does. A cell of which no node is known is out of reach
/// because the own cell's nodes are, or do not say.
fn tell_of_cell(error: &mut CallError, away: &Away, home: &Session) {
    match error {
        CallError::NoSuchGroup(group) => *group = format!("{}{group}", away.place()),
        CallError::Unreachable(text) if text.is_empty() => {
            *text = match home.reach() {
                Reach::Connected => {
                    format!("no node of this cell says where {} is called", away.path)
                }
                _ => home.links.describe(),
            };
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
