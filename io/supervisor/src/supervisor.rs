//! The thread that minds the node's programs: it waits for their pipes, their ends and their
//! connections all at once, and for nothing else.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender};

use config::ProgramConfig;
use engine::{Event, ProgramNews};
use os::clock::{self, monotonic};
use qos::priority::by_rate;
use rustix::event::{PollFd, PollFlags, poll};
use wire::attach::{Frame, TOKEN, Welcome};
use wire::limits::MAX_PROGRAMS;
use wire::{GroupId, Member, Time};

use crate::data_plane::{Attaching, DataPlane};
use crate::door::{Door, Guest};
use crate::error::ProgramError;
use crate::notice::{Notice, NoticeSender};
use crate::reserve::Terms;
use crate::running::{Deed, Running};
use crate::starter::Starter;
use crate::tether::Tether;

/// The source of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Notices,
    Door,
    Visitor(u64),
    /// A program, by its place, and one of its pipes.
    Output(usize, usize),
    Exit(usize),
}

pub(crate) struct Supervisor {
    folder: PathBuf,
    me: Member,
    cluster: String,
    plane: Box<dyn DataPlane>,
    notices: NoticeSender,
    door: Option<Door>,
    programs: Vec<Running>,
    /// Those that are deployed here.
    deployed: Vec<ProgramConfig>,
    /// The needs of those of which they are known.
    terms: BTreeMap<String, Terms>,
    /// The highest priority of a program; 0: none has any.
    top: u8,
    /// The socket of the host's daemon of reserves.
    daemon: Option<PathBuf>,
    starter: Starter,
    /// Groups of which nobody else has the state.
    alone: Vec<String>,
    /// Starts so far.
    runs: u64,
    /// Let go of when the last program has ended.
    ending: Option<SyncSender<()>>,
}

impl Supervisor {
    pub fn new(
        folder: PathBuf,
        (me, cluster): (Member, String),
        (top, daemon): (u8, Option<PathBuf>),
        plane: Box<dyn DataPlane>,
        notices: NoticeSender,
    ) -> Supervisor {
        Supervisor {
            folder,
            me,
            cluster,
            plane,
            notices,
            door: None,
            programs: Vec::new(),
            deployed: Vec::new(),
            terms: BTreeMap::new(),
            top,
            daemon,
            starter: Starter::default(),
            alone: Vec::new(),
            runs: 0,
            ending: None,
        }
    }

    /// Runs until it is told to end, and all programs have ended.
    pub fn run(mut self, notices: &Receiver<Notice>) {
        loop {
            let ready = self.wait();
            let now = monotonic();
            for what in ready {
                self.handle_ready(now, what, notices);
            }
            if let Some(door) = &mut self.door {
                door.handle_timeout(now);
            }
            for program in &mut self.programs {
                program.handle_timeout(now);
                if let Some(lines) = program.flow.say(now) {
                    let group = &program.config.group;
                    tracing::warn!(
                        target: "program", group, lines, "lines of its output were dropped: it \
                         writes more than the log takes"
                    );
                }
            }
            self.reconcile(now);
            self.act(now);
            if self.ending.is_some() && self.programs.is_empty() {
                return;
            }
        }
    }

    /// Waits until something is ready or due.
    fn wait(&self) -> Vec<What> {
        let now = monotonic();
        let (mut whats, mut fds) = (Vec::new(), Vec::new());
        let mut add = |what, fd| {
            whats.push(what);
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        };
        add(What::Notices, std::os::fd::AsFd::as_fd(self.notices.waker()));
        let mut due = Time::FAR;
        if let Some(door) = &self.door {
            due = door.next_timeout(now);
            for (visitor, fd) in door.fds(now) {
                add(visitor.map_or(What::Door, What::Visitor), fd);
            }
        }
        for (index, program) in self.programs.iter().enumerate() {
            due = due.min(program.next_timeout(now));
            let Some(process) = &program.process else { continue };
            for (number, pipe) in process.pipes.iter().enumerate() {
                if let Some(fd) = pipe.fd(now) {
                    add(What::Output(index, number), fd);
                }
            }
            // Last, so that what it said before its end is told before it.
            add(What::Exit(index), process.end());
        }
        let timeout = (due != Time::FAR).then(|| clock::timeout(now, due));
        // Interrupted or out of memory: it is looked at again.
        if poll(&mut fds, timeout.as_ref()).is_err() {
            return Vec::new();
        }
        let ready = whats.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|(what, _)| what).collect()
    }

    fn handle_ready(&mut self, now: Time, what: What, notices: &Receiver<Notice>) {
        match what {
            What::Notices => {
                self.notices.waker().lower();
                while let Ok(notice) = notices.try_recv() {
                    self.handle_notice(now, notice);
                }
            }
            What::Door => self.door.iter_mut().for_each(|door| door.accept(now)),
            What::Visitor(number) => {
                if let Some(guest) = self.door.as_mut().and_then(|door| door.read(number)) {
                    self.let_in(guest);
                }
            }
            What::Output(index, pipe) => {
                let Running { config, process, flow, .. } = &mut self.programs[index];
                if let Some(process) = process {
                    process.pipes[pipe].read(now, flow, |line| log(&config.group, line));
                }
            }
            What::Exit(index) => {
                let program = &mut self.programs[index];
                let group = program.config.group.clone();
                let deeds = program.exited(now, |line| log(&group, line));
                self.carry_out(&group, deeds);
            }
        }
    }

    fn handle_notice(&mut self, now: Time, notice: Notice) {
        match notice {
            Notice::Run { config, reply } => match self.may_start(&config) {
                Ok(()) => {
                    let mut program = Running::new(config);
                    program.answer(now, reply);
                    self.programs.push(program);
                }
                Err(error) => {
                    let _ = reply.try_send(Err(error));
                }
            },
            Notice::Keep(config) => match self.may_start(&config) {
                Ok(()) => self.programs.push(Running::new(config)),
                Err(error) => {
                    tracing::error!(group = config.group, %error, "the program is not started");
                }
            },
            Notice::Deploy { programs, terms, alone } => {
                (self.deployed, self.terms, self.alone) = (programs, terms, alone);
            }
            Notice::Deployed { reply } => {
                let deployed = self.programs.iter().filter(|it| it.deployed);
                let _ = reply.try_send(deployed.map(|it| it.as_deployed(now)).collect());
            }
            Notice::Stop { group, reply } => {
                match self.programs.iter().position(|it| it.config.group == group) {
                    Some(index) => self.stop(now, index, Some(reply)),
                    None => {
                        let _ = reply.try_send(Err(ProgramError::NotRunning(group)));
                    }
                }
            }
            Notice::Status { reply } => {
                let mut all: Vec<_> = self.programs.iter().map(|it| it.status(now)).collect();
                all.sort_by(|a, b| a.group.cmp(&b.group));
                let _ = reply.try_send(all);
            }
            Notice::Hosted(run) => {
                if let Some(program) = self.programs.iter_mut().find(|it| it.run == run) {
                    let (group, deed) = (program.config.group.clone(), program.hosted(now));
                    self.carry_out(&group, [deed]);
                }
            }
            Notice::Joined(run) => self.with(run, |program| program.joined(now)),
            Notice::Served(run) => self.with(run, |program| program.served()),
            Notice::Wanted(run) => {
                if let Some(program) = self.programs.iter_mut().find(|it| it.is_meant(run)) {
                    program.wanted();
                }
            }
            Notice::Released(run) => {
                if let Some(program) = self.programs.iter_mut().find(|it| it.is_meant(run)) {
                    program.released(now);
                }
            }
            Notice::Hung(run) => self.with(run, |program| program.hung(now)),
            Notice::Detached(run, reason) => {
                self.with(run, |program| program.detached(now, reason));
            }
            Notice::End { done } => {
                self.ending = Some(done);
                for index in 0..self.programs.len() {
                    self.stop(now, index, None);
                }
            }
        }
    }

    /// Starts deployed programs that do not run, and ends those that are not deployed any more.
    /// Programs that people started by hand stay.
    fn reconcile(&mut self, now: Time) {
        if self.ending.is_some() {
            return;
        }
        for index in 0..self.programs.len() {
            let program = &self.programs[index];
            let goes = program.deployed && !self.deployed.contains(&program.config);
            // A decision from when others had the state does not end it now that they are lost.
            let spared = self.alone.contains(&program.config.group);
            if goes && !spared && !program.is_stopping() {
                self.stop(now, index, None);
            }
        }
        for config in self.deployed.clone() {
            if self.programs.iter().any(|it| it.config.group == config.group) {
                continue;
            }
            match self.may_start(&config) {
                Ok(()) => self.programs.push(Running::deployed(config)),
                // It is tried again whenever something happens here, and the manager sees that it
                // is missing.
                Err(error) => {
                    tracing::debug!(group = config.group, %error, "not started for now");
                }
            }
        }
    }

    fn with(&mut self, run: u64, act: impl FnOnce(&mut Running)) {
        if let Some(program) = self.programs.iter_mut().find(|it| it.run == run) {
            act(program);
        }
    }

    fn stop(
        &mut self,
        now: Time,
        index: usize,
        stopper: Option<SyncSender<Result<(), ProgramError>>>,
    ) {
        let program = &mut self.programs[index];
        if program.stop(now, stopper) {
            let (group, run) = (GroupId::of(&program.config.group), program.run);
            self.plane.part(group, run, false);
        }
    }

    fn may_start(&mut self, config: &ProgramConfig) -> Result<(), ProgramError> {
        if self.ending.is_some() {
            return Err(ProgramError::Stopped);
        }
        if self.programs.iter().any(|it| it.config.group == config.group) {
            return Err(ProgramError::Twice(config.group.clone()));
        }
        if self.programs.len() >= MAX_PROGRAMS {
            return Err(ProgramError::TooMany);
        }
        self.open_door()
    }

    /// The socket comes to be with the first program.
    fn open_door(&mut self) -> Result<(), ProgramError> {
        if self.door.is_none() {
            let folder = &self.folder;
            let wrap = |source| ProgramError::Socket { folder: folder.clone(), source };
            self.door = Some(Door::open(folder).map_err(wrap)?);
        }
        Ok(())
    }

    /// Gives who has a right to it to the data plane, with its replica.
    fn let_in(&mut self, guest: Guest) {
        let (group, token) = (&guest.hello.group, &guest.hello.token);
        let Some(program) = self.programs.iter_mut().find(|it| it.config.group == *group) else {
            return turn_away(&guest);
        };
        if !program.admit(group, token) {
            return turn_away(&guest);
        }
        let (node, cluster) = (self.me.node, self.cluster.clone());
        let (name, options) = (program.config.group.clone(), program.config.options);
        let (version, ordered) = (guest.version, options.style.has_state());
        guest.say(&Frame::Welcome(Welcome { version, ordered, node, cluster }));
        let tether = Tether::new(program.run, self.notices.clone());
        let Guest { stream, input, hello, .. } = guest;
        let merges = hello.merges;
        let begins = program.take_begins();
        self.plane.attach(name, options, Attaching { stream, input, tether, begins, merges });
    }

    /// Has a replica hosted whose program is started on demand.
    fn stand(&mut self, group: &str, run: u64) {
        let Some(program) = self.programs.iter().find(|it| it.config.group == group) else {
            return;
        };
        let (name, options) = (group.to_owned(), program.config.options);
        self.plane.stand_by(name, options, Tether::new(run, self.notices.clone()));
    }

    fn act(&mut self, now: Time) {
        let mut index = 0;
        while index < self.programs.len() {
            let Supervisor { programs, terms, top, daemon, starter, door, runs, .. } = self;
            let program = &mut programs[index];
            let terms = terms.get(&program.config.group).filter(|_| program.deployed);
            let period = terms.and_then(|terms| terms.period);
            program.priority = period.map_or(0, |period| by_rate(period, *top));
            let reserve = terms.and_then(|terms| terms.reserve.clone());
            program.reserve.set(daemon.clone().zip(reserve));
            let deeds = program.act(now, door.as_ref().map(Door::path), starter, || {
                *runs += 1;
                (*runs, draw_token())
            });
            let group = program.config.group.clone();
            if !self.carry_out(&group, deeds) {
                index += 1;
            }
        }
    }

    /// Does these; true if the program is forgotten with them.
    fn carry_out(&mut self, group: &str, deeds: impl IntoIterator<Item = Deed>) -> bool {
        let mut forgotten = false;
        for deed in deeds {
            match deed {
                Deed::Tell(news) => self.tell(group, news),
                Deed::Reserve(path, news) => self.plane.tell(Event::Reserve { path, news }),
                Deed::Lost(run) => {
                    self.plane.part(GroupId::of(group), run, true);
                }
                Deed::Stand(run) => self.stand(group, run),
                Deed::Forget => {
                    self.tell(group, ProgramNews::Stopped);
                    self.programs.retain(|it| it.config.group != group);
                    forgotten = true;
                }
            }
        }
        forgotten
    }

    fn tell(&self, group: &str, news: ProgramNews) {
        self.plane.tell(Event::Program { group: group.into(), news });
    }
}

fn turn_away(guest: &Guest) {
    let group = &guest.hello.group;
    tracing::warn!(group, pid = guest.hello.pid, "a program without a right to it was turned away");
    let words = "this token is not (or no more) one that the node gave out for this group: a program \
                 is started by its node, with `steadfast run`, and each of its starts attaches once";
    guest.say(&Frame::Farewell(words.into()));
}

fn draw_token() -> std::io::Result<[u8; TOKEN]> {
    Ok(*os::random::secret()?.expose())
}

fn log(group: &str, line: &str) {
    tracing::info!(target: "program", group, "{line}");
}
