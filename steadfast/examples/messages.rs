//! Each kind of message between ranks, with what comes of it.
//!
//! ```sh
//! cargo build --release -p steadfast --features job --example messages
//! steadfast job run -n 5 -- target/release/examples/messages 1000
//! ```
//!
//! The argument is how often.

use std::env;

use steadfast::job::{self, ANY, Rank, State};

#[derive(State)]
struct Sums {
    sum: u64,
}

fn main() -> Result<(), job::Error> {
    let turns = env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000);
    job::run(
        |_| Sums { sum: 0 },
        |rank, state| {
            rank.turns(state, 0..turns, |rank, state, turn| {
                two(rank, turn)?;
                all(rank, turn)?;
                parts(rank)?;
                // The order in which others come is recorded.
                state.sum = state.sum.wrapping_mul(3).wrapping_add(any(rank, turn)?);
                Ok(())
            })?;
            let mut sum = [state.sum];
            rank.broadcast(&mut sum, 0)?;
            rank.result("sum", &sum)
        },
    )
}

/// Between two ranks, around a ring.
fn two(rank: &mut Rank, turn: u64) -> Result<(), job::Error> {
    let (number, count) = (rank.number(), rank.count());
    let (next, last) = ((number + 1) % count, (number + count - 1) % count);
    let came = rank.exchange(next, last, 0, &[u64::from(number), turn])?;
    assert_eq!(came, [u64::from(last), turn]);
    rank.send(next, 7, &[0.5_f32; 3])?;
    let mut three = [0.0_f32; 3];
    let status = rank.receive_into(last, ANY, &mut three)?;
    assert_eq!((three, status.source, status.tag), ([0.5; 3], last, 7));
    Ok(())
}

/// From whoever comes first, to rank 0. The others may be in the next turn by then: their messages
/// between two ranks have other tags.
fn any(rank: &mut Rank, turn: u64) -> Result<u64, job::Error> {
    let tag = 1_000 + turn as u32 % 1_000;
    if rank.number() > 0 {
        rank.send(0, tag, &[turn])?;
        return Ok(0);
    }
    let mut order = 0;
    for _ in 1..rank.count() {
        let (came, status) = rank.receive::<u64>(ANY, tag)?;
        assert_eq!(came, [turn]);
        order = order * u64::from(rank.count()) + u64::from(status.source);
    }
    rank.record(order)
}

/// Values of all ranks, joined or put together.
fn all(rank: &mut Rank, turn: u64) -> Result<(), job::Error> {
    let (number, count) = (u64::from(rank.number()), u64::from(rank.count()));
    let root = (turn % count) as u32;
    let mut values = [number, number + 1];
    rank.all_reduce(&mut values, |a, b| a + b)?;
    assert_eq!(values, [count * (count - 1) / 2, count * (count + 1) / 2]);
    let mut most = [number as f64];
    rank.reduce(&mut most, f64::max, root)?;
    assert_eq!(most, [if rank.number() == root { count - 1 } else { number } as f64]);
    let mut said = [if rank.number() == root { turn } else { 0 }];
    rank.broadcast(&mut said, root)?;
    assert_eq!(said, [turn]);
    rank.barrier()
}

/// Parts of other lengths at each rank.
fn parts(rank: &mut Rank) -> Result<(), job::Error> {
    let (number, count) = (rank.number(), rank.count());
    let part = |number: u32| vec![number; number as usize];
    let parts: Vec<Vec<u32>> = (0..count).map(part).collect();
    let root = count / 2;
    let gathered = rank.gather(&part(number), root)?;
    assert_eq!(gathered, (number == root).then(|| parts.clone()));
    assert_eq!(rank.all_gather(&part(number))?, parts);
    let given = (number == root).then_some(&parts[..]);
    assert_eq!(rank.scatter(given, root)?, part(number));
    assert_eq!(rank.all_to_all(&parts)?, vec![part(number); count as usize]);
    Ok(())
}
