//! The tidy check: every rule reads the project's files and tells what breaks it.
//!
//! A rule is a function from the [`Tree`] to [`Finding`]s, so that each is tested on a few planted
//! lines instead of on the project.

mod crates;
mod docs;
mod kinds;
mod rooms;
mod rust;
mod source;
mod tree;
mod whitespace;

use std::io;
use std::path::Path;

pub use tree::Tree;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// To be mended before the change goes in.
    Error,
    /// To be thought about.
    Warning,
}

/// What breaks a rule, and where.
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

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[(&str, Rule)] = &[
    ("crates see only those below them", crates::directions),
    ("rooms of the engine see only those below them", rooms::directions),
    ("pure crates are no_std", rust::no_std),
    ("files are short", rust::length),
    ("only the porch reads clocks", rust::clocks),
    ("experiments do not see each other", rust::experiments),
    ("nothing pure iterates in a random order", rust::random_order),
    ("tests and simulation do not sleep", rust::sleeps),
    ("nothing is left undone", rust::leftovers),
    ("unsafe is where the kernel demands it", rust::unsafety),
    ("every message kind is in its table", kinds::tables),
    ("links in the documents resolve", docs::links),
    ("white space", whitespace::whitespace),
];

/// Checks the project at `root` and prints what it finds. True: no errors.
pub fn run(root: &Path) -> io::Result<bool> {
    let tree = Tree::load(root)?;
    let mut errors = 0;
    let mut warnings = 0;
    for (name, rule) in RULES {
        for finding in rule(&tree) {
            let kind = match finding.severity {
                Severity::Error => {
                    errors += 1;
                    "error"
                }
                Severity::Warning => {
                    warnings += 1;
                    "warning"
                }
            };
            let Finding { path, line, message, .. } = finding;
            println!("{kind}: {path}:{line}: {message} [{name}]");
        }
    }
    let (rules, files) = (RULES.len(), tree.len());
    println!("tidy: {rules} rules, {files} files: {errors} errors, {warnings} warnings");
    Ok(errors == 0)
}
