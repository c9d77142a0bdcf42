//! Findings of rules.

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// To be mended before the change goes in.
    Error,
    /// To be thought about.
    Warning,
}

/// A breach of a rule, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub path: String,
    /// From 1; 0 means the file as a whole.
    pub line: usize,
    pub message: String,
}

impl Finding {
    pub fn error(path: &str, line: usize, message: impl Into<String>) -> Self {
        Finding { severity: Severity::Error, path: path.into(), line, message: message.into() }
    }

    pub fn warning(path: &str, line: usize, message: impl Into<String>) -> Self {
        Finding { severity: Severity::Warning, ..Self::error(path, line, message) }
    }
}
