//! A group of another cell is found, by its full name.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cells::{Command, Name};
use harness::cluster::wall;
use harness::system::{ECHO, System};
use harness::{Outcome, Run, bail};
use serde_json::json;
use wire::Time;

use super::options::{LEAF, Options, targets};
use super::telling::{ms, tell};

/// Looks at a book in memory, of which one is too short to be measured.
const LOOKS: u32 = 1_000;

pub(super) fn measure(options: &Options, run: &Run, system: &System) -> Outcome<()> {
    let leaf = system.site(LEAF)?;
    for (hops, site) in targets(system).into_iter().filter(|(hops, _)| *hops > 0) {
        let path = system.path(site);
        let name: Name = format!("{path}:{ECHO}").parse().map_err(|error| format!("{error:?}"))?;
        let (mut cold, mut warm, mut looks) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.times {
            let (found, asked, looked) = find(system, (leaf, 1), &name)?;
            cold.push(ms(found));
            warm.push(ms(asked));
            looks.push(ms(looked));
        }
        let of = |how: &str| json!({ "to": path, "hops": hops, "how": how });
        let tell = |how: &str, what: &str, times| {
            tell(run, "cells-find", &format!("{name} over {hops} links: {what}"), of(how), times);
        };
        tell("cold", "until the book has it", cold);
        tell("warm", "a node is asked, known", warm);
        tell("book", "in a copy of the book", looks);
    }
    Ok(())
}

/// Until the book has an answer that is younger than the question, then once more, and in the copy.
fn find(
    system: &System,
    node: (usize, usize),
    name: &Name,
) -> Outcome<(Duration, Duration, Duration)> {
    let mut admin = system.admin(node)?;
    let want = |bears| Command::Want { name: name.clone(), bears };
    let (began, start) = (Time(wall()), Instant::now());
    admin.tell_cell(&want(wire::Duration::ZERO))?.map_err(|refusal| refusal.to_string())?;
    let is_young = |book: &cells::Cell| {
        let now = Time(wall());
        book.known_well(now, name, now.since(began)).is_some_and(|(found, _)| found.is_some())
    };
    let mut book = None;
    system.until(node, "the name is found", |sight| is_young(&sight.book))?;
    let found = start.elapsed();
    let sight = system.sight_of(node)?;
    book.get_or_insert(sight.book);
    let start = Instant::now();
    let minute = wire::Duration::from_secs(60);
    let said = admin.tell_cell(&want(minute))?.map_err(|refusal| refusal.to_string())?;
    let asked = start.elapsed();
    let cells::Verdict::Known { found: Some(_), .. } = said else {
        bail!("{name} was found, and is not known: {said:?}");
    };
    let (book, now, start) = (book.ok_or("no book")?, Time(wall()), Instant::now());
    for _ in 0..LOOKS {
        black_box(black_box(&book).known_well(now, name, minute));
    }
    Ok((found, asked, start.elapsed() / LOOKS))
}
