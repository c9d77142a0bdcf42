//! The rooms of the engine: the modules of `core/engine/src`. Each sees only those below it; only
//! `stack` sees all.

use std::collections::BTreeMap;

use super::source::{Source, is_word, line_of, places};
use super::{Finding, Tree};

const ENGINE: &str = "core/engine/src/";

/// From the ground up. Rooms on one floor do not see each other.
const FLOORS: &[&[&str]] = &[
    &["bug", "changes", "disk", "ordering", "pace", "style"],
    &["api", "component_order"],
    &["roll"],
    &[
        "bench",
        "callers",
        "faults",
        "keys",
        "levels",
        "outgoing",
        "quorum",
        "session",
        "stopwatch",
        "tally",
    ],
    &["component", "directory", "replica"],
    &["parts"],
    &["base"],
    &["replies"],
    &["replicas"],
    &["groups"],
    &["stack"],
];

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

pub fn directions(tree: &Tree) -> Vec<Finding> {
    let lib = Source::new(tree.get(&format!("{ENGINE}lib.rs")).unwrap_or_default());
    let exported = exports(&lib.code);
    let mut findings = Vec::new();
    for (path, text) in tree.with_suffix(".rs") {
        let Some(inner) = path.strip_prefix(ENGINE) else { continue };
        if inner == "lib.rs" {
            continue;
        }
        let room = inner.split(['/', '.']).next().unwrap_or_default();
        let Some(own) = floor(room) else {
            let message = format!("say in xtask/src/tidy/rooms.rs on which floor {room} is");
            findings.push(Finding::error(path, 0, message));
            continue;
        };
        let code = Source::new(text).code;
        let depth = inner.trim_end_matches("/mod.rs").matches('/').count();
        for (place, name) in references(&code, depth) {
            let seen = exported.get(name).copied().unwrap_or(name);
            let above = floor(seen).is_some_and(|seen| seen >= own);
            if seen != room && above {
                let message = format!("{room} must not see {seen}: it is not below");
                findings.push(Finding::error(path, line_of(&code, place), message));
            }
        }
    }
    findings
}

/// The names that the crate's root exports, with the room of each.
fn exports(lib: &str) -> BTreeMap<&str, &str> {
    let mut exported = BTreeMap::new();
    for place in places(lib, "use") {
        let statement = &lib[place + "use".len()..];
        let statement = statement.split(';').next().unwrap_or_default().trim();
        let (room, _) = statement.split_once("::").unwrap_or_default();
        if floor(room).is_some() {
            let words = statement.split(|c| !is_word(c)).filter(|word| !word.is_empty());
            exported.extend(words.skip(1).map(|word| (word, room)));
        }
    }
    exported
}

/// Names taken from the crate's root, with their places: after `crate::`, or after as many
/// `super::` as the file is deep.
fn references(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let supers = "super::".repeat(depth + 1);
    let mut references = Vec::new();
    for prefix in ["crate::", &supers] {
        for (place, _) in code.match_indices(prefix) {
            if code[..place].ends_with(|c| is_word(c) || c == ':') {
                continue;
            }
            let rest = &code[place + prefix.len()..];
            references.extend(first_names(rest).into_iter().map(|name| (place, name)));
        }
    }
    references
}

/// `a::b` gives `a`; `{a::{b, c}, d}` gives `a` and `d`.
fn first_names(path: &str) -> Vec<&str> {
    let word = |text: &'_ str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    let Some(group) = path.strip_prefix('{') else { return vec![&path[..word(path)]] };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (place, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                let name = group[start..place].trim_start();
                names.push(&name[..word(name)]);
                start = place + 1;
                if character == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::found;

    const LIB: (&str, &str) =
        ("core/engine/src/lib.rs", "pub use api::{Config, Output};\npub use stack::Stack;\n");

    fn in_room(room: &str, text: &str) -> Vec<String> {
        found(directions, &[LIB, (&format!("core/engine/src/{room}.rs"), text)])
    }

    #[test]
    fn downwards_is_allowed() {
        assert_eq!(in_room("stack", "use crate::quorum::Verdict;\nuse crate::Config;"), [""; 0]);
        assert_eq!(in_room("quorum", "use crate::api::Quorum;\n// use crate::stack;"), [""; 0]);
        assert_eq!(in_room("session", "use super::api::Ticket;"), [""; 0]);
        assert_eq!(in_room("session/kept", "use super::super::api::Ticket;"), [""; 0]);
    }

    #[test]
    fn upwards_and_sideways_are_refused() {
        for text in [
            "use crate::stack::Stack;",
            "use crate::Stack;",
            "use crate::{api::{Ticket, Output}, stack::Stack};",
            "use crate::{\n    Config,\n    Stack,\n};",
            "use super::stack::Stack;",
            "fn a() -> crate::stack::Stack {}",
        ] {
            let found = in_room("quorum", text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].contains("quorum must not see stack"), "{found:?}");
        }
        assert_eq!(in_room("session", "use crate::quorum::Verdict;").len(), 1);
        assert_eq!(in_room("session/kept", "use super::super::quorum::Verdict;").len(), 1);
    }

    #[test]
    fn a_new_room_needs_a_floor() {
        assert!(in_room("cellar", "")[0].contains("on which floor cellar is"));
    }
}
