//! Documents can be read: short lines, short sentences, few words.

use super::docs::prose;
use super::{Finding, Tree};

/// Columns of a line of prose.
const COLUMNS: usize = 100;
/// Words of a sentence. Most have far fewer.
const SENTENCE: usize = 40;
/// Words of the README, code and tables included.
const README: usize = 960;
/// Words of all documents together.
const ALL: usize = 98_000;
/// Entries of the glossary.
const GLOSSARY: usize = 76;

/// Words with which no comment begins.
const RELATIVE: &[&str] = &["Who", "Whom", "Whose", "Whoever", "What", "Whatever", "Of"];

/// Lines and sentences of documents that are too long.
pub fn length(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_suffix(".md") {
        for (number, line) in prose(text) {
            let wide = line.chars().count() > COLUMNS;
            // A table's row and a link's target cannot be broken.
            if wide && !is_row(line) && line.split_whitespace().count() > 2 {
                let message = format!("more than {COLUMNS} columns");
                findings.push(Finding::error(path, number, message));
            }
        }
        for (number, sentence) in sentences(text) {
            let words = words(&sentence);
            if words > SENTENCE {
                let start: Vec<&str> = sentence.split_whitespace().take(6).collect();
                let message = format!("a sentence of {words} words: \"{} ...\"", start.join(" "));
                findings.push(Finding::error(path, number, message));
            }
        }
    }
    findings
}

/// Comments that begin with a relative clause: the reader meets the subject too late.
pub fn subjects(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_suffix(".rs") {
        for (number, line) in (1..).zip(text.lines()) {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let comment = comment.trim_start_matches(['/', '!', ' ']);
            let first = comment.split(|letter: char| !letter.is_alphanumeric()).next();
            if let Some(word) = first.filter(|word| RELATIVE.contains(word)) {
                let message = format!("begins with \"{word}\": put a concrete subject first");
                findings.push(Finding::error(path, number, message));
            }
        }
    }
    findings
}

/// How much there is to read.
pub fn amount(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let all: usize = tree.with_suffix(".md").map(|(_, text)| words(text)).sum();
    if all > ALL {
        let message = format!("the documents have {all} words together, at most {ALL}");
        findings.push(Finding::error("docs/README.md", 0, message));
    }
    if let Some(count) = tree.get("README.md").map(words)
        && count > README
    {
        findings.push(Finding::error("README.md", 0, format!("{count} words, at most {README}")));
    }
    if let Some(text) = tree.get("docs/glossary.md") {
        let entries = text.lines().filter(|line| line.starts_with("| **")).count();
        if entries > GLOSSARY {
            let message = format!("{entries} entries, at most {GLOSSARY}");
            findings.push(Finding::error("docs/glossary.md", 0, message));
        }
    }
    findings
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

/// Whether a line begins something of its own: an item of a list, a heading, a row.
fn begins(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    number || ["- ", "* ", "#", "|", ">", "["].iter().any(|start| line.starts_with(start))
}

/// The sentences of the prose and of each cell of the tables, with the lines where they begin.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, Vec<&str>)> = Vec::new();
    // The line that the last block goes on to, if it may go on.
    let mut last = None;
    for (number, line) in prose(text) {
        if line.trim().is_empty() {
            last = None;
        } else if last == Some(number - 1) && !begins(line) {
            blocks.last_mut().expect("a line is before it").1.push(line);
            last = Some(number);
        } else {
            let cells: Vec<&str> = if is_row(line) { cells(line) } else { vec![line] };
            blocks.extend(cells.into_iter().map(|cell| (number, vec![cell])));
            let alone = is_row(line) || line.starts_with('#');
            last = (!alone).then_some(number);
        }
    }
    let blocks = blocks.into_iter().map(|(number, lines)| (number, lines.join(" ")));
    blocks.flat_map(|(number, block)| split(&block).into_iter().map(move |s| (number, s))).collect()
}

fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_matches('|').split(" | ").collect()
}

/// A sentence ends with a full stop, or a question or exclamation mark, before a blank.
fn split(block: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in block.split_whitespace() {
        let sentence = sentences.last_mut().expect("there is one");
        sentence.push_str(word);
        sentence.push(' ');
        let bare = word.trim_end_matches(['*', '_', ')', '"', '`', '\'']);
        if bare.ends_with(['.', '?', '!']) {
            sentences.push(String::new());
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::found;

    fn of(count: usize) -> String {
        format!("{}end.", "word ".repeat(count - 1))
    }

    fn long(text: &str) -> Vec<String> {
        found(length, &[("docs/a.md", text)])
    }

    fn wrapped(text: &str) -> String {
        text.split(' ').collect::<Vec<_>>().chunks(10).map(|line| line.join(" ") + "\n").collect()
    }

    #[test]
    fn a_line_of_prose_has_at_most_100_columns() {
        let wide = format!("two words {}", "x".repeat(91));
        assert!(matches!(&long(&wide)[..], [one] if one.contains("docs/a.md:1: more than 100")));
        assert_eq!(long(&wide[..100]), [""; 0]);
        for fine in [format!("| {wide} |"), format!("```\n{wide}\n```"), "x".repeat(200)] {
            assert_eq!(long(&fine), [""; 0], "{fine}");
        }
    }

    #[test]
    fn a_sentence_has_at_most_40_words() {
        assert_eq!(long(&wrapped(&of(40))), [""; 0]);
        let found = long(&wrapped(&of(41)));
        assert!(matches!(&found[..], [one] if one.contains("a sentence of 41 words")), "{found:?}");
        let two = format!("{} {}", of(30), of(30));
        assert_eq!(long(&wrapped(&two)), [""; 0]);
    }

    #[test]
    fn items_headings_and_cells_are_apart() {
        let half = "word ".repeat(25).trim_end().to_owned();
        let (first, second) = (wrapped(&half), wrapped(&half));
        for text in [format!("- {first}- {second}"), format!("# {half}\n{second}")] {
            assert!(!long(&text).iter().any(|found| found.contains("sentence")), "{text}");
        }
        assert_eq!(long(&format!("| {half} | {half} |")), [""; 0]);
        let found = long(&format!("| {half} {half} | x |"));
        assert!(matches!(&found[..], [one] if one.contains("50 words")), "{found:?}");
    }

    #[test]
    fn a_comment_begins_with_a_subject() {
        let found = |text: &str| found(subjects, &[("core/a.rs", text)]);
        let wrong = found("/// The nodes.\nfn a() {}\n    // What is left.\n//! Who asks.\n");
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].contains("core/a.rs:3: begins with \"What\""), "{wrong:?}");
        assert_eq!(
            found("/// Whole words: `Offer`.\nlet what = \"What\"; // and what follows\n"),
            [""; 0]
        );
    }

    #[test]
    fn there_is_no_more_to_read_than_agreed() {
        let readme = |count| found(amount, &[("README.md", &of(count))]);
        assert_eq!(readme(README), [""; 0]);
        let more = format!("README.md:0: {} words, at most {README}", README + 1);
        assert_eq!(readme(README + 1), [more]);
        let entries =
            |count| found(amount, &[("docs/glossary.md", &"| **a** | b |\n".repeat(count))]);
        assert_eq!(entries(76), [""; 0]);
        assert_eq!(entries(77), ["docs/glossary.md:0: 77 entries, at most 76"]);
        let all = |count| found(amount, &[("docs/a.md", &of(count)), ("docs/b.md", &of(1))]);
        assert_eq!(all(76_999), [""; 0]);
        assert!(all(ALL)[0].contains(&format!("{} words together", ALL + 1)));
    }
}
