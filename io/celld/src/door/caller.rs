//! One caller's connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cells::{Call, End};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use wire::client::{Bound, Farewell, Frame, Hello, Outcome, Refusal, Reply, Request, Welcome};
use wire::limits::{MAX_BODY, MAX_GROUPS, MAX_QUEUED_CALLS};
use wire::versions::CLIENT;
use wire::{ClientId, Duration, Extension, GroupId, ViewNumber};

use super::inside::{GREETING, Inside};
use crate::inbound::Inbound;

/// Frames that wait to be written.
const WAITING: usize = 256;

/// After a refusal for want of room, a caller tries again.
const RETRY_AFTER_US: u32 = 10_000;

/// Serves a caller until it goes.
pub(super) async fn converse(
    inside: Arc<Inside>,
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
    let welcome = Welcome {
        version: common.greatest,
        node: inside.node,
        cluster: inside.cell.cluster(),
        extension: Extension::default(),
    };
    let _ = out.send(Frame::Welcome(welcome).encode()).await;
    let caller = Caller {
        client: hello.client,
        watched: BTreeMap::new(),
        room: Arc::new(Semaphore::new(MAX_QUEUED_CALLS)),
        out,
        inside,
    };
    caller.serve(reader, buffer).await
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
    /// Groups of whose newer views it wants to know.
    watched: BTreeMap<GroupId, ViewNumber>,
    room: Arc<Semaphore>,
    out: mpsc::Sender<Bytes>,
    inside: Arc<Inside>,
}

impl Caller {
    async fn serve(
        mut self,
        mut reader: impl AsyncRead + Unpin,
        mut buffer: BytesMut,
    ) -> Result<(), String> {
        let mut doors = self.inside.doors.clone();
        loop {
            while let Some(frame) = Frame::take(&mut buffer).map_err(|error| error.to_string())? {
                let answer = match frame {
                    Frame::Bind(bind) => {
                        let group = self.inside.bind(&bind.name);
                        let targets = group.map(|_| doors.borrow().clone());
                        Frame::Bound(Bound { group: GroupId::of(&bind.name), targets })
                    }
                    Frame::Watch(watch) if self.watched.len() < MAX_GROUPS => {
                        self.watched.insert(watch.group, watch.view);
                        let now = doors.borrow().clone();
                        self.tell_news(&now).await;
                        continue;
                    }
                    Frame::Request(request) => match self.call(request) {
                        Some(refused) => refused,
                        None => continue,
                    },
                    _ => return Err("it says what only nodes say, or too much".into()),
                };
                self.say(answer).await;
            }
            tokio::select! {
                read = reader.read_buf(&mut buffer) => match read {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) => return Err(error.to_string()),
                },
                changed = doors.changed() => {
                    changed.map_err(|_| "this process ends")?;
                    let doors = doors.borrow_and_update().clone();
                    self.tell_news(&doors).await;
                }
            }
        }
    }

    async fn say(&self, frame: Frame) {
        // A caller that has gone is found out by reading.
        let _ = self.out.send(frame.encode()).await;
    }

    async fn tell_news(&mut self, doors: &wire::client::Targets) {
        let older: Vec<GroupId> = self
            .watched
            .iter()
            .filter(|(_, view)| **view < doors.view)
            .map(|(id, _)| *id)
            .collect();
        for group in older {
            self.watched.insert(group, doors.view);
            self.say(Frame::News(Bound { group, targets: Some(doors.clone()) })).await;
        }
    }

    /// Makes a call, whose reply comes by itself. The reply, if it is refused at once.
    fn call(&self, request: Request) -> Option<Frame> {
        let Request { number, group, view, .. } = request;
        let reply =
            move |outcome| Frame::Reply(Reply { number, group, view, targets: None, outcome });
        // Another carrier knows the name, or the caller asks for it here.
        let Some((to, name)) = self.inside.name(group) else {
            return Some(reply(Outcome::NotPrimary));
        };
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
            group: name,
            method: request.method,
            json: request.json,
            reading: request.access.into(),
            priority: request.priority,
            body: request.body,
        };
        let left = Duration::from_micros(request.timeout_us.into());
        let (tell, out) = (self.inside.tell.clone(), self.out.clone());
        tokio::spawn(async move {
            let (done, ended) = oneshot::channel();
            let call = Box::new(call);
            let end = match tell.send(Inbound::Call { to, call, left, done }).await {
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
