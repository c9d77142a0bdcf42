//! Nothing of its own: `build/` makes random types, `tests/arrive.rs` sends values of them.
//!
//! `STEADFAST_TYPES=2000 cargo test -p steadfast-types` makes so many (60 without it);
//! `STEADFAST_SEED` draws others.
