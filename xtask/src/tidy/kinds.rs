//! Every kind of message stands in the table at the head of its module, under the reader's number
//! for it. The next free number is visible there.

use super::source::{Source, is_word, line_of};
use super::{Finding, Tree};

/// The modules with tables, and the enum whose variants they list.
const TABLES: &[(&str, &str)] = &[
    ("core/wire/src/ring.rs", "Message"),
    ("core/wire/src/ordered.rs", "Ordered"),
    ("core/wire/src/client.rs", "Frame"),
];

pub fn tables(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, name) in TABLES {
        let Some(text) = tree.get(path) else { continue };
        let code = Source::new(text).code;
        let Some(place) = code.find(&format!("pub enum {name} {{")) else {
            findings.push(Finding::error(path, 0, format!("no `pub enum {name}` here any more")));
            continue;
        };
        let line = line_of(&code, place);
        let rows = rows(text);
        let variants = variants(&code[place..]);
        for variant in &variants {
            let Some((number, _)) = rows.iter().find(|(_, kind)| kind == variant) else {
                let message = format!("{name}::{variant} is not in the table of kinds");
                findings.push(Finding::error(path, line, message));
                continue;
            };
            if !code.contains(&format!("{number} => {name}::{variant}(")) {
                let message = format!("{name}::{variant} is not read under its number {number}");
                findings.push(Finding::error(path, line, message));
            }
        }
        for (number, kind) in &rows {
            if !variants.contains(kind) {
                let message = format!("kind {number}, `{kind}`, is no variant of {name}");
                findings.push(Finding::error(path, line, message));
            }
        }
    }
    findings
}

/// The table's rows: number and type.
fn rows(text: &str) -> Vec<(u8, &str)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | "));
    rows.filter_map(|row| {
        let (number, rest) = row.split_once(" | [`")?;
        Some((number.parse().ok()?, rest.split_once("`]")?.0))
    })
    .collect()
}

/// The names of an enum's variants, of an enum whose variants hold one value each.
fn variants(code: &str) -> Vec<&str> {
    let end = code.find("\n}").unwrap_or(code.len());
    let lines = code[..end].lines().skip(1).map(str::trim);
    lines
        .filter_map(|line| line.split_once('('))
        .map(|(name, _)| name)
        .filter(|name| name.chars().all(is_word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::found;

    fn check(table: &str, decode: &str) -> Vec<String> {
        let text = format!(
            "//! | kind | message |\n//! | --- | --- |\n{table}\n\
             pub enum Ordered {{\n    /// A call.\n    Request(Request),\n    Synced(Synced),\n}}\n\
             fn decode() {{ match kind {{ {decode} }} }}"
        );
        found(tables, &[("core/wire/src/ordered.rs", &text)])
    }

    const DECODE: &str = "1 => Ordered::Request(a), 7 => Ordered::Synced(b)";

    #[test]
    fn a_table_that_is_right_is_accepted() {
        let table = "//! | 1 | [`Request`] |\n//! | 7 | [`Synced`] |";
        assert_eq!(check(table, DECODE), [""; 0]);
    }

    #[test]
    fn a_missing_row_a_wrong_number_and_a_stale_row_are_found() {
        let missing = check("//! | 1 | [`Request`] |", DECODE);
        assert!(missing[0].contains("Ordered::Synced is not in the table"), "{missing:?}");
        let wrong = check("//! | 1 | [`Request`] |\n//! | 6 | [`Synced`] |", DECODE);
        assert!(wrong[0].contains("not read under its number 6"), "{wrong:?}");
        let table = "//! | 1 | [`Request`] |\n//! | 7 | [`Synced`] |\n//! | 8 | [`Gone`] |";
        let stale = check(table, DECODE);
        assert!(stale[0].contains("`Gone`, is no variant"), "{stale:?}");
    }
}
