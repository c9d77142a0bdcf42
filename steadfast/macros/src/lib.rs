//! The attribute behind `#[steadfast::service]`. Depend on `steadfast`, which documents and
//! re-exports it; the code that it writes names types of that crate.
//!
//! `model.rs` reads a trait and refuses what cannot be a service; `expand.rs` writes the adapter,
//! the clients and the contract. `options.rs` reads the attribute's arguments; `proto.rs` takes the
//! methods from the file of protobuf that they name, and `given.rs` has the rest of it. `schema.rs` is behind `#[derive(Schema)]` of
//! what methods take and return, `fields.rs` behind `#[derive(State)]` of ranks.

mod expand;
mod fields;
mod given;
mod model;
mod options;
#[cfg(feature = "proto")]
mod proto;
mod schema;

use proc_macro::TokenStream;

/// Makes a replicated service of a trait: see the documentation of the crate `steadfast`.
#[proc_macro_attribute]
pub fn service(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::service(arguments.into(), item.into()).into()
}

/// Makes a struct the state of a rank: see the documentation of `steadfast::job`.
#[proc_macro_derive(State)]
pub fn state(item: TokenStream) -> TokenStream {
    fields::state(item.into()).into()
}

/// Has contracts define a type: see the documentation of the trait `steadfast::Schema`.
#[proc_macro_derive(Schema)]
pub fn schema(item: TokenStream) -> TokenStream {
    schema::schema(item.into()).into()
}
