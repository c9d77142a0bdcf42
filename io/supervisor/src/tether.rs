//! The data plane's reports about a program that it has taken in.

use crate::notice::{Notice, NoticeSender};

/// Ties an attached program to the thread that supervises it.
#[derive(Debug)]
pub struct Tether {
    run: u64,
    joined: bool,
    served: bool,
    notices: NoticeSender,
}

impl Tether {
    /// The tether of a start that has neither joined its group nor answered a call.
    pub(crate) fn new(run: u64, notices: NoticeSender) -> Tether {
        Tether { run, joined: false, served: false, notices }
    }

    /// Which start of all programs this is.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The data plane has taken it in.
    pub fn hosted(&self) {
        self.notices.tell(Notice::Hosted(self.run));
    }

    /// Its replica is in its group.
    pub fn joined(&mut self) {
        if !std::mem::replace(&mut self.joined, true) {
            self.notices.tell(Notice::Joined(self.run));
        }
    }

    /// It has answered a call.
    pub fn served(&mut self) {
        if !std::mem::replace(&mut self.served, true) {
            self.notices.tell(Notice::Served(self.run));
        }
    }

    /// The program is to be started.
    pub fn wanted(&self) {
        self.notices.tell(Notice::Wanted(self.run));
    }

    /// It is not needed any more.
    pub fn released(&self) {
        self.notices.tell(Notice::Released(self.run));
    }

    /// It is hung, and to be ended at once.
    pub fn hung(&self) {
        self.notices.tell(Notice::Hung(self.run));
    }

    /// For the same program, when this start of it is over.
    pub fn again(&self) -> Tether {
        Tether { run: self.run, joined: true, served: true, notices: self.notices.clone() }
    }

    /// The data plane has let it go.
    pub fn detached(&self, reason: Option<String>) {
        self.notices.tell(Notice::Detached(self.run, reason));
    }
}
