//! The promises of a cell's book, a test for each claim of `docs/protocol/cells.md`.

use std::time::Duration;

use steadfast_cells::{
    Attached, Attachment, Carrier, Cell, Command, Count, Epoch, Name, Path, Place, Record, Refusal,
    Verdict, limits,
};
use wire::client::Targets;
use wire::{Incarnation, Member, NodeId, Time};

const LEASE: Duration = limits::LEASE;

fn path(text: &str) -> Path {
    text.parse().expect(text)
}

fn at(ms: u64) -> Time {
    Time(1_000_000_000 + ms * 1_000_000)
}

fn cell(of: &str) -> Cell {
    let mut cell = Cell::new(path(of));
    cell.apply(at(0), Command::Tick).expect("nothing is refused");
    cell
}

fn wanted(of: &str, epoch: Epoch, founded: u64) -> Command {
    let place = Place { path: path(of), at: vec!["10.1.0.1:7102".parse().expect("an address")] };
    Command::Attach(Attachment { place, epoch, founded, nodes: 3 })
}

fn attach(cell: &mut Cell, ms: u64, of: &str, epoch: Epoch) -> Attached {
    match cell.apply(at(ms), wanted(of, epoch, 7)) {
        Ok(Verdict::Attached(attached)) => attached,
        other => panic!("it is not attached: {other:?}"),
    }
}

fn report(
    cell: &mut Cell,
    ms: u64,
    of: &str,
    epoch: Epoch,
    upto: u64,
    names: &[(&str, u32)],
) -> Verdict {
    let count = |(group, count): &(&str, u32)| Count { group: (*group).into(), count: *count };
    let counts = names.iter().map(count).collect();
    let command = Command::Report { path: path(of), epoch, upto, counts };
    cell.apply(at(ms), command).expect("a short list")
}

fn renew(cell: &mut Cell, ms: u64, of: &str, epoch: Epoch) -> Verdict {
    cell.apply(at(ms), Command::Renew(vec![(path(of), epoch)])).expect("one cell")
}

fn names(cell: &Cell) -> u32 {
    cell.picture().names
}

#[test]
fn a_cell_attaches_to_one_that_its_path_ends_with() {
    let mut porto = cell("porto");
    for below in ["a.porto", "x.b.porto"] {
        assert_eq!(attach(&mut porto, 1, below, Epoch(0)).above[0].path, path("porto"));
    }
    for other in ["porto", "a.lisboa", "lisboa"] {
        let refused = porto.apply(at(2), wanted(other, Epoch(0), 7));
        assert_eq!(refused, Err(Refusal::NotBelow(path(other), path("porto"))));
    }
}

#[test]
fn an_attachment_ends_with_its_lease_and_its_exports_with_it() {
    let mut porto = cell("porto");
    let Attached { epoch, .. } = attach(&mut porto, 0, "a.porto", Epoch(0));
    assert_eq!(report(&mut porto, 1, "a.porto", epoch, 2, &[("boards", 1)]), Verdict::Reported(2));
    assert_eq!(porto.exporters("boards"), [&path("a.porto")]);
    let end = LEASE.as_millis() as u64;
    porto.apply(at(end - 1), Command::Tick).expect("nothing is refused");
    assert_eq!(porto.child(&path("a.porto")), Some(epoch));
    porto.apply(at(end), Command::Tick).expect("nothing is refused");
    assert_eq!((porto.child(&path("a.porto")), names(&porto)), (None, 0));
    let shunned = Verdict::Renewed { shunned: vec![path("a.porto")] };
    assert_eq!(renew(&mut porto, end + 1, "a.porto", epoch), shunned);
    assert_eq!(report(&mut porto, end + 1, "a.porto", epoch, 3, &[]), Verdict::Shunned);
    assert!(attach(&mut porto, end + 2, "a.porto", epoch).epoch > epoch);
}

#[test]
fn an_older_attachment_is_shunned_and_renews_nothing() {
    let mut porto = cell("porto");
    let first = attach(&mut porto, 0, "a.porto", Epoch(0));
    let second = attach(&mut porto, 1_000, "a.porto", Epoch(0));
    assert!(second.epoch > first.epoch);
    let shunned = Verdict::Renewed { shunned: vec![path("a.porto")] };
    let end = 1_000 + LEASE.as_millis() as u64;
    assert_eq!(renew(&mut porto, end - 100, "a.porto", first.epoch), shunned);
    porto.apply(at(end), Command::Tick).expect("nothing is refused");
    assert_eq!(porto.child(&path("a.porto")), None, "its lease was not renewed");
}

#[test]
fn the_same_attachment_is_asked_for_again_without_harm() {
    let mut porto = cell("porto");
    let first = attach(&mut porto, 0, "a.porto", Epoch(0));
    report(&mut porto, 1, "a.porto", first.epoch, 4, &[("boards", 1)]);
    let again = attach(&mut porto, 2_000, "a.porto", first.epoch);
    assert_eq!((again.epoch, again.seen), (first.epoch, 4));
    assert_eq!(names(&porto), 1);
}

#[test]
fn a_cell_that_has_lost_everything_takes_its_path_from_the_former_one() {
    let mut porto = cell("porto");
    let former = attach(&mut porto, 0, "a.porto", Epoch(0));
    let later = porto.apply(at(1), wanted("a.porto", former.epoch, 8));
    assert!(matches!(later, Ok(Verdict::Attached(it)) if it.epoch > former.epoch));
    let refused = porto.apply(at(2), wanted("a.porto", former.epoch, 7));
    assert_eq!(refused, Err(Refusal::Later(path("a.porto"))));
}

#[test]
fn reports_that_come_late_or_twice_change_nothing() {
    let mut porto = cell("porto");
    let Attached { epoch, .. } = attach(&mut porto, 0, "a.porto", Epoch(0));
    report(&mut porto, 1, "a.porto", epoch, 5, &[("boards", 0), ("alarms", 2)]);
    assert_eq!(report(&mut porto, 2, "a.porto", epoch, 3, &[("boards", 1)]), Verdict::Reported(5));
    assert!(porto.exporters("boards").is_empty());
    assert_eq!(names(&porto), 1);
}

#[test]
fn a_lease_that_has_ended_is_not_renewed() {
    let mut porto = cell("porto");
    let Attached { epoch, .. } = attach(&mut porto, 0, "a.porto", Epoch(0));
    let end = LEASE.as_millis() as u64;
    assert_eq!(renew(&mut porto, end - 1, "a.porto", epoch), Verdict::Renewed { shunned: vec![] });
    let shunned = Verdict::Renewed { shunned: vec![path("a.porto")] };
    assert_eq!(renew(&mut porto, 2 * end, "a.porto", epoch), shunned);
}

#[test]
fn a_report_of_an_older_attachment_counts_no_more() {
    let mut porto = cell("porto");
    let former = attach(&mut porto, 0, "a.porto", Epoch(0));
    let present = attach(&mut porto, 1, "a.porto", Epoch(0));
    let told = [("boards", 1)];
    assert_eq!(report(&mut porto, 2, "a.porto", former.epoch, 2, &told), Verdict::Shunned);
    assert_eq!(names(&porto), 0);
    assert_eq!(report(&mut porto, 3, "a.porto", present.epoch, 1, &told), Verdict::Reported(1));
}

#[test]
fn what_is_told_above_is_what_has_changed_since() {
    let mut line = cell("a.porto");
    line.apply(at(1), Command::Export("boards".into())).expect("one export");
    let above = vec![Place { path: path("porto"), at: Vec::new() }];
    let rise = |seen| Command::Rise { epoch: Epoch(9), seen, above: above.clone() };
    line.apply(at(2), rise(0)).expect("its parent");
    let first = line.report().expect("an export is news");
    assert_eq!(first.counts, [Count { group: "boards".into(), count: 1 }]);
    line.apply(at(3), rise(first.upto)).expect("its parent");
    assert_eq!(line.report(), None);
    line.apply(at(4), Command::Unexport("boards".into())).expect("it was there");
    let second = line.report().expect("its end is news");
    assert_eq!(second.counts, [Count { group: "boards".into(), count: 0 }]);
    line.apply(at(5), rise(second.upto)).expect("its parent");
    assert_eq!((line.report(), names(&line)), (None, 0));
    // Another attachment knows nothing yet.
    line.apply(at(6), Command::Export("alarms".into())).expect("one export");
    let other = Command::Rise { epoch: Epoch(10), seen: 0, above: above.clone() };
    line.apply(at(7), other).expect("its parent");
    assert_eq!(line.report().expect("all is news").counts.len(), 1);
}

#[test]
fn an_answer_is_as_old_as_it_says_and_a_newer_one_stays() {
    let mut line = cell("a.porto");
    let name: Name = "porto:boards".parse().expect("a name");
    let bears = Duration::from_secs(1);
    let want = Command::Want { name: name.clone(), bears };
    assert_eq!(line.apply(at(0), want.clone()), Ok(Verdict::Wanted));
    assert_eq!(line.wanted().count(), 1);
    let found = |view: u64| {
        let targets = Targets { view: wire::ViewNumber(view), ..Targets::default() };
        Some(Record { cell: path("porto"), targets })
    };
    let learn = |view, as_of| Command::Learn { name: name.clone(), found: found(view), as_of };
    line.apply(at(30), learn(2, at(10))).expect("it was wanted");
    line.apply(at(40), learn(1, at(5))).expect("it was wanted");
    let known = Verdict::Known { found: found(2), age: Duration::from_millis(90) };
    assert_eq!(line.apply(at(100), want.clone()), Ok(known));
    assert_eq!(line.wanted().count(), 0);
    assert_eq!(line.apply(at(1_011), want), Ok(Verdict::Wanted), "it is too old by then");
}

#[test]
fn a_name_that_is_nowhere_is_looked_for_again_soon() {
    let mut line = cell("a.porto");
    let name: Name = "nothing".parse().expect("a name");
    let want = Command::Want { name: name.clone(), bears: Duration::from_secs(60) };
    line.apply(at(0), want.clone()).expect("room");
    line.apply(at(1), Command::Learn { name, found: None, as_of: at(0) }).expect("wanted");
    assert!(matches!(line.apply(at(50), want.clone()), Ok(Verdict::Known { found: None, .. })));
    assert_eq!(line.apply(at(101), want), Ok(Verdict::Wanted));
}

#[test]
fn a_promoted_cell_is_a_root() {
    let mut line = cell("a.porto");
    let above = vec![Place { path: path("porto"), at: Vec::new() }];
    line.apply(at(1), Command::Rise { epoch: Epoch(9), seen: 0, above: above.clone() })
        .expect("ok");
    line.apply(at(2), Command::Promote).expect("it is below one");
    assert!(line.is_root() && line.above().is_empty());
    let rise = Command::Rise { epoch: Epoch(10), seen: 0, above };
    assert_eq!(line.apply(at(3), rise), Err(Refusal::Root(path("a.porto"))));
    assert_eq!(cell("porto").apply(at(1), Command::Promote), Err(Refusal::Root(path("porto"))));
}

#[test]
fn a_newer_life_of_a_carrier_replaces_the_older_one() {
    let mut porto = cell("porto");
    let address = "10.0.0.1:7102".parse().expect("an address");
    let carrier = |life| Carrier {
        member: Member { node: NodeId(1), incarnation: Incarnation(life) },
        links: address,
        calls: address,
    };
    porto.apply(at(1), Command::Carry(carrier(5))).expect("room");
    porto.apply(at(2), Command::Carry(carrier(4))).expect("room");
    assert_eq!(porto.carrier(NodeId(1)), Some(&carrier(5)));
    porto.apply(at(3), Command::Gone(vec![carrier(4).member])).expect("one");
    assert_eq!(porto.carriers().count(), 1);
    porto.apply(at(4), Command::Gone(vec![carrier(5).member])).expect("one");
    assert_eq!(porto.carriers().count(), 0);
}

#[test]
fn a_full_book_refuses_and_says_what_to_do() {
    let mut porto = cell("porto");
    for child in 0..limits::MAX_CHILDREN {
        attach(&mut porto, 1, &format!("c{child}.porto"), Epoch(0));
    }
    let refused = porto.apply(at(2), wanted("more.porto", Epoch(0), 7)).expect_err("it is full");
    assert!(refused.to_string().contains("attach this one below another"), "{refused}");
    for group in 0..limits::MAX_EXPORTS {
        porto.apply(at(3), Command::Export(format!("g{group}"))).expect("room");
    }
    let refused = porto.apply(at(4), Command::Export("more".into()));
    assert_eq!(refused, Err(Refusal::TooManyExports));
    assert!(porto.apply(at(4), Command::Export("a:b".into())).is_err());
    porto.check_invariants();
}

/// Acceptance 6: what an inner cell keeps of 10,000 names below it.
#[test]
fn ten_thousand_names_below_are_a_quarter_of_a_mebibyte_at_most() {
    let mut porto = cell("porto");
    let mut upto = 0;
    for child in 0..40 {
        let of = format!("line-{child}.porto");
        let Attached { epoch, .. } = attach(&mut porto, 1, &of, Epoch(0));
        let all: Vec<String> = (0..250).map(|at| format!("group-{child}-{at}")).collect();
        let counts: Vec<(&str, u32)> = all.iter().map(|name| (name.as_str(), 1)).collect();
        upto += 250;
        report(&mut porto, 2, &of, epoch, upto, &counts);
    }
    assert_eq!(names(&porto), 10_000);
    let bytes = porto.encode().len();
    assert!(bytes <= 256 << 10, "{bytes} bytes");
    assert_eq!(Cell::decode(&porto.encode()).expect("its own bytes"), porto);
}

/// The book knows that there may be more, where a cell has more names than there is room for.
#[test]
fn names_without_room_are_asked_for() {
    let mut porto = cell("porto");
    let mut report_all = |child: &str, from: usize, many: usize| {
        let Attached { epoch, .. } = attach(&mut porto, 1, child, Epoch(0));
        for part in (0..many).step_by(limits::MAX_REPORT) {
            let all: Vec<String> = (part..(part + limits::MAX_REPORT).min(many))
                .map(|at| format!("n{}", from + at))
                .collect();
            let counts: Vec<(&str, u32)> = all.iter().map(|name| (name.as_str(), 1)).collect();
            report(&mut porto, 2, child, epoch, (part + all.len()) as u64, &counts);
        }
    };
    report_all("a.porto", 0, limits::MAX_NAMES);
    report_all("b.porto", limits::MAX_NAMES, 10);
    assert_eq!(names(&porto) as usize, limits::MAX_NAMES);
    let last = format!("n{}", limits::MAX_NAMES + 9);
    assert_eq!(porto.exporters(&last), [&path("b.porto")]);
    porto.check_invariants();
}

#[test]
fn bytes_that_are_no_book_are_refused() {
    let mut porto = cell("porto");
    attach(&mut porto, 1, "a.porto", Epoch(0));
    let bytes = porto.encode();
    for length in 0..bytes.len() {
        Cell::decode(&bytes[..length]).expect_err("the end is missing");
    }
    for at in 0..bytes.len() {
        let mut spoilt = bytes.clone();
        spoilt[at] ^= 0x55;
        if let Ok(cell) = Cell::decode(&spoilt) {
            cell.check_invariants();
        }
    }
}

/// Each planted mistake breaks one of the claims above.
#[cfg(feature = "planted-bugs")]
mod planted {
    use steadfast_cells::Bug;

    use super::*;

    fn with(bug: Bug) -> Cell {
        Cell::with_bug(path("porto"), bug)
    }

    #[test]
    fn every_mistake_in_the_book_is_found() {
        for bug in Bug::BOOK {
            let found = match bug {
                Bug::KeepForEver => {
                    let mut porto = with(*bug);
                    attach(&mut porto, 0, "a.porto", Epoch(0));
                    porto.apply(at(10_000), Command::Tick).expect("nothing is refused");
                    porto.child(&path("a.porto")).is_some()
                }
                Bug::KeepExports => {
                    let mut porto = with(*bug);
                    let Attached { epoch, .. } = attach(&mut porto, 0, "a.porto", Epoch(0));
                    report(&mut porto, 1, "a.porto", epoch, 2, &[("boards", 1)]);
                    porto.apply(at(10_000), Command::Tick).expect("nothing is refused");
                    names(&porto) > 0
                }
                Bug::RenewAny => {
                    let mut porto = with(*bug);
                    attach(&mut porto, 0, "a.porto", Epoch(0));
                    renew(&mut porto, 1, "a.porto", Epoch(1))
                        == Verdict::Renewed { shunned: vec![] }
                }
                Bug::AttachTheFormer => {
                    let mut porto = with(*bug);
                    porto.apply(at(1), wanted("a.porto", Epoch(0), 8)).expect("room");
                    porto.apply(at(2), wanted("a.porto", Epoch(0), 7)).is_ok()
                }
                Bug::LearnOlder => {
                    let mut porto = with(*bug);
                    let name: Name = "a.porto:boards".parse().expect("a name");
                    let bears = Duration::from_secs(60);
                    let want = Command::Want { name: name.clone(), bears };
                    porto.apply(at(0), want.clone()).expect("room");
                    for as_of in [at(9), at(5)] {
                        let learn = Command::Learn { name: name.clone(), found: None, as_of };
                        porto.apply(at(10), learn).expect("wanted");
                    }
                    let age = porto.known_well(at(10), &name, bears).map(|(_, age)| age);
                    age == Some(Duration::from_millis(5))
                }
                Bug::TakeStaleReport => {
                    let mut porto = with(*bug);
                    let former = attach(&mut porto, 0, "a.porto", Epoch(0));
                    attach(&mut porto, 1, "a.porto", Epoch(0));
                    report(&mut porto, 2, "a.porto", former.epoch, 2, &[("boards", 1)]);
                    names(&porto) > 0
                }
                Bug::RenewEnded => {
                    let mut porto = with(*bug);
                    let Attached { epoch, .. } = attach(&mut porto, 0, "a.porto", Epoch(0));
                    renew(&mut porto, 10_000, "a.porto", epoch)
                        == Verdict::Renewed { shunned: vec![] }
                }
                other => panic!("{other:?} has no scenario"),
            };
            assert!(found, "{bug:?} is not found");
        }
    }
}
