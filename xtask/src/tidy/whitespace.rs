//! No tabs, no spaces at the end of a line, one newline at the end of a file.

use super::{Finding, Tree};

const SUFFIXES: &[&str] = &[".rs", ".md", ".toml", ".sh", ".ci/run"];

pub fn whitespace(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.all() {
        if !SUFFIXES.iter().any(|suffix| path.ends_with(suffix)) {
            continue;
        }
        for (index, line) in text.split('\n').enumerate() {
            if line.contains('\t') {
                findings.push(Finding::error(path, index + 1, "a tab"));
            }
            if line.ends_with([' ', '\t', '\r']) {
                findings.push(Finding::error(
                    path,
                    index + 1,
                    "white space at the end of the line",
                ));
            }
        }
        if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
            findings.push(Finding::error(path, 0, "a file ends with one newline"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::found;

    #[test]
    fn white_space_that_nobody_sees_is_found() {
        assert_eq!(found(whitespace, &[("a.rs", "fn a() {}\n")]), [""; 0]);
        for text in ["\tfn a() {}\n", "fn a() {} \n", "fn a() {}", "fn a() {}\n\n", "a\r\n"] {
            assert_eq!(found(whitespace, &[("a.rs", text)]).len(), 1, "{text:?}");
        }
        assert_eq!(found(whitespace, &[("data.tsv", "a\tb\n")]), [""; 0]);
    }
}
