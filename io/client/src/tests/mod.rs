//! The machine against a scripted cluster in virtual time: one test for each rule of
//! `docs/protocol/client.md`.

mod cluster;
mod finding;
mod following;
mod hedging;
mod hostile;
mod keyed;
mod limits;
mod moving;
mod multicast;
mod policies;
mod shed;
