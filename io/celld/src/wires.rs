//! Links, by the numbers that the router gives them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use cells::{Class, LinkId, Message, Path};
use links::{Event, Expect, Limits, Links, LinksError, Options, SendError, Transports};
use tls::{Identity, Role};
use wire::NodeId;

use crate::inbound::{Inbound, Tell};

/// All links of this process.
#[derive(Debug)]
pub(crate) struct Wires {
    links: Links,
    /// Without certificates nobody is expected.
    insecure: bool,
    numbers: BTreeMap<links::LinkId, LinkId>,
    ids: BTreeMap<LinkId, links::LinkId>,
    accepted: u64,
}

/// Something that a link has brought.
#[derive(Debug)]
pub(crate) enum News {
    Up(LinkId, Option<(Path, NodeId)>),
    Down(LinkId),
    Message(LinkId, Message),
}

impl Wires {
    /// Starts the links' thread, which tells what happens.
    pub fn start(
        listen: SocketAddr,
        security: Option<links::Security>,
        tell: Tell,
    ) -> Result<Wires, LinksError> {
        let insecure = security.is_none();
        let options = Options {
            listen: Some(listen),
            security,
            insecure,
            transports: Transports::Both,
            limits: Limits::default(),
        };
        // Nobody listens any more when the process ends.
        let links = Links::start(options, move |event| {
            let _ = tell.blocking_send(Inbound::Links(event));
        })?;
        Ok(Wires {
            links,
            insecure,
            numbers: BTreeMap::new(),
            ids: BTreeMap::new(),
            accepted: LinkId::ACCEPTED.0,
        })
    }

    /// A handle of the links.
    pub fn links(&self) -> &Links {
        &self.links
    }

    pub fn dial(
        &mut self,
        number: LinkId,
        to: Vec<SocketAddr>,
        (cell, patience): (&Path, Duration),
    ) {
        let expect = (!self.insecure).then(|| Expect::Cluster(cell.cluster()));
        let id = self.links.dial_within(to, expect, patience);
        self.add(id, number);
    }

    pub fn close(&mut self, number: LinkId) {
        if let Some(id) = self.ids.remove(&number) {
            self.numbers.remove(&id);
            self.links.close(id);
        }
    }

    /// Sends a message. False: the link takes no more, and is closed.
    pub fn send(&mut self, number: LinkId, class: Class, message: &Message) -> bool {
        let Some(id) = self.ids.get(&number) else { return true };
        match self.links.send(*id, class_of(class), message.encode().into()) {
            // That it is gone is told by itself.
            Ok(()) | Err(SendError::Gone) => true,
            Err(error) => {
                tracing::warn!(link = number.0, "a link is closed: {error}");
                self.close(number);
                false
            }
        }
    }

    /// The router's view of what has happened; `None`: it is no business of the router.
    pub fn take(&mut self, event: Event) -> Option<News> {
        match event {
            Event::Up { link, dialled, peer, address, transport } => {
                let number = match dialled {
                    true => *self.numbers.get(&link)?,
                    false => self.accept(link),
                };
                tracing::debug!(link = number.0, %address, ?transport, "a link is up");
                let Some(peer) = peer else { return Some(News::Up(number, None)) };
                let Some(proven) = proven(&peer) else {
                    tracing::warn!(%address, %peer, "a link is refused: this is no node of a cell");
                    self.close(number);
                    // One that was dialled is waited for.
                    return dialled.then_some(News::Down(number));
                };
                Some(News::Up(number, Some(proven)))
            }
            Event::Message { link, bytes, .. } => {
                let number = *self.numbers.get(&link)?;
                match Message::decode(&bytes) {
                    Ok(message) => Some(News::Message(number, message)),
                    Err(error) => {
                        tracing::warn!(link = number.0, "a link is closed: {error}");
                        self.close(number);
                        Some(News::Down(number))
                    }
                }
            }
            Event::Down { link, reason } => {
                let number = self.numbers.remove(&link)?;
                self.ids.remove(&number);
                tracing::debug!(link = number.0, "a link is down: {reason}");
                Some(News::Down(number))
            }
        }
    }

    fn accept(&mut self, id: links::LinkId) -> LinkId {
        let number = LinkId(self.accepted);
        self.accepted += 1;
        self.add(id, number);
        number
    }

    fn add(&mut self, id: links::LinkId, number: LinkId) {
        self.numbers.insert(id, number);
        self.ids.insert(number, id);
    }
}

fn proven(peer: &Identity) -> Option<(Path, NodeId)> {
    match peer.role {
        Role::Node(node) => Some((Path::of_cluster(&peer.cluster)?, node)),
        _ => None,
    }
}

fn class_of(class: Class) -> links::Class {
    match class {
        Class::Control => links::Class::Control,
        Class::Alarm => links::Class::Alarm,
        Class::Critical => links::Class::Critical,
        Class::Normal => links::Class::Normal,
    }
}
