//! Every target over its corpus, over mutations of it, and over inputs from a fixed seed.
#![allow(missing_docs)]

use std::fs;
use std::path::Path;

use steadfast_fuzz::{ALL, Target};
use wire::Random;

/// Inputs of each kind, in each of `FUZZ_ROUNDS` (an environment variable; 1 if there is none).
const MUTATED: u64 = 2_000;
const DRAWN: u64 = 1_000;

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let files =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("it can be listed").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("it can be read")).collect()
}

fn drawn(random: &mut Random, length: u64) -> Vec<u8> {
    (0..random.below(length)).map(|_| random.next_u64() as u8).collect()
}

fn mutated(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let any = |random: &mut Random| corpus[random.below(corpus.len() as u64) as usize].clone();
    let mut bytes = any(random);
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => {
                let tail = any(random);
                bytes.truncate(at);
                bytes.extend_from_slice(&tail[at.min(tail.len())..]);
            }
            2 => bytes.insert(at, random.next_u64() as u8),
            3 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ if at < bytes.len() => bytes[at] = random.next_u64() as u8,
            _ => bytes.extend(drawn(random, 9)),
        }
    }
    bytes
}

fn check(name: &str) {
    let target = steadfast_fuzz::named(name).expect("listed");
    let corpus = corpus(&target);
    assert!(!corpus.is_empty(), "{name} has no corpus");
    corpus.iter().for_each(|bytes| (target.run)(bytes));
    let rounds: u64 =
        std::env::var("FUZZ_ROUNDS").map_or(1, |text| text.parse().expect("a number"));
    let mut random = Random::new(0x5eed);
    for _ in 0..rounds * MUTATED {
        (target.run)(&mutated(&mut random, &corpus));
    }
    for _ in 0..rounds * DRAWN {
        (target.run)(&drawn(&mut random, 400));
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn no_target_is_left_out() {
            let tested = [$(stringify!($name)),*];
            assert!(ALL.iter().map(|target| target.name).eq(tested));
        }
    };
}

targets!(
    datagram ordered frame attach rank agents config admin contract named sealed ring schedule stack session
    store registry
);
