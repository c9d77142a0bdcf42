//! The engine's `Stack` composes rooms; its own code is short, and in few files.

use syn::{Item, Type};

use super::ceilings::{Breach, STACK, compare};
use super::syntax::{left_out, line};
use super::{Finding, Tree};

const ENGINE: &str = "core/engine/src/";
const MAX_FILES: usize = 3;

pub fn files(tree: &Tree) -> Vec<Finding> {
    compare(tree, breaches(tree), "STACK", STACK)
}

/// All files with an `impl Stack`, if they are too many.
fn breaches(tree: &Tree) -> Vec<Breach> {
    let mut found = Vec::new();
    for (path, file) in tree.all_parsed().iter().filter(|(path, _)| path.starts_with(ENGINE)) {
        if path.ends_with("/tests.rs") || path.contains("/tests/") {
            continue;
        }
        if let Some(item) = file.items.iter().find(|item| implements(item)) {
            let message = format!("an impl Stack: at most {MAX_FILES} files may have one");
            found.push(Breach { finding: Finding::error(path, line(item), message), weight: 1 });
        }
    }
    if found.len() > MAX_FILES { found } else { Vec::new() }
}

/// This is `impl Stack`, and not that of a trait.
fn implements(item: &Item) -> bool {
    let Item::Impl(block) = item else { return false };
    let Type::Path(of) = &*block.self_ty else { return false };
    let named = of.path.segments.last().is_some_and(|last| last.ident == "Stack");
    named && block.trait_.is_none() && !left_out(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted(texts: &[&str]) -> usize {
        let path = |number| format!("core/engine/src/stack/file{number}.rs");
        let paths: Vec<_> = (0..texts.len()).map(path).collect();
        let files: Vec<_> = paths.iter().map(String::as_str).zip(texts.iter().copied()).collect();
        breaches(&Tree::planted(&files)).len()
    }

    #[test]
    fn three_files_are_enough() {
        let own = "impl<D: Disk> super::Stack<D> { fn f() {} }\nimpl Stack {}";
        assert_eq!(planted(&[own; 3]), 0);
        assert_eq!(planted(&[own; 4]), 4);
    }

    #[test]
    fn other_impls_are_not_counted() {
        let own = "impl Stack {}";
        for other in [
            "impl Drop for Stack {}",
            "impl Other {}",
            "// impl Stack",
            "#[cfg(test)] impl Stack {}",
        ] {
            assert_eq!(planted(&[own, own, own, other]), 0, "{other}");
        }
    }
}
