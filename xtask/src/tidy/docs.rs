//! Relative links in the documents lead to files, and to headings, that exist.

use super::{Finding, Tree};

pub fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_suffix(".md") {
        for (line, target) in targets(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let Some(file) = resolve(path, file) else {
                let message = format!("{target} leads out of the project");
                findings.push(Finding::error(path, line, message));
                continue;
            };
            if !tree.contains(&file) {
                findings.push(Finding::error(path, line, format!("{target} does not exist")));
                continue;
            }
            let headed = |text: &str| headings(text).any(|found| found == heading);
            if !heading.is_empty() && !tree.get(&file).is_some_and(headed) {
                let message = format!("{target}: there is no such heading");
                findings.push(Finding::error(path, line, message));
            }
        }
    }
    findings
}

/// The lines outside fenced code, with their numbers.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}

/// The targets of `[text](target)` and `[name]: target`, with their lines.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    for (number, line) in prose(text) {
        if let Some((_, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            targets.push((number, target.trim()));
            continue;
        }
        let mut code = false;
        let mut rest = line;
        while let Some(place) = rest.find(['`', ']']) {
            let tick = rest[place..].starts_with('`');
            rest = &rest[place + 1..];
            if tick {
                code = !code;
            } else if let (false, Some(link)) = (code, rest.strip_prefix('(')) {
                let target = link.split([')', ' ']).next().unwrap_or_default();
                targets.push((number, target));
            }
        }
    }
    targets
}

/// The path from the project's root of a link in the document at `from`.
fn resolve(from: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors that a document's headings make.
fn headings(text: &str) -> impl Iterator<Item = String> + '_ {
    prose(text).filter_map(|(_, line)| {
        let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::found;

    fn check(text: &str) -> Vec<String> {
        found(
            links,
            &[("docs/a.md", text), ("docs/b.md", "# One word\n"), ("core/wire/src/lib.rs", "")],
        )
    }

    #[test]
    fn links_that_lead_somewhere_are_accepted() {
        for text in [
            "see [b](b.md), [wire](../core/wire/src/lib.rs) and [folder](../core/)",
            "[b]: b.md",
            "[heading](b.md#one-word)",
            "[web](https://example.org/x)",
            "# Own\n[own](#own)",
            "```\n[no](link.md)\n```",
            "code `a[b](c)` here",
        ] {
            assert_eq!(check(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for (text, expected) in [
            ("[x](c.md)", "c.md does not exist"),
            ("[`x`](c.md)", "c.md does not exist"),
            ("[x]: ../core/wires", "../core/wires does not exist"),
            ("[x](b.md#two-words)", "no such heading"),
            ("[x](../../elsewhere.md)", "out of the project"),
        ] {
            let found = check(text);
            assert!(found.len() == 1 && found[0].contains(expected), "{text}: {found:?}");
        }
    }
}
