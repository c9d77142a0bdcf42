//! The latency study, as small as it can be, over real nodes. Measured times are checked only where
//! no other result is possible.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

const CALLS: u64 = 40;

fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[test]
fn every_point_is_measured_and_set_beside_the_equations() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let plan = format!("study --json --calls {CALLS} --services 0,1 --thinks 1 --random 1 --out");
    let output = Command::new(env!("CARGO_BIN_EXE_steadfast-papers"))
        .args(plan.split_whitespace())
        .arg(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("the program can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let told = String::from_utf8(output.stdout).expect("JSON");
    let points: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    // Two server times, one think time and eight random ones: at four places, then where the token
    // parks.
    assert_eq!(points.len(), (2 * 4 + 2 + 8) + (2 * 2 + 2 + 8));
    for told in &points {
        let point = &told["point"];
        assert_eq!(told["latency_us"]["n"], CALLS, "{told}");
        if point["service"]["kind"] == "fixed" {
            // Half of a microsecond may be lost where times become whole numbers.
            let service = figure(&point["service"]["mean_us"]);
            // Where all replicas speak, one that is ahead has the call ordered before the replica
            // that is measured asks.
            let alone = point["speakers"] != "active";
            let latency = figure(&told["latency_us"]["median"]);
            assert!(!alone || latency >= service - 0.5, "{told}");
            assert!(figure(&told["service_us"]["median"]) >= service * 0.99 - 0.5, "{told}");
        }
        let senders: Vec<u64> =
            told["senders"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
        assert_eq!((senders.len(), senders[0]), (4, 0), "nobody serves on the client's node");
        assert!(senders.iter().sum::<u64>() >= CALLS, "{told}");
        let (classic, active) = (point["way"] == "classic", point["speakers"] == "active");
        let equations = told["predicted"]["equations"].as_array().map_or(0, Vec::len);
        let thinks = figure(&point["think"]["mean_us"]) > 0.0;
        let expected = match (classic, active, thinks) {
            (false, ..) => 0,
            (true, true, _) => 4,
            (true, false, true) => 6,
            (true, false, false) => 7,
        };
        assert_eq!(equations, expected, "{told}");
        if !active {
            let place = point["speakers"]["semi-active"].as_u64().expect("a place");
            assert_eq!(figure(&told["position"]), place as f64, "the primary answers: {told}");
        }
    }
    let whole = fs::read_to_string(folder.path().join("study.json")).expect("the figures");
    let whole: Value = serde_json::from_str(&whole).expect("JSON");
    assert!(figure(&whole["calibration"]["pass"]) > 0.0);
    for chart in [
        "density",
        "density-parked",
        "density-random",
        "latency",
        "delays",
        "place",
        "overhead",
        "think",
    ] {
        let svg = fs::read_to_string(folder.path().join(format!("{chart}.svg"))).expect("a chart");
        assert!(
            svg.starts_with("<svg") && svg.contains("<polyline") && !svg.contains("NaN"),
            "{chart}"
        );
    }
}
