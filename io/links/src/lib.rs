//! Links between processes: messages in four classes, over QUIC, or over TCP with TLS.
//!
//! A link joins two processes. It carries messages in four [classes](Class), each in order. Each
//! class is a connection of its own, with its own windows: a class that is full never delays
//! another one. A link is up when all four are there, and down when one of them ends.
//!
//! ```text
//!  other threads        the links' thread
//!  Links --commands--> plane --+-- visitors   others' connections, until they are links (pure)
//!    ^                    |    +-- race       which way a dialled link takes (pure)
//!    |                    |    +-- greeting, framing, flow                   (pure)
//!  tell <----events-------+    +-- carriers --+-- quic  quinn-proto over datagrams
//!                                             +-- tcp   TLS or bare
//! ```
//!
//! Nothing here knows what the messages mean. `docs/decisions` says why there are two transports.
#![forbid(unsafe_code)]

mod carriers;
mod class;
mod counters;
mod datagrams;
mod error;
mod event;
mod flow;
mod framing;
mod greeting;
mod links;
mod news;
mod options;
mod plane;
mod poller;
mod quic;
mod race;
mod refusal;
mod security;
mod shared;
mod tcp;
mod visitors;

pub use class::{Class, LinkId, Transport};
pub use counters::Counters;
pub use error::{LinksError, SendError};
pub use event::{Down, Event};
pub use links::Links;
pub use options::{Limits, Options, Transports};
pub use refusal::{Malformed, Refusal};
pub use security::{Expect, Security};
pub use wire::limits::MAX_LINK_MESSAGE as MAX_MESSAGE;
