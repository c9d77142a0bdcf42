//! Every message of the wire: it comes back as it went, a change of its layout is noticed, and
//! bytes that are not a message do no harm.

// The name by which every other crate knows it.
extern crate steadfast_wire as wire;

mod golden;
mod limits;
mod malformed;
mod round_trip;
mod samples;
mod strategies;
