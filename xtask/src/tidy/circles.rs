//! No circle of files within a crate: a file that others use can be read, tested and moved without
//! them.
//!
//! A parent that declares or re-exports its children does not use them by that. Where two files
//! need each other, the part that both need belongs into a third one.

use super::ceilings::{Breach, CIRCLES, compare};
use super::uses::{circles as in_circles, crates, shortest, uses};
use super::{Finding, Tree};

pub fn circles(tree: &Tree) -> Vec<Finding> {
    compare(tree, breaches(tree), "CIRCLES", CIRCLES)
}

/// Each circle once, with the shortest of its chains.
fn breaches(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for folder in crates(tree) {
        let uses = uses(tree, folder);
        for circle in in_circles(&uses) {
            let chain = shortest(&uses, &circle);
            let Some(&(path, line)) = chain.first() else { continue };
            let short = |path: &str| path.trim_start_matches(&format!("{folder}/src/")).to_owned();
            let places = chain.iter().map(|(path, line)| format!("{}:{line}", short(path)));
            let chain = places.collect::<Vec<_>>().join(" -> ");
            let message = format!("{} files in a circle: {chain} -> {}", circle.len(), short(path));
            let finding = Finding::error(path, line, message);
            breaches.push(Breach { finding, weight: circle.len() });
        }
    }
    breaches
}

/// Every use within the circles of a crate, with its lines: where to look when one is opened.
pub fn within(tree: &Tree, folder: &str) -> Vec<String> {
    let uses = uses(tree, folder);
    let mut told = Vec::new();
    for circle in in_circles(&uses) {
        told.push(format!("{} files in a circle:", circle.len()));
        for file in &circle {
            for (used, lines) in uses[file].iter().filter(|(used, _)| circle.contains(**used)) {
                let lines: Vec<_> = lines.iter().map(usize::to_string).collect();
                told.push(format!("  {file} -> {used} ({})", lines.join(", ")));
            }
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles of a crate of these files, named by their paths in `src`.
    fn in_crate(files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<_> = files.iter().map(|(path, _)| format!("core/a/src/{path}")).collect();
        let texts = files.iter().map(|(_, text)| *text);
        let mut planted = vec![("core/a/Cargo.toml", "")];
        planted.extend(paths.iter().map(String::as_str).zip(texts));
        let breaches = breaches(&Tree::planted(&planted)).into_iter();
        breaches.map(|breach| breach.finding.message).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn two_siblings_that_need_each_other_are_a_circle() {
        let found = in_crate(&[
            ("lib.rs", "mod one;\nmod two;"),
            ("one.rs", "use crate::two::Two;\npub struct One(Two);"),
            ("two.rs", "\npub struct Two;\nfn f(one: &super::one::One) {}"),
        ]);
        assert_eq!(found, ["2 files in a circle: one.rs:1 -> two.rs:3 -> one.rs"]);
    }

    #[test]
    fn a_line_downwards_is_no_circle() {
        let lib = ("lib.rs", "mod one;\nmod two;\npub use one::One;");
        let one = ("one.rs", "use super::two;\npub struct One(two::Two);");
        assert_eq!(in_crate(&[lib, one, ("two.rs", "pub struct Two;")]), NONE);
    }

    #[test]
    fn a_child_and_its_parent_may_be_a_circle() {
        let child = ("one/child.rs", "use super::Kind;\npub fn of(kind: Kind) {}");
        let lib = ("lib.rs", "mod one;");
        let parent = "mod child;\npub enum Kind { A }\nfn f() { child::of(Kind::A) }";
        let found = in_crate(&[lib, child, ("one.rs", parent)]);
        assert_eq!(found, ["2 files in a circle: one.rs:3 -> one/child.rs:1 -> one.rs"]);
        // Declared, and handed on, but not used.
        let parent = "mod child;\npub use child::of;\npub enum Kind { A }";
        assert_eq!(in_crate(&[lib, child, ("one.rs", parent)]), NONE);
        let parent = "mod child;\npub use child::of;\npub enum Kind { A }\nfn f() { of(Kind::A) }";
        assert_eq!(in_crate(&[lib, child, ("one.rs", parent)]).len(), 1);
    }

    #[test]
    fn what_is_handed_on_is_where_it_is_defined() {
        let lib =
            ("lib.rs", "mod one;\nmod two;\npub use two::{Two, three as four};\nuse one::One;");
        let two = (
            "two.rs",
            "pub use other::Else;\nmod three;\npub use three::*;\npub struct Two(One);\nuse crate::One;",
        );
        let three = ("two/three.rs", "pub fn three() {}\npub enum Three {}");
        let one = |text| in_crate(&[lib, two, three, ("one.rs", text)]);
        assert_eq!(one("pub struct One;\nuse crate::two::Three;"), NONE);
        assert_eq!(one("pub struct One;\nfn f() { crate::four() }"), NONE);
        assert_eq!(one("pub struct One;\nuse crate::two::Else;"), NONE);
        assert_eq!(one("pub struct One;\nuse crate::Two;").len(), 1);
    }

    #[test]
    fn circles_are_seen_however_they_are_spelt() {
        let lib = ("lib.rs", "mod one;\nmod two { pub mod three; }");
        let three = ("two/three.rs", "pub struct Three(crate::one::One);\npub fn f() {}");
        for text in [
            "use crate::two::three::{self, Three};\nfn f() {}",
            "use super::two::three;\nfn f() -> three::Three {}",
            "use super::two::*;\nfn f() { assert!(a.b, \"{}\", three::Three::new()) }",
            "fn f() { use crate::two::three; three::f() }",
            "pub use crate::two::three::f;\nfn g() { let f = f(); }",
            "fn f() { vec![0, crate::two::three::f()]; }",
            "impl From<crate::two::three::Three> for One {}",
            "mod inner { use super::super::two::three::Three; }",
        ] {
            let one = format!("pub struct One;\n{text}");
            assert_eq!(in_crate(&[lib, three, ("one.rs", &one)]).len(), 1, "{text}");
        }
        for text in [
            "pub(in crate::two) fn f() {}",
            "use crate::two::three;\nfn f(three: u8) -> u8 { three }",
            "/// [`crate::two::three::Three`]\nfn f() {}",
            "fn f() { three::Three::new() }",
            "pub use crate::two::three::f;\nfn g(f: u8) -> u8 { f }",
            // The function is re-exported; the code uses a crate of its name.
            "pub use crate::two::three::f;\nfn g() { f::Other::new() }",
            "use crate::two::three;\nuse two::two;\nfn f() { two::Other::new() }",
            "macro_rules! f { () => { crate::two::three::f() } }",
        ] {
            let one = format!("pub struct One;\n{text}");
            assert_eq!(in_crate(&[lib, three, ("one.rs", &one)]), NONE, "{text}");
        }
    }

    #[test]
    fn the_uses_within_a_circle_are_told_with_their_lines() {
        let tree = Tree::planted(&[
            ("core/a/src/lib.rs", "mod one;\nmod two;\nfn f() { one::f() }"),
            ("core/a/src/one.rs", "use crate::two::Two;\npub fn f() -> Two {}"),
            ("core/a/src/two.rs", "pub struct Two;\nfn f() { crate::one::f() }"),
        ]);
        assert_eq!(
            within(&tree, "core/a"),
            [
                "2 files in a circle:",
                "  core/a/src/one.rs -> core/a/src/two.rs (1, 2)",
                "  core/a/src/two.rs -> core/a/src/one.rs (2)",
            ]
        );
    }

    #[test]
    fn tests_and_documentation_are_left_out() {
        let lib = ("lib.rs", "mod one;\nmod two;");
        let two = ("two.rs", "use crate::one::One;\npub struct Two;");
        for text in [
            "pub struct One;\n#[cfg(test)]\nmod tests { use crate::two::Two; }",
            "pub struct One;\n#[cfg(test)]\nmod tests;",
            "pub struct One;\n#[cfg(doc)]\nuse crate::two::Two;",
            "pub struct One;\n#[cfg(test)]\nfn f() -> crate::two::Two {}",
        ] {
            let tests = ("one/tests.rs", "use crate::two::Two;");
            assert_eq!(in_crate(&[lib, two, tests, ("one.rs", text)]), NONE, "{text}");
        }
    }

    #[test]
    fn each_circle_is_told_once_with_all_its_files_and_its_shortest_chain() {
        let found = in_crate(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\nmod e;"),
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "use crate::c::C;\npub struct B;"),
            ("c.rs", "use crate::{a::A,\n    b::B};\npub struct C;"),
            ("d.rs", "use crate::{a::A, e::E};\npub struct D;"),
            ("e.rs", "use crate::d::D;\npub struct E;"),
        ]);
        assert_eq!(
            found,
            [
                "3 files in a circle: b.rs:1 -> c.rs:2 -> b.rs",
                "2 files in a circle: d.rs:1 -> e.rs:1 -> d.rs",
            ]
        );
    }
}
