//! The asynchronous porch: one task owns the session and its streams.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, ToSocketAddrs, lookup_host};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep, sleep_until};
use wire::client::Frame;
use wire::limits::MAX_QUEUED_CALLS;
use wire::{ClientId, MethodId, Time};

use crate::buffers::{EventLog, READ_SIZE, draw};
use crate::channel::Channel;
use crate::secure::{Tls, begin};
use crate::{
    Builder, CallError, CallId, Config, ConnectError, Event, Link, Output, Reach, Session, Stats,
    Trouble,
};

type Answer = oneshot::Sender<Result<Bytes, CallError>>;
type Dial = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// An asynchronous client, for any number of tasks; its clones share one session, which ends with
/// the last of them.
///
/// Its timers are tokio's: they fire up to a millisecond late.
#[derive(Clone, Debug)]
pub struct AsyncClient {
    orders: mpsc::Sender<Order>,
    log: Arc<Mutex<Log>>,
    client: ClientId,
}

#[derive(Debug)]
struct Order {
    group: String,
    method: MethodId,
    json: bool,
    body: Bytes,
    deadline: Instant,
    answer: Answer,
}

/// What can be seen from outside while the task runs.
#[derive(Debug, Default)]
struct Log {
    stats: Stats,
    events: EventLog,
}

impl AsyncClient {
    /// Connects to the first of these addresses that answers. One node's is enough; with several,
    /// the client can also start while a node is down.
    ///
    /// # Errors
    /// If none answers: what each did. If this is not within a tokio runtime.
    pub async fn connect<A: ToSocketAddrs>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<AsyncClient, ConnectError> {
        AsyncClient::connect_by(addresses, None).await
    }

    /// To say more of the client than addresses.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) async fn connect_by<A: ToSocketAddrs>(
        addresses: impl IntoIterator<Item = A>,
        tls: Option<Tls>,
    ) -> Result<AsyncClient, ConnectError> {
        let runtime =
            Handle::try_current().map_err(|error| ConnectError::System(error.to_string()))?;
        let mut resolved: Vec<SocketAddr> = Vec::new();
        for address in addresses {
            let found = lookup_host(address).await;
            resolved.extend(found.map_err(|error| ConnectError::Resolve(error.to_string()))?);
        }
        let (orders, inbound) = mpsc::channel(MAX_QUEUED_CALLS);
        let (opened, opening) = oneshot::channel();
        let task = Task::new(draw(resolved)?, tls, inbound, opened);
        let client = AsyncClient { orders, log: task.log.clone(), client: task.session.client() };
        runtime.spawn(task);
        opening.await.unwrap_or_else(|_| Err(ConnectError::System("the runtime ends".into())))?;
        Ok(client)
    }

    /// Calls a group's method and waits for the answer, for `deadline` at most. Dropping the
    /// future gives the call up; it may be executed all the same.
    ///
    /// # Errors
    /// [`CallError`] says what became of the call.
    pub async fn call(
        &self,
        group: &str,
        method: MethodId,
        json: bool,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Bytes, CallError> {
        if deadline > wire::limits::MAX_DEADLINE {
            return Err(CallError::DeadlineTooLong(deadline));
        }
        let (answer, answered) = oneshot::channel();
        let group = group.to_owned();
        let deadline = Instant::now() + deadline;
        let order = Order { group, method, json, body, deadline, answer };
        // The task takes orders as fast as they come: what is too much, the session refuses.
        self.orders.send(order).await.map_err(|_| CallError::Closed)?;
        answered.await.map_err(|_| CallError::Closed)?
    }

    /// The session's name, as nodes and handlers see it.
    pub fn id(&self) -> ClientId {
        self.client
    }

    /// Counters since the client was made.
    pub fn stats(&self) -> Stats {
        self.log.lock().expect(POISONED).stats
    }

    /// Takes the events since the last time, with the moments at which they were noticed. The
    /// last `MAX_CLIENT_EVENTS` are kept.
    pub fn take_events(&self) -> Vec<(SystemTime, Event)> {
        self.log.lock().expect(POISONED).events.take()
    }
}

const POISONED: &str = "the client's task never panics with the lock held";

/// Owns everything. It is its own future: one poll does all that can be done.
struct Task {
    session: Session,
    tls: Option<Tls>,
    start: Instant,
    orders: mpsc::Receiver<Order>,
    answers: BTreeMap<CallId, Answer>,
    streams: BTreeMap<Link, Stream>,
    alarm: Pin<Box<Sleep>>,
    scratch: Box<[u8]>,
    opened: Option<oneshot::Sender<Result<(), ConnectError>>>,
    log: Arc<Mutex<Log>>,
}

enum Stream {
    Dialling { dial: Dial, channel: Channel },
    Open { socket: TcpStream, channel: Channel },
}

impl Task {
    fn new(
        config: Config,
        tls: Option<Tls>,
        orders: mpsc::Receiver<Order>,
        opened: oneshot::Sender<Result<(), ConnectError>>,
    ) -> Task {
        let start = Instant::now();
        let mut session = Session::new(config, Time::ZERO);
        session.connect(Time::ZERO);
        Task {
            session,
            tls,
            start,
            orders,
            answers: BTreeMap::new(),
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
            let deadline = Time::ZERO + order.deadline.duration_since(self.start);
            // The order was on its way for a moment, which must not make its deadline too long.
            let deadline = deadline.min(now + wire::limits::MAX_DEADLINE);
            let Order { group, method, json, body, mut answer, .. } = order;
            // This also has the task woken when the future that waits is dropped.
            if answer.poll_closed(cx).is_ready() {
                continue;
            }
            let id = self.session.call(now, &group, method, json, body, deadline);
            self.answers.insert(id, answer);
            self.pump();
        }
        Poll::Ready(())
    }

    /// Calls whose futures were dropped are given up.
    fn drop_abandoned(&mut self, cx: &mut Context<'_>) {
        let gone = self
            .answers
            .iter_mut()
            .filter_map(|(id, answer)| answer.poll_closed(cx).is_ready().then_some(*id));
        let gone: Vec<CallId> = gone.collect();
        let now = self.now();
        for id in gone {
            self.answers.remove(&id);
            self.session.cancel(now, id);
        }
    }

    /// Does what the session says, up to the sockets' buffers.
    fn pump(&mut self) {
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Connect { link, address } => {
                    let dial = Box::pin(TcpStream::connect(address));
                    let records = self.tls.as_ref().map(|tls| begin(tls, address));
                    let channel = Channel::new(records);
                    self.streams.insert(link, Stream::Dialling { dial, channel });
                }
                Output::Send { link, frame } => self.put(link, &frame),
                Output::Disconnect { link } => drop(self.streams.remove(&link)),
                Output::Done { call, result } => {
                    if let Some(answer) = self.answers.remove(&call) {
                        // Nobody may wait any more; then the result is of no use to anybody.
                        let _ = answer.send(result);
                    }
                }
                Output::Event(event) => self.log.lock().expect(POISONED).events.put(event),
            }
        }
        self.log.lock().expect(POISONED).stats = self.session.stats();
    }

    fn put(&mut self, link: Link, frame: &Frame) {
        if let Some(Stream::Open { channel, .. }) = self.streams.get_mut(&link)
            && !channel.put(frame)
        {
            self.lose(link);
        }
    }

    fn lose(&mut self, link: Link) {
        self.streams.remove(&link);
        let now = self.now();
        self.session.handle_disconnected(now, link);
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
                self.session.handle_frame(now, link, frame);
            }
            match polled {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => {
                    any = true;
                    self.session.handle_connected(now, link);
                }
                Poll::Ready(Err(None)) => {
                    any = true;
                    self.lose(link);
                }
                Poll::Ready(Err(Some(trouble))) => {
                    any = true;
                    self.streams.remove(&link);
                    self.session.handle_failed(now, link, trouble);
                }
            }
        }
        any
    }

    /// Fires what is due and waits for what is next. True if the session has something to say.
    fn serve_timers(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(next) = self.session.next_timeout() else { return false };
        let now = self.now();
        if next <= now {
            self.session.handle_timeout(now);
            return true;
        }
        let at = self.start + next.since(Time::ZERO);
        if self.alarm.deadline() != at {
            self.alarm.as_mut().reset(at);
        }
        self.alarm.as_mut().poll(cx).is_ready()
    }

    /// Tells whoever waits in `connect` how it went. True if it failed.
    fn tell_opened(&mut self) -> bool {
        let result = match self.session.reach() {
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
            if task.tell_opened() {
                return Poll::Ready(());
            }
            // Whatever changed may have put something into a buffer: it is written before this sleeps.
            if !again {
                return Poll::Pending;
            }
        }
    }
}

impl Stream {
    /// `Ready(Ok)` once, when the dial has succeeded; `Ready(Err)` when the stream is of no use, with
    /// the trouble if it is not just its end.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        frames: &mut Vec<Frame>,
    ) -> Poll<Result<(), Option<Trouble>>> {
        match self {
            Stream::Dialling { dial, channel } => {
                let dialled = ready!(dial.as_mut().poll(cx));
                let socket = dialled.map_err(|_| None)?;
                socket.set_nodelay(true).map_err(|_| None)?;
                let channel = std::mem::take(channel);
                *self = Stream::Open { socket, channel };
                Poll::Ready(Ok(()))
            }
            Stream::Open { socket, channel } => loop {
                if channel.write(&mut Polled { socket, cx }).is_err() {
                    return Poll::Ready(Err(None));
                }
                let full = channel.wants_to_write();
                let read = poll_read(socket, channel, cx, scratch, frames);
                if let Poll::Ready(trouble) = read {
                    // TLS may have a last word for the node, which is not waited for.
                    let _ = channel.write(&mut Polled { socket, cx });
                    return Poll::Ready(Err(trouble));
                }
                // There may be a handshake's next words, or frames that waited for its end. A socket
                // that was full before wakes the task.
                if full || !channel.wants_to_write() {
                    return Poll::Pending;
                }
            },
        }
    }
}

/// Writing as the channel knows it; the task is woken when a full socket takes more.
struct Polled<'a, 'b, 'c> {
    socket: &'a mut TcpStream,
    cx: &'b mut Context<'c>,
}

impl Write for Polled<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match Pin::new(&mut *self.socket).poll_write_vectored(self.cx, slices) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads all that has come, as far as tokio's budget for one turn goes. `Ready` when the stream has ended, or brings nonsense.
fn poll_read(
    socket: &mut TcpStream,
    channel: &mut Channel,
    cx: &mut Context<'_>,
    scratch: &mut [u8],
    frames: &mut Vec<Frame>,
) -> Poll<Option<Trouble>> {
    loop {
        let mut buffer = ReadBuf::new(scratch);
        if ready!(Pin::new(&mut *socket).poll_read(cx, &mut buffer)).is_err() {
            return Poll::Ready(None);
        }
        if buffer.filled().is_empty() {
            return Poll::Ready(None);
        }
        let received = channel.receive(buffer.filled());
        loop {
            match channel.take() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(trouble) => return Poll::Ready(Some(trouble)),
            }
        }
        if let Err(trouble) = received {
            return Poll::Ready(Some(trouble));
        }
    }
}
