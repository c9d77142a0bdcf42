//! The task: what the session says is done here; what the streams and orders say is told to it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep, sleep_until};
use wire::Time;
use wire::client::Frame;

use super::order::{Asker, Follower, Log, Order, POISONED};
use super::stream::Stream;
use crate::buffers::READ_SIZE;
use crate::channel::Channel;
use crate::secure::{Tls, begin};
use crate::sessions::Sessions;
use crate::{CallId, Config, ConnectError, Link, Output, Reach};

/// Owns everything. It is its own future: one poll does all that can be done.
pub(super) struct Task {
    pub(super) sessions: Sessions,
    tls: Option<Tls>,
    start: Instant,
    orders: mpsc::Receiver<Order>,
    askers: BTreeMap<CallId, Asker>,
    followers: Vec<Follower>,
    streams: BTreeMap<Link, Stream>,
    alarm: Pin<Box<Sleep>>,
    scratch: Box<[u8]>,
    opened: Option<oneshot::Sender<Result<(), ConnectError>>>,
    pub(super) log: Arc<Mutex<Log>>,
}

impl Task {
    pub(super) fn new(
        config: Config,
        tls: Option<Tls>,
        orders: mpsc::Receiver<Order>,
        opened: oneshot::Sender<Result<(), ConnectError>>,
    ) -> Task {
        let start = Instant::now();
        let mut sessions = Sessions::new(config, Time::ZERO);
        sessions.connect(Time::ZERO);
        Task {
            sessions,
            tls,
            start,
            orders,
            askers: BTreeMap::new(),
            followers: Vec::new(),
            streams: BTreeMap::new(),
            alarm: Box::pin(sleep_until(start)),
            scratch: vec![0; READ_SIZE].into(),
            opened: Some(opened),
            log: Arc::default(),
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    /// Takes what is ordered. `Ready` when no client is left.
    fn take_orders(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(order) = ready!(self.orders.poll_recv(cx)) {
            let now = self.now();
            let (invocation, deadline, mut asker) = match order {
                Order::Call { invocation, deadline, asker } => (invocation, deadline, asker),
                Order::Follow(follower) => {
                    self.follow(now, follower);
                    continue;
                }
            };
            let deadline = Time::ZERO + deadline.duration_since(self.start);
            // The order was on its way for a moment, which must not make its deadline too long.
            let deadline = deadline.min(now + wire::limits::MAX_DEADLINE);
            // This also has the task woken when the future that waits is dropped.
            if asker.poll_closed(cx).is_ready() {
                continue;
            }
            let id = self.sessions.call(now, invocation.within(deadline.since(now)));
            self.askers.insert(id, asker);
            self.pump();
        }
        Poll::Ready(())
    }

    fn follow(&mut self, now: Time, follower: Follower) {
        // A group that cannot be followed stays unknown.
        if self.sessions.follow(now, &follower.group).is_ok() {
            self.followers.push(follower);
            self.pump();
        }
    }

    /// Tells followers what is new, and forgets those who listen no more.
    fn tell_followers(&mut self) {
        let (gone, there): (Vec<_>, Vec<_>) =
            self.followers.drain(..).partition(|follower| follower.told.is_closed());
        self.followers = there;
        for Follower { group, .. } in gone {
            if self.followers.iter().all(|other| other.group != group) {
                self.sessions.unfollow(&group);
            }
        }
        for Follower { group, told } in &self.followers {
            let followed = self.sessions.followed(group);
            told.send_if_modified(|before| {
                let is_news = *before != followed;
                *before = followed;
                is_news
            });
        }
    }

    /// Calls whose futures were dropped are given up.
    fn drop_abandoned(&mut self, cx: &mut Context<'_>) {
        let gone = self
            .askers
            .iter_mut()
            .filter_map(|(id, asker)| asker.poll_closed(cx).is_ready().then_some(*id));
        let gone: Vec<CallId> = gone.collect();
        let now = self.now();
        for id in gone {
            self.askers.remove(&id);
            self.sessions.cancel(now, id);
        }
    }

    /// Does what the session says, up to the sockets' buffers.
    fn pump(&mut self) {
        while let Some(output) = self.sessions.poll_output() {
            match output {
                Output::Connect { link, address } => {
                    let records = self
                        .tls
                        .as_ref()
                        .map(|tls| begin(tls, address, self.sessions.cell_of(link)));
                    self.streams.insert(link, Stream::dial(address, Channel::new(records)));
                }
                Output::Send { link, frame } => self.put(link, &frame),
                Output::Disconnect { link } => drop(self.streams.remove(&link)),
                Output::Done { call, result, answers } => {
                    if let Some(asker) = self.askers.remove(&call) {
                        // Nobody may wait any more; then the result is of no use to anybody.
                        let _ = asker.send((result, answers));
                    }
                }
                Output::Event(event) => self.log.lock().expect(POISONED).events.put(event),
            }
        }
        self.log.lock().expect(POISONED).stats = self.sessions.stats();
    }

    fn put(&mut self, link: Link, frame: &Frame) {
        if let Some(stream) = self.streams.get_mut(&link)
            && !stream.put(frame)
        {
            self.lose(link);
        }
    }

    fn lose(&mut self, link: Link) {
        self.streams.remove(&link);
        let now = self.now();
        self.sessions.handle_disconnected(now, link);
    }

    /// Reads and writes all that can be. True if the session has something to say.
    fn serve(&mut self, cx: &mut Context<'_>) -> bool {
        let mut frames = Vec::new();
        let links: Vec<Link> = self.streams.keys().copied().collect();
        let mut any = false;
        for link in links {
            let Some(stream) = self.streams.get_mut(&link) else { continue };
            let polled = stream.poll(cx, &mut self.scratch, &mut frames);
            let now = self.now();
            any |= !frames.is_empty();
            for frame in frames.drain(..) {
                self.sessions.handle_frame(now, link, frame);
            }
            match polled {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => {
                    any = true;
                    self.sessions.handle_connected(now, link);
                }
                Poll::Ready(Err(None)) => {
                    any = true;
                    self.lose(link);
                }
                Poll::Ready(Err(Some(trouble))) => {
                    any = true;
                    self.streams.remove(&link);
                    self.sessions.handle_failed(now, link, trouble);
                }
            }
        }
        any
    }

    /// Fires what is due and waits for what is next. True if the session has something to say.
    fn serve_timers(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(next) = self.sessions.next_timeout() else { return false };
        let now = self.now();
        if next <= now {
            self.sessions.handle_timeout(now);
            return true;
        }
        let at = self.start + next.since(Time::ZERO);
        if self.alarm.deadline() != at {
            self.alarm.as_mut().reset(at);
        }
        self.alarm.as_mut().poll(cx).is_ready()
    }

    /// Reports the outcome to the caller that waits in `connect`. True if it failed.
    fn tell_opened(&mut self) -> bool {
        let result = match self.sessions.home().reach() {
            _ if self.opened.is_none() => return false,
            Reach::Trying => return false,
            Reach::Connected => Ok(()),
            Reach::Failed(error) => Err(error),
        };
        let failed = result.is_err();
        let opened = self.opened.take().expect("it is still awaited");
        opened.send(result).is_err() || failed
    }
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let task = &mut *self;
        loop {
            task.drop_abandoned(cx);
            if task.take_orders(cx).is_ready() {
                return Poll::Ready(());
            }
            task.pump();
            let mut again = task.serve(cx);
            task.pump();
            again |= task.serve_timers(cx);
            task.pump();
            task.tell_followers();
            if task.tell_opened() {
                return Poll::Ready(());
            }
            // Any change may have put something into a buffer: it is written before this sleeps.
            if !again {
                return Poll::Pending;
            }
        }
    }
}
