//! `steadfast conform`: it finds each planted mistake, and none where there is none.

mod daemon;

use std::path::PathBuf;
use std::process::{Command, Output};

use daemon::{program, run};
use serde_json::Value;

/// Each mistake of planted.py, and the check that is there to find it.
const MISTAKES: [(&str, &str); 23] = [
    ("order", "order"),
    ("number", "numbers"),
    ("total", "snapshot"),
    ("restore", "restore"),
    ("unreadable", "restore-unreadable"),
    ("clock", "same-answers"),
    ("hash-order", "same-states"),
    ("read", "reads"),
    ("read-allowed", "reads-refused"),
    ("begun", "begun"),
    ("optional", "optional-frames"),
    ("half-frame", "half-frame"),
    ("half-pair", "odd-arguments"),
    ("cut-text", "odd-values"),
    ("fault", "odd-values"),
    ("order-of-names", "state-form"),
    ("nameless", "state-form"),
    ("half-restored", "state-form"),
    ("rounding", "state-form"),
    ("silent", "state-form"),
    ("merge", "merge"),
    ("merge-unread", "merge"),
    // Its own check is the first one: nothing else can be tried.
    ("hello", "hello"),
];

fn script() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/conform/planted.py")
}

fn python_is_there() -> bool {
    let there = Command::new("python3").arg("--version").output();
    let there = there.is_ok_and(|it| it.status.success());
    if !there {
        println!("SKIPPED: there is no python3 here");
    }
    there
}

fn conform(planted: &str, options: &[&str]) -> Output {
    let mut command = program();
    command.env("PLANTED", planted).arg("conform").args(options).args(["--", "python3"]);
    command.arg(script()).output().expect("the program can be run")
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_program_that_keeps_the_protocol_passes_every_check() {
    if !python_is_there() {
        return;
    }
    let output = conform("", &["--json"]);
    let report = report(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!((&report["failed"], &report["not_tried"]), (&0.into(), &0.into()), "{report:#}");
    assert_eq!(report["methods_not_tried"], Value::Array(Vec::new()));
}

#[test]
fn each_planted_mistake_is_found_by_its_own_check() {
    if !python_is_there() {
        return;
    }
    for (planted, check) in MISTAKES {
        let output = conform(planted, &["--json", "--only", check, "--wait", "2s"]);
        let report = report(&output);
        assert_eq!(output.status.code(), Some(1), "{planted}: {report:#}");
        let checks = report["checks"].as_array().expect("a list");
        let [found] = &checks[..] else { panic!("{planted}: {report:#}") };
        assert_eq!((&found["name"], &found["status"]), (&check.into(), &"failed".into()));
        assert!(found["rule"].as_str().is_some_and(|rule| rule.contains("attach.md")));
    }
}

#[test]
fn people_read_the_expected_and_the_seen() {
    if !python_is_there() {
        return;
    }
    let output = conform("number", &["--only", "numbers", "--seed", "7"]);
    let text = String::from_utf8(output.stdout).expect("text");
    for part in [
        "FAILED     numbers: ",
        "expected: the answer to command 1 (",
        "seen:     the answer to command 2: the result ",
        "rule:     docs/protocol/attach.md, section Serving",
        "0 ok, 1 failed, 0 not tried; seed 7",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn methods_can_be_left_out() {
    if !python_is_there() {
        return;
    }
    let output = conform("", &["--json", "--only", "numbers", "--except", "enter"]);
    assert_eq!(report(&output)["methods_not_tried"], Value::from(vec!["enter"]));
    let output = conform("", &["--only", "numbers", "--except", "entre"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(text.contains("entre") && text.contains("add, enter, get"), "{text}");
}

#[test]
fn programs_that_do_not_attach_and_wrong_command_lines_are_explained() {
    for (command, seen) in [
        (&["./no-such-program"][..], "No such file"),
        (&["sh", "-c", "echo cannot find my data; exit 3"], "cannot find my data"),
    ] {
        let output = run(&[&["conform", "--"], command].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains("FAILED     hello") && text.contains(seen), "{text}");
        assert!(text.contains("not tried  order: the program does not attach"), "{text}");
    }
    for (options, taught) in [
        (&["--only", "sameness", "--", "true"][..], "same-answers"),
        (&["--call", "add=5", "--", "true"], "add=[5]"),
        (&["--seed", "7"], "PROGRAM"),
    ] {
        let output = run(&[&["conform"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8(output.stderr).expect("text");
        assert!(text.contains(taught), "{text}");
    }
}

#[test]
fn a_built_in_service_without_mistakes_passes_by_given_calls() {
    let service = [env!("CARGO_BIN_EXE_steadfast"), "replica", "counter"];
    let options = ["conform", "--json", "--call", "add=[5]", "--call", "get=[]", "--"];
    let output = run(&[&options[..], &service].concat());
    let report = report(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
}
