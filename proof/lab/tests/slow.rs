//! A real node that gets hardly any processor time while another sends all it can. It is excluded,
//! learns the reason, and returns when it is quick again. No time is checked: the machine may be
//! busy.

use std::process::{Command, Stdio};

use serde_json::Value;

/// Little is granted, so that it is soon used up; and nobody is taken for dead who is only stopped,
/// or waits for a processor with the rest of the machine.
const PLAN: &str = "slow --json --nodes 3 --by stop --run 3 --slice-ms 33 --slow-share 10 \
     --token-timeout-ms 2000 --control 0 --seconds 1 --timeout 120";

#[test]
fn a_slow_node_is_excluded_with_the_reason_and_comes_back() {
    let output = Command::new(env!("CARGO_BIN_EXE_steadfast-lab"))
        .args(PLAN.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .expect("the program can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let reasons = told["told"].as_array().expect("a list");
    let nodes: Vec<_> = reasons.iter().filter_map(|reason| reason["node"].as_u64()).collect();
    assert_eq!(nodes, [1, 2, 3], "everybody is told, the excluded one too: {told}");
    for reason in reasons {
        assert_eq!(reason["by"], 1, "the sender is the one that was stopped: {told}");
        let charge = &reason["charge"];
        assert_eq!((&charge["share"], &charge["limit_ns"]), (&10.into(), &2_000_000_000u64.into()));
        let (stopped, within) = (charge["stopped_ns"].as_u64(), charge["within_ns"].as_u64());
        assert!(stopped >= Some(2_000_000_000) && stopped <= within, "{told}");
    }
    let status = told["status"].as_str().unwrap_or_default();
    assert!(status.contains("it stopped n1's sending for"), "{told}");
    assert!(told["back_ms"].as_f64().is_some_and(|back| back > 0.0), "{told}");
    for buffers in told["buffers"].as_array().expect("a list") {
        for name in ["messages", "bytes", "datagrams"] {
            let fill = &buffers[name];
            assert!(fill["most"].as_u64() <= fill["limit"].as_u64(), "{told}");
        }
    }
    assert!(told["buffers"][0]["datagrams"]["most"].as_u64() > Some(0), "n1 sent: {told}");
}
