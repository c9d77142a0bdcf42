//! Nanoseconds to seal and to open a datagram, by size: `cargo bench -p steadfast-seal`.
#![allow(missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use steadfast_seal::{ClusterKey, Config, Envelope, HEADER, Keys, OVERHEAD, Seal};
use wire::{ClusterId, Incarnation, Member, NodeId, Secret, Time};

/// Datagrams in a row, as in a batch of the data plane.
const BATCH: usize = 64;
/// Batches of one figure; the fastest half is averaged, which leaves out what others do here.
const BATCHES: usize = 400;

fn main() {
    println!("ns a datagram     seal  in place     open  open into  duplicate    forged  invented");
    for size in [64, 1_400, 8_900] {
        let (mut a, mut b) = acquainted();
        let text = vec![0x5a; size];
        let mut out = Vec::with_capacity(BATCH * (size + OVERHEAD));
        let seal = average(&mut out, |out| {
            out.clear();
            (0..BATCH).for_each(|_| a.seal(Envelope::ALL, &text, out).unwrap());
        });
        let in_place = average(&mut out, |out| {
            for datagram in out.chunks_mut(size + OVERHEAD) {
                a.seal_in_place(Envelope::ALL, datagram).unwrap();
            }
        });
        let mut batches = sealed_batches(&mut a, &text);
        let open = average_over(&mut batches, |batch| {
            for datagram in batch.chunks_mut(size + OVERHEAD) {
                b.open(Time(1), black_box(datagram)).unwrap();
            }
        });
        let mut batches = sealed_batches(&mut a, &text);
        let mut room = vec![0; size];
        let open_into = average_over(&mut batches, |batch| {
            for datagram in batch.chunks(size + OVERHEAD) {
                b.open_into(Time(1), black_box(datagram), &mut room).unwrap();
            }
        });
        let mut last = batches.split_off(BATCHES - 1);
        let mut refuse = |datagrams: &mut Vec<u8>| {
            average(datagrams, |datagrams| {
                for datagram in datagrams.chunks_mut(size + OVERHEAD) {
                    b.open(Time(1), black_box(datagram)).unwrap_err();
                }
            })
        };
        let duplicate = refuse(&mut last[0]);
        // Counters that have not come, and lives that nobody has.
        last[0].chunks_mut(size + OVERHEAD).for_each(|datagram| datagram[34] = 1);
        let forged = refuse(&mut last[0]);
        last[0].chunks_mut(size + OVERHEAD).for_each(|datagram| datagram[19] = 0xff);
        let invented = refuse(&mut last[0]);
        println!(
            "{size:6} bytes {seal:9.0} {in_place:9.0} {open:8.0} {open_into:10.0} {duplicate:10.1} \
             {forged:9.0} {invented:9.0}"
        );
    }
    println!("(the envelope's {HEADER} bytes and the tag included)");
}

fn sealed_batches(a: &mut Seal, text: &[u8]) -> Vec<Vec<u8>> {
    let batch = |_| {
        let mut out = Vec::with_capacity(BATCH * (text.len() + OVERHEAD));
        (0..BATCH).for_each(|_| a.seal(Envelope::ALL, text, &mut out).unwrap());
        out
    };
    (0..BATCHES).map(batch).collect()
}

fn average<T>(with: &mut T, mut batch: impl FnMut(&mut T)) -> f64 {
    fastest((0..BATCHES).map(|_| timed(|| batch(with))).collect())
}

fn average_over(batches: &mut [Vec<u8>], mut batch: impl FnMut(&mut [u8])) -> f64 {
    fastest(batches.iter_mut().map(|bytes| timed(|| batch(bytes))).collect())
}

fn timed(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64
}

fn fastest(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let half = &times[..times.len() / 2];
    half.iter().sum::<f64>() / half.len() as f64 / BATCH as f64
}

fn acquainted() -> (Seal, Seal) {
    let node = |node| {
        Seal::new(Config {
            cluster: ClusterId::of("bench"),
            me: Member { node: NodeId(node), incarnation: Incarnation(1) },
            nodes: vec![NodeId(1), NodeId(2)],
            keys: Keys::single(ClusterKey::new(1, Secret::new([7; 32]))),
            seed: Secret::new([node as u8; 32]),
        })
    };
    let (mut a, mut b) = (node(1), node(2));
    a.greet(Time(1), NodeId(2));
    for _ in 0..3 {
        while let Some(mut contact) = a.poll_contact() {
            b.open(Time(1), &mut contact.bytes).unwrap();
        }
        while let Some(mut contact) = b.poll_contact() {
            a.open(Time(1), &mut contact.bytes).unwrap();
        }
    }
    assert!(a.is_in_touch(NodeId(2)) && b.is_in_touch(NodeId(1)));
    (a, b)
}
