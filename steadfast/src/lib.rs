//! Replicated services that keep answering.
//!
//! A service is a Rust trait. Its implementation runs as several *replicas* on different *nodes*;
//! its clients call the *group* of replicas by name. When a process or a host fails, the clients'
//! calls go on within milliseconds at another replica, and no acknowledged request is lost or
//! executed twice.
//!
//! ```
//! use steadfast::{CallError, Client, HostOptions, Node, NodeConfig};
//!
//! // 1. The service, for clients and replicas alike.
//! #[steadfast::service]
//! trait Counter {
//!     /// Adds `n` and returns the sum.
//!     fn add(&mut self, n: u64) -> u64;
//! }
//!
//! // 2. The service. Serde says how its state is given to another replica (see `State`).
//! #[derive(Default, serde::Serialize, serde::Deserialize)]
//! struct Tally(u64);
//!
//! impl Counter for Tally {
//!     fn add(&mut self, n: u64) -> u64 {
//!         self.0 = self.0.wrapping_add(n);
//!         self.0
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // 3. A node hosts a replica. This one is a cluster of its own, on free ports of loopback;
//! //    three of them with one configuration each survive the loss of any one.
//! let node = Node::start(NodeConfig::single())?;
//! node.host("counter", HostOptions::default(), || CounterService::new(Tally::default()))?;
//!
//! // 4. A client connects to any node and calls the group. Every call has a deadline.
//! let client = Client::connect([node.client_address().expect("it takes clients")])?;
//! let counter = CounterClient::new(&client, "counter");
//! assert_eq!(counter.add(2)?, 2);
//! assert_eq!(counter.add(3)?, 5);
//!
//! // 5. Errors are typed.
//! let other = CounterClient::new(&client, "no-such-counter");
//! assert_eq!(other.add(1), Err(CallError::NoSuchGroup("no-such-counter".to_owned())));
//! node.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Styles
//!
//! How a group is replicated is said where a replica is hosted, and all its replicas say the same:
//!
//! ```
//! use steadfast::{Client, Hedging, HostOptions, Style};
//!
//! /// Whichever replica a call comes to executes it, at once; a retry may be executed again.
//! fn stateless() -> HostOptions {
//!     HostOptions::default().style(Style::Stateless)
//! }
//!
//! /// Any replica takes calls and answers; a client asks a second one if the first is slow.
//! fn active() -> HostOptions {
//!     HostOptions::default().style(Style::Active)
//! }
//! let patient = Client::builder().hedging(Hedging::OFF);
//! # let _ = (stateless(), active(), patient);
//! ```
//!
//! # Examples
//!
//! Each is one file to copy from: `cargo run -p steadfast --example counter`.
//!
//! | example | shows |
//! | --- | --- |
//! | `counter` | a service, a node and a client |
//! | `state_machine` | a ledger with errors of its own, whose primary ends while a client calls |
//! | `leader_task` | a task that one of three instances does at each tick, also when one dies |
//! | `queue` | a queue on disk, whose nodes all stop and start again |
//! | `stateless` | calls to the less loaded of two nodes, while one ends |
//! | `web` | a service behind an axum web server |
//! | `nested` | a group that calls another |
//! | `attached` | a replica in a process of its own, beside a node |
//!
//! # Where to look
//!
//! | to ... | see |
//! | --- | --- |
//! | write a service | [`service`], [`State`], [`Context`] |
//! | run it in your own program | [`Node`], [`NodeConfig`], [`HostOptions`] |
//! | run it in a process of its own, beside a node | [`attach`], `steadfast run`, [`Node::run`] |
//! | call it | the clients that [`service`] generates, [`Client`], [`AsyncClient`], [`CallError`] |
//! | choose replicas, limit retries, set priorities | [`Client::builder`], [`Policy`], [`Balancing`], [`RetryBudget`] |
//! | call replicas in other languages, know what a group takes | the generated clients find out; `in_json` of those in handlers; [`contract`], `steadfast describe` |
//! | call another group from a handler | [`Context::call`], the `...Nested` that [`service`] generates |
//! | see what a cluster does | [`Node::status`], [`Node::subscribe`], [`events`], [`admin`], `steadfast status` |
//! | move a group's primary | [`Node::move_primary`], `steadfast move` |
//! | save a group's state, and have a group begin with it | [`Node::save`], [`Node::restore`], `steadfast state` |
//! | give a group another style | [`Node::restyle`], `steadfast style` |
//! | find out who can be reached by which name | [`registry`], `steadfast registry` |
//! | measure a cluster | [`mod@bench`], [`admin::Client::bench`], `steadfast bench ring` |
//! | work with bytes instead of types | [`Service`], [`Invocation`], [`Client::call`] |
//!
//! The program `steadfast` (package `steadfast-cli`) runs nodes as daemons, shows a
//! cluster's status, calls methods by hand and has a demonstration: `steadfast demo`.

pub mod contract;
mod encoding;
mod error;
#[cfg(feature = "node")]
mod hosting;
#[cfg(feature = "job")]
pub mod job;
pub mod registry;
mod returned;
#[cfg(feature = "node")]
mod serve;
#[cfg(feature = "node")]
mod state;
mod stub;

#[cfg(feature = "async")]
pub use client::AsyncClient;
pub use client::{
    Answer, Balancing, Builder as ClientBuilder, CallError as BytesCallError, Client, ConnectError,
    DEFAULT_DEADLINE, Hedging, Invocation, MAX_STALE, Policy, Reading, Refresh, RetryBudget, Stats,
    Strategy,
};
#[cfg(feature = "tls")]
pub use client::{Tls, TlsError};
pub use wire::attach::View;
pub use wire::client::Refusal;
pub use wire::ordered::{About, AckLevel, Durability, GroupOptions, Style};
pub use wire::{
    ClientId, GroupId, Incarnation, Member, MethodId, NodeId, Random, RingId, Time, ViewNumber,
};

#[cfg(feature = "node")]
pub use crate::hosting::*;

/// The input of a handler besides its state and its arguments. Handlers need the feature `node`:
/// without it there is no such value, and the type stands in traits that services and clients
/// share.
#[cfg(not(feature = "node"))]
#[derive(Debug)]
pub enum Context {}

/// Events at a client ([`Client::take_events`]) and, with the feature `node`, at a node.
pub mod events {
    pub use client::{Cause, Event as ClientEvent, Trouble};

    #[cfg(feature = "node")]
    pub use crate::hosting::node_events::*;
}

pub use crate::contract::{Contract, ContractError, DESCRIBE, Schema};
pub use crate::error::CallError;
#[cfg(feature = "node")]
pub use crate::state::State;

/// Makes a replicated service of a trait.
///
/// The trait stays as it is. Beside `trait Counter` there will be
///
/// - `CounterService<T>`: serves a `T: Counter + State + Send` as a replica, for [`Node::host`];
///   `CounterService::<T>::contract()` is the service's [`Contract`];
/// - `CounterClient`: calls the group, with the trait's methods, each returning a
///   `Result<_, CallError<_>>`;
/// - `CounterAsyncClient`: the same with async methods;
/// - `CounterNested`: the same for a handler of another group, made of its [`Context`].
///
/// # The methods
///
/// A method takes `&mut self` (or `&self`) and owned arguments that serde can send, and returns
/// something that serde can send. Methods that take `&mut self` are ordered: every replica executes
/// all calls of all clients in one order (but for a stateless group, of which each executes its
/// own).
///
/// - A method that takes `&self` changes nothing. One replica answers it, without ordering, and by
///   default as if it had been ordered: it sees all that was answered before it was called.
///   `client.reading(Reading::Stale(..))` gives a client whose reads may be older, see [`Reading`].
///   A change behind `&self` (a `Cell`, a lock) would happen at one replica only: count calls with
///   `&mut self`, or outside the state.
/// - A first argument `context: &Context` is not sent. It gives the time, random numbers and the
///   caller, the same at every replica. A handler must take them from there, because its outcome
///   may depend on nothing but the state, the arguments and the context.
/// - A method may return `Result<T, E>`. `E` is the service's own error, and the client gets it as
///   [`CallError::Service`].
/// - A method that panics is refused to the caller ([`Refusal::Failed`]); what it has changed up
///   to there stays, at every replica alike.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use steadfast::Context;
///
/// #[derive(Debug, Serialize, Deserialize)]
/// pub enum BookingError {
///     Full,
/// }
///
/// #[steadfast::service]
/// pub trait Booking {
///     /// Books a seat; gives its number.
///     fn book(&mut self, context: &Context, passenger: String) -> Result<u32, BookingError>;
///     /// How many seats are free.
///     fn free(&self) -> u32;
/// }
/// ```
///
/// # Beginning with a file of protobuf
///
/// With the feature `proto`, an empty trait takes its methods from the service of its name in a
/// file. The path begins in the package's folder. Nothing else has to be installed.
///
/// ```
/// #[steadfast::service(proto = "tests/proto/orders.proto", errors = Unsold)]
/// pub trait Orders {}
///
/// #[derive(Debug, serde::Serialize, serde::Deserialize, steadfast::Schema)]
/// pub enum Unsold {
///     Empty,
/// }
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Shop(u64);
///
/// impl Orders for Shop {
///     fn place_order(&mut self, request: PlaceOrderRequest) -> Result<PlaceOrderReply, Unsold> {
///         request.order.ok_or(Unsold::Empty)?;
///         self.0 += 1;
///         Ok(PlaceOrderReply { number: self.0 })
///     }
///     fn list_orders(&self, _: Empty) -> Result<ListOrdersReply, Unsold> {
///         Ok(ListOrdersReply::default())
///     }
/// }
/// ```
///
/// - `option idempotency_level = NO_SIDE_EFFECTS` makes a method with `&self`. With `errors`, each
///   method returns a `Result`; with `context`, each has a [`Context`].
/// - A message becomes a struct. Its fields are in the order of their numbers, and have the types
///   that protobuf's JSON needs: `Option` for messages, `optional` and the fields of a `oneof`,
///   `Vec`, `BTreeMap`, [`contract::Base64`]. A nested `Order.Line` is `OrderLine`.
/// - An enum becomes an enum; a value that it does not have is refused.
/// - Files are proto3. Streams, and types of `google.protobuf` but `Empty`, are refused.
///
/// # The group's views
///
/// With `views`, the trait gets a method more, which the node calls: it tells the nodes of the
/// replicas, among the calls. A replica that was away may have missed views between which there was
/// no call: so the state may depend on the newest view, and not on how many there were
/// (`docs/protocol/group.md`, "Services and views").
///
/// ```
/// use steadfast::View;
///
/// #[steadfast::service(views)]
/// trait Crew {
///     /// The nodes that serve, the primary's first.
///     fn nodes(&self) -> Vec<u32>;
/// }
///
/// #[derive(Default, serde::Serialize, serde::Deserialize)]
/// struct Nodes(Vec<u32>);
///
/// impl Crew for Nodes {
///     fn nodes(&self) -> Vec<u32> {
///         self.0.clone()
///     }
///     fn view(&mut self, view: &View) {
///         self.0 = view.members.iter().map(|node| node.0).collect();
///     }
/// }
/// # let mut service = CrewService::new(Nodes::default());
/// # let members = vec![steadfast::NodeId(3), steadfast::NodeId(1)];
/// # steadfast::Service::view(&mut service, &View { number: 4, members, joining: vec![] });
/// # assert_eq!(steadfast::Service::snapshot(&service).map(|state| state.len() > 2).ok(), Some(true));
/// ```
///
/// # Histories that part
///
/// Without a quorum (`quorum = "off"`) both sides of a partition answer calls, and where they meet again
/// one side's are given up. With `merge`, the trait gets a method that takes the state of that side
/// in, at every replica, in the order of calls. Both states have what was called before the
/// partition, and may have a call whose first answer was lost: so what both have must count once,
/// as in a union (`docs/protocol/group.md`, "Merges").
///
/// ```
/// use std::collections::BTreeMap;
///
/// #[steadfast::service(merge)]
/// trait Visits {
///     /// Counts a visit at this gate, by its ticket's number.
///     fn visit(&mut self, ticket: u64, gate: String);
///     fn count(&self) -> usize;
/// }
///
/// #[derive(Default, serde::Serialize, serde::Deserialize)]
/// struct Gates(BTreeMap<u64, String>);
///
/// impl Visits for Gates {
///     fn visit(&mut self, ticket: u64, gate: String) {
///         self.0.insert(ticket, gate);
///     }
///     fn count(&self) -> usize {
///         self.0.len()
///     }
///     fn merge(&mut self, other: Self) {
///         for (ticket, gate) in other.0 {
///             self.0.entry(ticket).or_insert(gate);
///         }
///     }
/// }
/// # use steadfast::Service;
/// # let gates = |tickets: &[u64]| VisitsService::new(Gates(tickets.iter().map(|it| (*it, "A".into())).collect()));
/// # let mut one = gates(&[1, 2]);
/// # assert!(one.merges());
/// # one.merge(Box::new(gates(&[2, 3]))).unwrap();
/// # let (context, body) = (steadfast::Context::new(Default::default(), 0, steadfast::ClientId(1), 1), b"[]");
/// # let call = steadfast::Call { method: steadfast::MethodId::of("count"), json: true, body };
/// # assert_eq!(one.read(&context, call), steadfast::ServiceOutcome::Ok(b"3"[..].into()));
/// ```
///
/// # Calling another group
///
/// A handler calls another group through its context, exactly once, whichever nodes fail meanwhile.
/// The handler waits, and so do its replica's next requests. It has as much time as its own caller,
/// less the time for the answer's way back. An error is the same at every replica. Groups must not
/// call each other in both directions.
///
/// ```
/// use steadfast::{Client, Context, HostOptions, Node, NodeConfig};
///
/// #[steadfast::service]
/// trait Stock {
///     fn take(&mut self, pieces: u32) -> u32;
/// }
///
/// #[steadfast::service]
/// trait Shop {
///     fn sell(&mut self, context: &Context, pieces: u32) -> Result<u32, String>;
/// }
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Shelf(u32);
///
/// impl Stock for Shelf {
///     fn take(&mut self, pieces: u32) -> u32 {
///         self.0 -= pieces.min(self.0);
///         self.0
///     }
/// }
///
/// #[derive(Default, serde::Serialize, serde::Deserialize)]
/// struct Till;
///
/// impl Shop for Till {
///     fn sell(&mut self, context: &Context, pieces: u32) -> Result<u32, String> {
///         StockNested::new(context, "stock").take(pieces).map_err(|error| error.to_string())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::start(NodeConfig::single())?;
/// node.host("stock", HostOptions::default(), || StockService::new(Shelf(10)))?;
/// node.host("shop", HostOptions::default(), || ShopService::new(Till))?;
/// let client = Client::connect([node.client_address().expect("it takes clients")])?;
/// let shop = ShopClient::new(&client, "shop").within(std::time::Duration::from_secs(10));
/// assert_eq!(shop.sell(3)?, 7);
/// # node.stop()?;
/// # Ok(())
/// # }
/// ```
///
/// # On the wire
///
/// Methods are known by a hash of their name, arguments by their names. So methods can be put in
/// another order, and new ones added, without harm to older clients; a method keeps its arguments
/// for ever (write a new method instead). Two names with one hash are refused when compiling:
///
/// ```compile_fail,E0080
/// #[steadfast::service]
/// trait Railway {
///     fn put_busy_track_until(&mut self, hour: u8);
///     fn name_track_before(&mut self, hour: u8);
/// }
/// ```
///
/// Arguments, results and states have names and types (`docs/changing.md`): a value that would arrive
/// as another one is refused. Programs that were built before speak postcard, and are understood.
/// `steadfast call` uses JSON instead: arguments as an
/// array in order, or as an object by their names. Replicas in other languages may know only JSON:
/// a client finds that out; one in a handler says `in_json()`. In JSON infinities and NaN are the
/// texts `"Infinity"`, `"-Infinity"` and `"NaN"`.
///
/// A replica tells its contract: methods, types, documentation ([`contract`]). Types are told in
/// full if they derive [`Schema`]. `steadfast describe` shows the contract, and
/// [`Contract::breaks`] finds changes that would break callers.
///
/// # In tests
///
/// The implementation is a plain struct; call it as such. `CounterService` can be called without a
/// node through [`Service::call`] with a [`Context`] of the test's own ([`Context::new`]). A
/// cluster in the test's own process takes [`NodeConfig::member`] and [`free_ring_addresses`].
pub use steadfast_macros::{Schema, service};

/// For the code that [`service`] writes. No promises about what is here.
#[doc(hidden)]
pub mod __private {
    pub use serde;

    pub use crate::contract::schema::{by_schema, documented};
    pub use crate::returned::{IsResult, NoResult, Returned, text_of_part};
    #[cfg(feature = "node")]
    pub use crate::serve::{
        answer, answer_fallible, answer_returned, no_such_method, not_read_only, same_service,
    };
    #[cfg(feature = "async")]
    pub use crate::stub::AsyncStub;
    #[cfg(feature = "node")]
    pub use crate::stub::NestedStub;
    pub use crate::stub::Stub;
}
