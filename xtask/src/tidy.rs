//! The tidy check: every rule reads the project's files and tells what breaks it.
//!
//! A rule is a function from the [`Tree`] to [`Finding`]s, so that each is tested on a few planted
//! lines instead of on the project.

mod ceilings;
mod circles;
mod crates;
mod docs;
mod fields;
mod finding;
mod functions;
mod kinds;
mod modules;
mod prose;
mod rooms;
mod rust;
mod source;
mod stack;
mod syntax;
mod tree;
mod uses;
mod whitespace;

use std::io;
use std::path::Path;

pub use finding::{Finding, Severity};
pub use tree::Tree;

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[(&str, Rule)] = &[
    ("crates see only those below them", crates::directions),
    ("rooms of the engine see only those below them", rooms::directions),
    ("no files in a circle", circles::circles),
    ("functions fit on a screen or two", functions::length),
    ("structs have few fields", fields::count),
    ("the stack is one topic", stack::files),
    ("pure crates are no_std", rust::no_std),
    ("files are short", rust::length),
    ("only the driver reads clocks", rust::clocks),
    ("experiments do not see each other", rust::experiments),
    ("nothing pure iterates in a random order", rust::random_order),
    ("tests and simulation do not sleep", rust::sleeps),
    ("a node's threads have their class from one place", rust::threads),
    ("nothing is left undone", rust::leftovers),
    ("unsafe is where the kernel demands it", rust::unsafety),
    ("every message kind is in its table", kinds::tables),
    ("links in the documents resolve", docs::links),
    ("documents are read with ease", prose::length),
    ("documents are few words", prose::amount),
    ("comments begin with a subject", prose::subjects),
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

/// Prints the uses within the circles of a crate.
pub fn run_circles(root: &Path, folder: &str) -> io::Result<bool> {
    let told = circles::within(&Tree::load(root)?, folder.trim_end_matches('/'));
    for line in &told {
        println!("{line}");
    }
    Ok(told.is_empty())
}
