//! No function, of tests or not, is longer than can be read in one go. Code that macros generate is
//! not counted.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, ImplItemFn, ItemFn, Signature, TraitItemFn};

use super::ceilings::{Breach, FUNCTIONS, compare};
use super::syntax::{line, lines};
use super::{Finding, Tree};

/// From its `fn` to its brace.
const MAX_LINES: usize = 100;

pub fn length(tree: &Tree) -> Vec<Finding> {
    compare(tree, breaches(tree), "FUNCTIONS", FUNCTIONS)
}

fn breaches(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, file) in tree.all_parsed() {
        Reader { path, breaches: &mut breaches }.visit_file(file);
    }
    breaches
}

struct Reader<'a> {
    path: &'a str,
    breaches: &'a mut Vec<Breach>,
}

impl Reader<'_> {
    fn measure(&mut self, signature: &Signature, block: &Block) {
        let lines = lines(signature.span(), block.brace_token.span.close());
        if lines > MAX_LINES {
            let name = &signature.ident;
            let message =
                format!("fn {name} has {lines} lines, the limit is {MAX_LINES}: split it");
            let finding = Finding::error(self.path, line(signature), message);
            self.breaches.push(Breach { finding, weight: 1 });
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings for a function of so many lines, planted in this text.
    fn planted(text: &str, lines: usize) -> Vec<String> {
        let function = format!("fn long() {{\n{}}}", "    f();\n".repeat(lines - 2));
        let text = text.replace("LONG", &function);
        let breaches = breaches(&Tree::planted(&[("core/a/src/lib.rs", &text)])).into_iter();
        breaches
            .map(|Breach { finding, .. }| format!("{}: {}", finding.line, finding.message))
            .collect()
    }

    #[test]
    fn long_functions_are_found_wherever_they_are() {
        for text in [
            "\nLONG",
            "impl A {\nLONG\n}",
            "trait A {\nLONG\n}",
            "#[cfg(test)] mod tests {\n#[test] LONG\n}",
            "fn a() {\nLONG\n}",
        ] {
            let found = planted(text, 101);
            let message = "2: fn long has 101 lines, the limit is 100: split it";
            assert!(found.contains(&message.to_owned()), "{text}: {found:?}");
            assert!(planted(text, 90).is_empty(), "{text}");
        }
        assert!(planted("LONG", 100).is_empty());
    }

    #[test]
    fn what_macros_generate_is_not_seen() {
        assert!(planted("macro_rules! a { () => { LONG } }", 200).is_empty());
    }
}
