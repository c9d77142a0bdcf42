//! The doctor's findings and their verdicts.

use serde::Serialize;

/// The verdict on a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It could be better, for those who need it.
    Advice,
    /// It will cost time or false suspicions.
    Warning,
    /// The node would not run.
    Failure,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Finding {
    pub name: &'static str,
    pub verdict: Verdict,
    pub says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    pub fn good(name: &'static str, says: impl Into<String>) -> Finding {
        Finding { name, verdict: Verdict::Good, says: says.into(), remedy: None }
    }

    pub fn new(
        verdict: Verdict,
        name: &'static str,
        says: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding { name, verdict, says: says.into(), remedy: Some(remedy.into()) }
    }
}
