//! The other side of `tests/bench.py`: calls by the client in Rust. For each line with a number on
//! standard input it makes so many calls, and prints how many nanoseconds each of them took.

use std::error::Error;
use std::io::stdin;
use std::time::{Duration, Instant};

use client::{Client, Invocation};

fn main() -> Result<(), Box<dyn Error>> {
    let addresses: Vec<String> = std::env::args().skip(1).collect();
    let client = Client::connect(&addresses)?;
    for line in stdin().lines() {
        let mut took = Vec::new();
        for _ in 0..line?.trim().parse::<usize>()? {
            let begun = Instant::now();
            let add = Invocation::new("counter", "add").json().body("[1]");
            client.call(add.within(Duration::from_secs(20)))?;
            took.push(begun.elapsed().as_nanos().to_string());
        }
        println!("{}", took.join(" "));
    }
    Ok(())
}
