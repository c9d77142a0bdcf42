//! The results of the checks, for people and for programs.

use serde_json::{Value, json};

use super::super::{Failure, print};
use super::check::Check;
use super::verdict::Flaw;

const PROTOCOL: &str = "docs/protocol/attach.md";

/// Collects the results, and tells people each as it comes.
pub struct Report {
    is_json: bool,
    seed: u64,
    command: Vec<String>,
    checks: Vec<Value>,
    ok: usize,
    failed: usize,
    not_tried: usize,
}

impl Report {
    pub fn new(is_json: bool, seed: u64, command: &[String]) -> Report {
        let (command, checks) = (command.to_vec(), Vec::new());
        Report { is_json, seed, command, checks, ok: 0, failed: 0, not_tried: 0 }
    }

    pub fn add(&mut self, check: &Check, result: Result<(), Flaw>) -> Result<(), Failure> {
        let Check { name, promise, section, .. } = check;
        let (count, line, found) = match result {
            Ok(()) => {
                (&mut self.ok, format!("ok         {name}: {promise}\n"), json!({"status": "ok"}))
            }
            Err(Flaw::Wrong { expected, seen }) => (
                &mut self.failed,
                format!(
                    "FAILED     {name}: {promise}\n           expected: {expected}\n           \
                     seen:     {seen}\n           rule:     {PROTOCOL}, section {section}\n"
                ),
                json!({"status": "failed", "expected": expected, "seen": seen}),
            ),
            Err(Flaw::NotTried(why)) => (
                &mut self.not_tried,
                format!("not tried  {name}: {why}\n"),
                json!({"status": "not-tried", "why": why}),
            ),
        };
        *count += 1;
        if !self.is_json {
            return print(&line);
        }
        let mut found = found;
        found["name"] = json!(name);
        found["promise"] = json!(promise);
        found["rule"] = json!(format!("{PROTOCOL}, section {section}"));
        self.checks.push(found);
        Ok(())
    }

    /// The sums; a failure if a check failed.
    pub fn finish(self, untried: &[(String, &str)]) -> Result<(), Failure> {
        let Report { is_json, seed, command, checks, ok, failed, not_tried } = self;
        if is_json {
            let untried: Vec<_> = untried.iter().map(|(method, _)| method).collect();
            let report = json!({
                "program": command, "seed": seed, "checks": checks, "ok": ok, "failed": failed,
                "not_tried": not_tried, "methods_not_tried": untried,
            });
            print(&format!("{report:#}\n"))?;
        } else {
            for (method, why) in untried {
                print(&format!("not tried  method {method}: {why}\n"))?;
            }
            print(&format!("{ok} ok, {failed} failed, {not_tried} not tried; seed {seed}\n"))?;
        }
        if failed > 0 {
            let checks = if failed == 1 { "check" } else { "checks" };
            return Err(Failure::Failed(format!("{failed} {checks} of the protocol failed")));
        }
        Ok(())
    }
}
