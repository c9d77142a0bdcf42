//! The daemon of a host's reserves, without its sockets: who holds which reserve, and what the
//! kernel is asked.
//!
//! - A reserve is held by a connection, and ends with it.
//! - The same user may take a path over by another connection: its program has started again, and
//!   the end of the old connection has not been seen yet.
//! - A change is made as a whole. If the host or the kernel refuses it, all stays as it was.
//! - The machine keeps nothing that must survive: the kernel keeps what is in force, and a daemon
//!   that starts again is asked again.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::bug::{Bug, Planted};
use crate::host::{Ask, Host, Mechanism, Refusal};

/// A connection, by the order in which it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection(pub u64);

/// The kernel, as the daemon asks it. `T` names a thread or a process.
pub trait Kernel<T> {
    /// Gives the target this class.
    ///
    /// # Errors
    /// Nothing has changed, or only for some threads of a program.
    fn enforce(&mut self, target: &T, mechanism: Mechanism) -> Result<(), Unenforced>;

    /// Makes the target ordinary, if it lives.
    fn release(&mut self, target: &T);

    /// Sets the limits of memory and devices; what is not in force.
    fn limit(&mut self, path: &str, target: &T, ask: &Ask) -> Vec<String>;

    /// Removes the limits of this path.
    fn unlimit(&mut self, path: &str);
}

/// Why the kernel does not enforce a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unenforced {
    /// The processors have not so much time left.
    Busy,
    /// The reason, and the remedy.
    Refused(String),
}

/// A reserve in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held<T> {
    /// The connection that holds it.
    pub by: Connection,
    /// The user of that connection.
    pub user: u32,
    /// The thread or process.
    pub target: T,
    /// The request.
    pub ask: Ask,
    /// The mechanism for its processor time.
    pub mechanism: Mechanism,
    /// Parts that are not in force, with the remedy.
    pub degraded: Vec<String>,
}

/// Why there is no reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The reason, and the remedy.
    pub why: String,
    /// The host has no room: another one may.
    pub full: bool,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Daemon<T> {
    host: Host,
    held: BTreeMap<String, Held<T>>,
    planted: Planted,
}

impl<T: Clone + PartialEq> Daemon<T> {
    /// One that holds nothing.
    pub fn new(host: Host, planted: Planted) -> Daemon<T> {
        Daemon { host, held: BTreeMap::new(), planted }
    }

    /// The host's resources and reserves.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// All reserves, in order of their paths.
    pub fn held(&self) -> impl Iterator<Item = (&str, &Held<T>)> {
        self.held.iter().map(|(path, held)| (path.as_str(), held))
    }

    /// Makes a reserve, or changes the one of this path.
    ///
    /// # Errors
    /// It is refused; what was in force stays.
    pub fn reserve(
        &mut self,
        kernel: &mut impl Kernel<T>,
        (by, user): (Connection, u32),
        path: &str,
        (target, ask): (T, Ask),
    ) -> Result<&Held<T>, Denied> {
        let before = self.held.get(path);
        if let Some(held) = before
            && held.by != by
            && held.user != user
            && !self.planted.is(Bug::AnybodyTakesOver)
        {
            let why = alloc::format!("{path} is held by another user's process");
            return Err(Denied { why, full: false });
        }
        let old = before.map(|held| held.ask.clone());
        // Limits that stay as they are stay in force without a moment's gap.
        let limited = before
            .filter(|held| held.target == target && held.ask.limits() == ask.limits())
            .map(|held| held.degraded.iter().filter(|why| *why != NOT_PERMITTED).cloned());
        let limited: Option<Vec<String>> = limited.map(Iterator::collect);
        let had_class = before.is_some_and(|held| held.mechanism.is_enforced());
        let mechanism = match self.host.admit(path, ask.clone()) {
            Ok(admitted) => admitted.cpu,
            Err(refusal) => {
                let full = !matches!(refusal, Refusal::Path(_) | Refusal::Impossible);
                return Err(Denied { why: refusal.to_string(), full });
            }
        };
        if let Err(unenforced) = kernel.enforce(&target, mechanism)
            && !self.planted.is(Bug::BelieveTheHost)
        {
            return Err(self.roll_back(kernel, path, &target, (old, unenforced)));
        }
        if had_class && !mechanism.is_enforced() {
            kernel.release(&target);
        }
        let mut degraded = limited.unwrap_or_else(|| {
            if old.is_some_and(|old| old.limits() != ask.limits()) {
                kernel.unlimit(path);
            }
            kernel.limit(path, &target, &ask)
        });
        if mechanism == Mechanism::Degraded && !self.planted.is(Bug::DegradeSilently) {
            degraded.push(NOT_PERMITTED.into());
        }
        let held = Held { by, user, target: target.clone(), ask, mechanism, degraded };
        let before = self.held.insert(path.into(), held);
        if let Some(old) = before.filter(|old| old.target != target) {
            let left = if self.planted.is(Bug::ReleaseTheNew) { &target } else { &old.target };
            if !self.planted.is(Bug::ForgetTheOld) {
                kernel.release(left);
            }
        }
        Ok(&self.held[path])
    }

    /// The kernel does not enforce what the host has admitted.
    fn roll_back(
        &mut self,
        kernel: &mut impl Kernel<T>,
        path: &str,
        target: &T,
        (old, unenforced): (Option<Ask>, Unenforced),
    ) -> Denied {
        if !self.planted.is(Bug::KeepTheRefused) {
            self.host.release(path);
        }
        match old {
            // There was room for it a moment ago, and the kernel still has it.
            Some(old) if !self.planted.is(Bug::ForgetTheChanged) => {
                let back = self.host.admit(path, old);
                debug_assert!(back.is_ok(), "it was in force: {back:?}");
            }
            Some(_) => {}
            None => kernel.release(target),
        }
        match unenforced {
            Unenforced::Busy => Denied { why: Refusal::Kernel.to_string(), full: true },
            Unenforced::Refused(why) => Denied { why, full: false },
        }
    }

    /// Ends a reserve of this connection. False: it holds none of this path.
    pub fn release(&mut self, kernel: &mut impl Kernel<T>, by: Connection, path: &str) -> bool {
        if self.held.get(path).is_none_or(|held| held.by != by) {
            return false;
        }
        self.end(kernel, path);
        true
    }

    /// A connection has ended, and its reserves with it.
    pub fn leave(&mut self, kernel: &mut impl Kernel<T>, by: Connection) {
        let its = |held: &Held<T>| {
            // A later connection may have taken a path over.
            held.by == by || (self.planted.is(Bug::EndTheTakenOver) && held.by.0 == by.0 + 1)
        };
        let paths: Vec<String> =
            self.held.iter().filter(|(_, it)| its(it)).map(|(path, _)| path.clone()).collect();
        paths.iter().for_each(|path| self.end(kernel, path));
    }

    fn end(&mut self, kernel: &mut impl Kernel<T>, path: &str) {
        let Some(held) = self.held.remove(path) else { return };
        if !self.planted.is(Bug::LeakTheRoom) {
            self.host.release(path);
        }
        if !self.planted.is(Bug::LeakTheClass) {
            kernel.release(&held.target);
        }
        kernel.unlimit(path);
    }
}

/// Why a reserve of processor time is not in force.
const NOT_PERMITTED: &str = "cpu: neither SCHED_DEADLINE nor SCHED_FIFO is permitted to the \
                             daemon: give it CAP_SYS_NICE";
