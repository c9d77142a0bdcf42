//! Today's breaches of a rule, counted by crate. A count never grows. Each count that shrinks is
//! recorded here, so that it stays.

use std::collections::BTreeMap;

use super::uses::{crate_of, crates};
use super::{Finding, Tree};

/// The crates with breaches of a rule, and how many each of them has.
pub type Ceilings = &'static [(&'static str, usize)];

/// Files in circles.
pub const CIRCLES: Ceilings = &[];

/// Functions that are too long.
pub const FUNCTIONS: Ceilings = &[];

/// Structs with too many fields.
pub const FIELDS: Ceilings = &[];

/// Files with an `impl Stack`.
pub const STACK: Ceilings = &[];

/// The name of this file in its messages.
const TABLE: &str = "xtask/src/tidy/ceilings.rs";

/// A breach of a rule and its weight: a circle counts all its files.
pub struct Breach {
    pub finding: Finding,
    pub weight: usize,
}

/// Every breach of the crates that have more breaches than their ceiling, and the crates with
/// fewer. A breach within the ceiling is a warning.
pub fn compare(
    tree: &Tree,
    breaches: Vec<Breach>,
    table: &str,
    ceilings: Ceilings,
) -> Vec<Finding> {
    let crates = crates(tree);
    let mut counts: BTreeMap<&str, usize> = ceilings.iter().map(|(name, _)| (*name, 0)).collect();
    for breach in &breaches {
        *counts.entry(crate_of(&crates, &breach.finding.path)).or_default() += breach.weight;
    }
    let ceiling = |name: &str| {
        ceilings.iter().find(|(listed, _)| *listed == name).map_or(0, |(_, ceiling)| *ceiling)
    };
    let told = breaches.into_iter().map(|Breach { finding, .. }| {
        let name = crate_of(&crates, &finding.path);
        let (count, ceiling) = (counts[name], ceiling(name));
        if count > ceiling {
            let message = format!("{} ({name}: {count}, ceiling {ceiling})", finding.message);
            Finding { message, ..finding }
        } else {
            Finding::warning(&finding.path, finding.line, finding.message)
        }
    });
    let mut findings: Vec<_> = told.collect();
    for (name, count) in counts.iter().filter(|(name, count)| **count < ceiling(name)) {
        let message =
            format!("lower the ceiling {table} of {name} from {} to {count}", ceiling(name));
        findings.push(Finding::error(TABLE, 0, message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Severity;

    /// The severities and messages for so many breaches in a crate whose ceiling is two.
    fn compared(breaches: usize) -> Vec<(Severity, String)> {
        let tree = Tree::planted(&[("core/a/Cargo.toml", ""), ("core/a/src/lib.rs", "")]);
        let breach = |_| Breach { finding: Finding::error("core/a/src/lib.rs", 1, "b"), weight: 1 };
        let breaches = (0..breaches).map(breach).collect();
        let findings = compare(&tree, breaches, "LONG", &[("core/a", 2)]).into_iter();
        findings.map(|finding| (finding.severity, finding.message)).collect()
    }

    #[test]
    fn known_breaches_are_warnings() {
        assert_eq!(compared(2), vec![(Severity::Warning, "b".into()); 2]);
    }

    #[test]
    fn a_new_breach_is_an_error() {
        let message = "b (core/a: 3, ceiling 2)";
        assert_eq!(compared(3), vec![(Severity::Error, message.into()); 3]);
    }

    #[test]
    fn a_mended_breach_lowers_the_ceiling() {
        let message = "lower the ceiling LONG of core/a from 2 to 1";
        assert_eq!(compared(1).pop(), Some((Severity::Error, message.into())));
        let message = "lower the ceiling LONG of core/a from 2 to 0";
        assert_eq!(compared(0), [(Severity::Error, message.into())]);
    }

    #[test]
    fn ceilings_name_crates_with_breaches() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        for (name, ceiling) in [CIRCLES, FUNCTIONS, FIELDS, STACK].concat() {
            assert!(root.join(name).join("Cargo.toml").exists(), "{name} is no crate");
            assert!(ceiling > 0, "{name}: a ceiling of nothing is no line in the table");
        }
    }
}
