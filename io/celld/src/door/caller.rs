//! One caller's connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cells::{Call, End, Made, Path};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout};
use wire::client::{
    Bind, Bound, Farewell, Frame, Hello, Outcome, Refusal, Reply, Request, Targets, Watch, Welcome,
};
use wire::limits::{MAX_BODY, MAX_GROUPS, MAX_QUEUED_CALLS};
use wire::versions::CLIENT;
use wire::{ClientId, Duration, Extension, GroupId, ViewNumber};

use super::inside::{GREETING, Inside};
use crate::inbound::Inbound;
use crate::routes::Direct;

/// Frames that wait to be written.
const WAITING: usize = 256;

/// After a refusal for want of room, a caller tries again.
const RETRY_AFTER_US: u32 = 10_000;

/// A caller that was sent to a group's own nodes, and comes back, stays for so long.
const STAYS: std::time::Duration = std::time::Duration::from_secs(60);

/// Serves a caller until it goes. It has this name in its cell, if it has shown one.
pub(super) async fn converse(
    inside: Arc<Inside>,
    name: Option<String>,
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
) -> Result<(), String> {
    let (mut reader, writer) = split(stream);
    let (out, queue) = mpsc::channel(WAITING);
    tokio::spawn(write(writer, queue));
    let mut buffer = BytesMut::new();
    let hello = timeout(GREETING, first(&mut reader, &mut buffer)).await;
    let hello = hello.map_err(|_| "it says nothing")??;
    let Some(common) = CLIENT.common(hello.speaks) else {
        let theirs = hello.speaks;
        let why = format!("you speak version {theirs}, this node {CLIENT}: upgrade the older side");
        let _ = out.send(Frame::Farewell(Farewell::new(&*why)).encode()).await;
        return Err(why);
    };
    let to = match hello.cell() {
        Ok(Some(to)) if to.is_of_system(&inside.cell) => to,
        other => {
            let why = not_a_cell(&inside.cell, other.ok().flatten().as_ref());
            let _ = out.send(Frame::Farewell(Farewell::new(&*why)).encode()).await;
            return Err(why);
        }
    };
    let welcome = Welcome {
        version: common.greatest,
        node: inside.node,
        cluster: to.cluster(),
        extension: Extension::default(),
    };
    let _ = out.send(Frame::Welcome(welcome).encode()).await;
    let caller = Caller {
        client: hello.client,
        name,
        to,
        groups: BTreeMap::new(),
        room: Arc::new(Semaphore::new(MAX_QUEUED_CALLS)),
        out,
        inside,
    };
    caller.serve(reader, buffer).await
}

fn not_a_cell(own: &Path, named: Option<&Path>) -> String {
    match named {
        None => format!(
            "this port is for calls to other cells: connect to a node of {own}, and call groups by \
             full names such as line-a.{own}:boards"
        ),
        Some(other) => format!("{other} is of another system than {own}"),
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Bytes>) {
    while let Some(frame) = queue.recv().await {
        if writer.write_all(&frame).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

async fn first(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> Result<Hello, String> {
    loop {
        match Frame::take(buffer).map_err(|error| error.to_string())? {
            Some(Frame::Hello(hello)) => return Ok(hello),
            Some(_) => return Err("its first words are others".into()),
            None => {}
        }
        match reader.read_buf(buffer).await {
            Ok(0) => return Err("it has gone before it said anything".into()),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// A caller that has said who it is.
struct Caller {
    client: ClientId,
    name: Option<String>,
    /// The cell that it calls.
    to: Path,
    groups: BTreeMap<GroupId, Known>,
    room: Arc<Semaphore>,
    out: mpsc::Sender<Bytes>,
    inside: Arc<Inside>,
}

/// A group that a caller has asked for.
struct Known {
    name: String,
    /// It wants to know when it may go to other nodes than these.
    watches: bool,
    /// When it was sent to the group's own nodes last.
    sent_away: Option<Instant>,
}

impl Caller {
    async fn serve(
        mut self,
        mut reader: impl AsyncRead + Unpin,
        mut buffer: BytesMut,
    ) -> Result<(), String> {
        let mut routes = self.inside.news.routes.clone();
        loop {
            while let Some(frame) = Frame::take(&mut buffer).map_err(|error| error.to_string())? {
                match frame {
                    Frame::Bind(bind) if self.has_room(&bind.name) => self.bind(bind).await,
                    Frame::Watch(Watch { group, .. }) => {
                        self.groups.entry(group).and_modify(|known| known.watches = true);
                        let direct = routes.borrow_and_update().clone();
                        self.tell_routes(&direct).await;
                    }
                    Frame::Request(request) => {
                        if let Some(refused) = self.call(request) {
                            self.say(refused).await;
                        }
                    }
                    _ => return Err("it says what only nodes say, or too much".into()),
                }
            }
            tokio::select! {
                read = reader.read_buf(&mut buffer) => match read {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) => return Err(error.to_string()),
                },
                changed = routes.changed() => {
                    changed.map_err(|_| "this process ends")?;
                    let direct = routes.borrow_and_update().clone();
                    self.tell_routes(&direct).await;
                }
            }
        }
    }

    async fn say(&self, frame: Frame) {
        // A caller that has gone is found out by reading.
        let _ = self.out.send(frame.encode()).await;
    }

    fn has_room(&self, name: &str) -> bool {
        self.groups.len() < MAX_GROUPS || self.groups.contains_key(&GroupId::of(name))
    }

    /// Calls of the group are carried from all doors of this cell. The targets are of no view, so
    /// that any view of the group's own replaces them.
    async fn bind(&mut self, Bind { name }: Bind) {
        let group = GroupId::of(&name);
        let view = ViewNumber::default();
        let targets = Targets { view, ..self.inside.news.doors.borrow().clone() };
        let bound = Inbound::Bound { to: self.to.clone(), group: name.clone() };
        self.groups.entry(group).or_insert(Known { name, watches: false, sent_away: None });
        let _ = self.inside.tell.send(bound).await;
        self.say(Frame::Bound(Bound { group, targets: Some(targets) })).await;
    }

    /// Sends the caller to the own nodes of groups that can be reached. If it comes back, it could
    /// not reach them.
    async fn tell_routes(&mut self, direct: &Direct) {
        let now = Instant::now();
        let mut news = Vec::new();
        for (group, known) in self.groups.iter_mut().filter(|(_, known)| known.watches) {
            let stays = known.sent_away.is_some_and(|at| now.duration_since(at) < STAYS);
            let targets = direct.get(&(self.to.clone(), known.name.clone()));
            if let Some(targets) = targets.filter(|_| !stays) {
                known.sent_away = Some(now);
                news.push(Frame::News(Bound { group: *group, targets: Some(targets.clone()) }));
            }
        }
        for frame in news {
            self.say(frame).await;
        }
    }

    /// Makes a call, whose reply comes by itself. The reply, if it is refused at once.
    fn call(&self, request: Request) -> Option<Frame> {
        let Request { number, group, view, .. } = request;
        let reply =
            move |outcome| Frame::Reply(Reply { number, group, view, targets: None, outcome });
        // It asks for the group before.
        let Some(known) = self.groups.get(&group) else { return Some(reply(Outcome::NotPrimary)) };
        if request.body.len() > MAX_BODY {
            let reason = format!("arguments have at most {MAX_BODY} bytes");
            return Some(reply(Outcome::Refused(Refusal::TooLarge, reason)));
        }
        let Ok(place) = self.room.clone().try_acquire_owned() else {
            return Some(reply(full("too many calls of one caller are under way")));
        };
        let call = Call {
            client: self.client,
            number,
            unanswered: request.unanswered.max(1),
            group: known.name.clone(),
            method: request.method,
            json: request.json,
            reading: request.access.into(),
            priority: request.priority,
            body: request.body,
        };
        let left = Duration::from_micros(request.timeout_us.into());
        let made = Made { to: self.to.clone(), call, left, caller: self.name.clone() };
        let (tell, out) = (self.inside.tell.clone(), self.out.clone());
        tokio::spawn(async move {
            let (done, ended) = oneshot::channel();
            let made = Box::new(made);
            let end = match tell.send(Inbound::Call { made, done }).await {
                Ok(()) => ended.await.unwrap_or(End::Lost),
                Err(_) => End::NoWay,
            };
            let _ = out.send(reply(outcome(end)).encode()).await;
            drop(place);
        });
        None
    }
}

fn full(reason: &str) -> Outcome {
    Outcome::Busy { retry_after_us: RETRY_AFTER_US, reason: reason.into() }
}

/// The end of a call, as its caller is told.
fn outcome(end: End) -> Outcome {
    match end {
        End::Answer(result) => Outcome::Ok(result),
        End::Error(error) => Outcome::Service(error),
        End::Refused(Refusal::Busy, reason) => full(&reason),
        End::Refused(Refusal::Shed, reason) => Outcome::Shed { instead: None, reason },
        End::Refused(refusal, reason) => Outcome::Refused(refusal, reason),
        End::NoSuchGroup => Outcome::NoSuchGroup,
        // None of these was executed: the caller asks again as long as it waits.
        End::NoWay | End::TooFar => Outcome::NoReplica,
        End::Lost => Outcome::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_asks_again_unless_it_has_a_result() {
        let refused = |refusal| End::Refused(refusal, "why".into());
        for (end, is_result) in [
            (End::Answer(Bytes::new()), true),
            (End::Error(Bytes::new()), true),
            (refused(Refusal::NoSuchMethod), true),
            (refused(Refusal::Busy), false),
            (refused(Refusal::Shed), false),
            (End::NoSuchGroup, false),
            (End::NoWay, false),
            (End::Lost, false),
        ] {
            let told = outcome(end.clone());
            assert_eq!(told.is_result(), is_result, "{end:?}");
            let number = 1;
            let (group, view) = (GroupId(1), ViewNumber(1));
            let reply = Frame::Reply(Reply { number, group, view, targets: None, outcome: told });
            let mut bytes = BytesMut::from(&reply.encode()[..]);
            assert_eq!(Frame::take(&mut bytes), Ok(Some(reply)), "{end:?}");
        }
    }
}
