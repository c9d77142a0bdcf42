//! Real nodes on real sockets in network namespaces: cut cables, deaf and mute hosts, random loss,
//! two networks. Where namespaces are not permitted these tests say so on standard error, and pass.

use std::io::Write;
use std::process::{Command, Stdio};

/// Plays one scenario of the lab's program, which checks it: see `scenario.rs` there.
fn play(scenario: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_steadfast-lab"))
        .args(["hosts", scenario])
        .stdin(Stdio::null())
        .output()
        .expect("the program can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    if let Some(skipped) = said.lines().find(|line| line.starts_with("SKIPPED")) {
        // Past the harness, which keeps what a passing test prints.
        let _ = writeln!(std::io::stderr(), "{skipped}: `{scenario}` was not tried");
        return;
    }
    assert!(output.status.success(), "{scenario}: {said}");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.starts_with(&format!("{scenario}: ")), "{told:?}");
    let _ = writeln!(std::io::stderr(), "{}", told.trim_end());
}

#[test]
fn calls_survive_a_cut_cable_and_the_host_comes_back() {
    play("cut");
}

#[test]
fn a_deaf_host_is_left_out() {
    play("deaf");
}

#[test]
fn a_mute_host_is_left_out() {
    play("mute");
}

#[test]
fn random_loss_excludes_nobody() {
    play("loss");
}

#[test]
fn one_of_two_networks_can_go() {
    play("links");
}
