//! Rules for the text of Rust files.

use super::source::{Source, line_of, places};
use super::{Finding, Tree};

/// Longer files are to be split.
const MAX_LINES: usize = 600;
/// Longer files are worth a thought.
const LONG_LINES: usize = 400;

/// Crates that can neither read a clock nor open a socket, because there is none to be had.
const NO_STD: &[&str] = &[
    "core/engine",
    "core/manager",
    "core/qos",
    "core/registry",
    "core/ring",
    "core/seal",
    "core/store",
    "core/wire",
];

/// Where the outside world is met.
const DRIVERS: &[&str] = &[
    "cli/",
    "io/",
    "proof/fixture/",
    "proof/harness/",
    "proof/lab/",
    "proof/papers/",
    "steadfast/",
];

/// Programs of experiments, of which none knows another.
const EXPERIMENTS: &[&str] = &["proof/lab/src/", "proof/papers/src/"];

/// Files that run the same way whenever and wherever they run: no clock, no order by hash.
const PURE: &[&str] = &[
    "io/client/src/attempts",
    "io/client/src/call",
    "io/client/src/links",
    "io/client/src/output",
    "io/client/src/session",
    "io/client/src/spread",
    "io/client/src/targets",
    "core/engine/",
    "core/ring/",
    "core/seal/src/",
    "proof/sim/",
    "proof/testkit/",
    "core/store/",
    "core/wire/",
];

/// Single files outside the driver that look at the clock, with the reason.
const CLOCK_READERS: &[(&str, &str)] = &[
    ("proof/history/benches/checker.rs", "measures"),
    ("core/engine/src/session/asked.rs", "its test compares two costs"),
    ("core/seal/benches/seal.rs", "measures"),
    ("python/client/examples/native.rs", "measures"),
    ("proof/sim/tests/backlog.rs", "compares two costs"),
    ("proof/sim/src/campaign.rs", "tells how long all runs took; none of them sees it"),
    ("proof/sim/src/explore/command.rs", "ends a search when its time is up; no world sees it"),
    ("xtask/src/fuzz.rs", "tells how long a target ran"),
];

/// Among them, those that look things up in hash maps and drive nothing: checkers read the event
/// stream of a run and say yes or no, and a search asks whether a state was seen.
const LOOKUPS_ONLY: &[&str] = &[
    "proof/sim/src/check/",
    "proof/sim/src/explore/search.rs",
    "proof/sim/src/watch.rs",
    "proof/sim/src/watch/",
];

/// Code of a node's process, in which no thread may be an ordinary one by mistake.
const OF_NODES: &[&str] =
    &["io/admin/src/", "io/node/src/", "io/qosd/src/keeper.rs", "io/supervisor/src/"];

/// Files with unsafe code, and what for. The soundness reason stands beside the code.
const UNSAFE_FILES: &[(&str, &str)] = &[
    (
        "proof/harness/src/allocator.rs",
        "an allocator that counts, for programs of experiments alone",
    ),
    (
        "proof/harness/src/sites/tun.rs",
        "the call that makes a network interface of a process's own",
    ),
    ("io/rank/src/mapping.rs", "memory that the kernel maps"),
    ("io/memlog/src/memory.rs", "memory that one process writes and others read"),
    ("io/rank/src/tracker/written.rs", "the calls that tell which pages are written"),
    ("io/rank/tests/limited.rs", "limits that a test takes for one of its threads"),
    (
        "io/os/src/closer.rs",
        "a process that shares this one's memory, and the kernel's list of a thread's futexes",
    ),
    ("io/os/src/memory.rs", "how the kernel gives and takes the pages of a buffer"),
    ("io/os/src/sched.rs", "the calls that set and read the class of a thread"),
    ("core/ring/tests/allocations.rs", "an allocator that counts, for this test's program alone"),
    ("python/jobs/src/buffer.rs", "Python's arrays lie in a rank's memory"),
    ("python/jobs/src/messages.rs", "Python's buffers are read and written"),
    ("python/jobs/src/exit.rs", "a process's exit status, and an end at once"),
    ("cli/src/demo/clock.rs", "tokio's registration of a timer's descriptor"),
];

fn within(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

pub fn no_std(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in NO_STD {
        let path = format!("{folder}/src/lib.rs");
        let lib = Source::new(tree.get(&path).unwrap_or_default());
        if !lib.code.contains("#![no_std]") {
            findings.push(Finding::error(&path, 1, "a pure crate starts with #![no_std]"));
        }
    }
    for (path, source) in tree.sources().filter(|(path, _)| within(path, NO_STD)) {
        if !path.contains("/src/") {
            continue;
        }
        for place in places(source.without_tests().0, "extern crate std") {
            let line = line_of(&source.code, place);
            findings.push(Finding::error(path, line, "a pure crate has no std outside its tests"));
        }
    }
    findings
}

pub fn length(tree: &Tree) -> Vec<Finding> {
    let lengths = tree.with_suffix(".rs").map(|(path, text)| (path, text.lines().count()));
    lengths
        .filter_map(|(path, lines)| {
            if lines > MAX_LINES {
                let message = format!("{lines} lines, the limit is {MAX_LINES}: split it");
                Some(Finding::error(path, 0, message))
            } else if lines > LONG_LINES {
                Some(Finding::warning(path, 0, format!("{lines} lines: is this one topic?")))
            } else {
                None
            }
        })
        .collect()
}

/// Every place of these words in the code of the files that `looked_at` chooses.
fn words(
    tree: &Tree,
    words: &[&str],
    looked_at: impl Fn(&str) -> bool,
    message: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources().filter(|(path, _)| looked_at(path)) {
        for word in words {
            for place in places(&source.code, word) {
                let message = format!("{word}: {message}");
                findings.push(Finding::error(path, line_of(&source.code, place), message));
            }
        }
    }
    findings
}

pub fn clocks(tree: &Tree) -> Vec<Finding> {
    let outside = |path: &str| {
        (within(path, PURE) || !within(path, DRIVERS))
            && !CLOCK_READERS.iter().any(|(listed, _)| *listed == path)
    };
    words(tree, &["Instant::now", "SystemTime"], outside, "time comes in from the driver")
}

pub fn experiments(tree: &Tree) -> Vec<Finding> {
    let message = "an experiment sees the harness and itself; what two need goes down there";
    words(tree, &["crate::"], |path| within(path, EXPERIMENTS), message)
}

pub fn random_order(tree: &Tree) -> Vec<Finding> {
    let pure = |path: &str| within(path, PURE) && !within(path, LOOKUPS_ONLY);
    let message = "its order differs from run to run, take the BTree one";
    words(tree, &["HashMap", "HashSet", "RandomState"], pure, message)
}

pub fn sleeps(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        let all = path.contains("/tests/") || path.starts_with("proof/sim/");
        let (code, tests) = source.without_tests();
        let searched = if all { &source.code } else { tests };
        let before = if all { 0 } else { code.len() };
        for word in ["thread::sleep", "time::sleep"] {
            for place in places(searched, word) {
                let line = line_of(&source.code, before + place);
                findings.push(Finding::error(
                    path,
                    line,
                    format!("{word}: wait for what is to come"),
                ));
            }
        }
    }
    findings
}

/// Threads that are started elsewhere have the class of their starter, or none.
pub fn threads(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources().filter(|(path, _)| within(path, OF_NODES)) {
        let (code, _) = source.without_tests();
        for word in ["thread::Builder", "thread::spawn"] {
            for place in places(code, word) {
                let message = format!("{word}: os::threads decides the class of a node's threads");
                findings.push(Finding::error(path, line_of(&source.code, place), message));
            }
        }
    }
    findings
}

pub fn leftovers(tree: &Tree) -> Vec<Finding> {
    let undone = ["todo!", "unimplemented!", "dbg!"];
    let mut findings = words(tree, &undone, |_| true, "finish it");
    findings.extend(words(tree, &["#[ignore"], |_| true, "run the test or delete it"));
    for (path, source) in tree.sources() {
        for word in ["TODO", "FIXME", "XXX"] {
            for place in places(&source.comments, word) {
                let line = line_of(&source.comments, place);
                findings.push(Finding::error(
                    path,
                    line,
                    format!("{word}: do it, or open an issue"),
                ));
            }
        }
    }
    findings
}

pub fn unsafety(tree: &Tree) -> Vec<Finding> {
    let unlisted = |path: &str| !UNSAFE_FILES.iter().any(|(listed, _)| *listed == path);
    words(tree, &["unsafe"], unlisted, "list the file in xtask/src/tidy/rust.rs, with its reason")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::found;

    fn count(rule: fn(&Tree) -> Vec<Finding>, path: &str, text: &str) -> usize {
        found(rule, &[(path, text)]).len()
    }

    #[test]
    fn pure_crates_say_so() {
        let in_all = |text| {
            let paths: Vec<_> =
                NO_STD.iter().map(|folder| format!("{folder}/src/lib.rs")).collect();
            let files: Vec<_> = paths.iter().map(|path| (path.as_str(), text)).collect();
            found(no_std, &files).len()
        };
        let crates = NO_STD.len();
        assert_eq!(in_all("#![no_std]"), 0);
        assert_eq!(in_all("// #![no_std]"), crates);
        assert_eq!(in_all("#![no_std]\nextern crate std;"), crates);
        assert_eq!(in_all("#![no_std]\n#[cfg(test)]\nextern crate std;"), 0);
    }

    #[test]
    fn long_files_are_told() {
        let severity = |lines: usize| {
            let text = "\n".repeat(lines);
            length(&Tree::planted(&[("a.rs", &text)])).pop().map(|finding| finding.severity)
        };
        assert_eq!(severity(400), None);
        assert_eq!(severity(401), Some(crate::tidy::Severity::Warning));
        assert_eq!(severity(601), Some(crate::tidy::Severity::Error));
    }

    #[test]
    fn only_drivers_reads_clocks() {
        let text = "let now = std::time::Instant::now();";
        assert_eq!(count(clocks, "core/ring/src/a.rs", text), 1);
        assert_eq!(count(clocks, "io/client/src/session.rs", text), 1);
        assert_eq!(count(clocks, "io/client/src/task.rs", text), 0);
        assert_eq!(count(clocks, "io/node/src/a.rs", text), 0);
        assert_eq!(count(clocks, "core/ring/src/a.rs", "// SystemTime is not for us"), 0);
    }

    #[test]
    fn experiments_do_not_see_each_other() {
        let text = "use crate::load::Meter;";
        assert_eq!(count(experiments, "proof/papers/src/flare.rs", text), 1);
        assert_eq!(count(experiments, "proof/harness/src/echo.rs", text), 0);
    }

    #[test]
    fn hash_maps_stay_outside() {
        let text = "use std::collections::HashMap;";
        assert_eq!(count(random_order, "proof/sim/src/a.rs", text), 1);
        assert_eq!(count(random_order, "proof/sim/src/check/a.rs", text), 0);
        assert_eq!(count(random_order, "io/node/src/a.rs", text), 0);
    }

    #[test]
    fn sleeping_is_seen_in_tests_and_simulation_only() {
        let text = "fn a() { std::thread::sleep(b); }";
        let in_tests = "fn a() {}\n#[cfg(test)]\nmod tests { fn a() { thread::sleep(b); } }";
        assert_eq!(count(sleeps, "io/node/src/a.rs", text), 0);
        assert_eq!(count(sleeps, "io/node/tests/a.rs", text), 1);
        assert_eq!(count(sleeps, "proof/sim/src/a.rs", text), 1);
        let found = found(sleeps, &[("io/node/src/a.rs", in_tests)]);
        assert!(found[0].starts_with("io/node/src/a.rs:3:"), "{found:?}");
    }

    #[test]
    fn a_nodes_threads_have_their_class_from_one_place() {
        let text = "fn a() { std::thread::spawn(b); }";
        assert_eq!(count(threads, "io/node/src/a.rs", text), 1);
        assert_eq!(count(threads, "io/node/tests/a.rs", text), 0);
        assert_eq!(count(threads, "io/client/src/a.rs", text), 0);
        assert_eq!(
            count(threads, "io/node/src/a.rs", "fn a() { os::threads::spawn(\"\", b); }"),
            0
        );
    }

    #[test]
    fn leftovers_are_seen_in_code_and_comments() {
        for text in ["todo!()", "unimplemented!(\"a\")", "dbg!(a)", "#[ignore]", "// FIXME: a"] {
            assert_eq!(count(leftovers, "a.rs", text), 1, "{text}");
        }
        assert_eq!(count(leftovers, "a.rs", "let a = \"FIXME todo!()\";"), 0);
    }

    #[test]
    fn unsafe_code_is_listed() {
        assert_eq!(count(unsafety, "io/node/src/a.rs", "unsafe { a() }"), 1);
        assert_eq!(count(unsafety, "io/node/src/a.rs", "#![forbid(unsafe_code)]"), 0);
    }
}
