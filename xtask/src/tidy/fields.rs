//! A struct with many fields does too much, unless it does nothing: plain data has as many fields
//! as there is to be told.

use syn::visit::{self, Visit};
use syn::{Fields, ItemStruct};

use super::ceilings::{Breach, FIELDS, compare};
use super::syntax::line;
use super::{Finding, Tree};

const MAX_FIELDS: usize = 20;

/// Where plain data is, by the start of the path, with the reason.
const PLAIN: &[(&str, &str)] = &[
    ("core/wire/src/", "messages"),
    ("io/admin/src/status/", "status"),
    ("io/config/src/", "configuration"),
    ("proof/sim/src/options", "configuration: all that a seed decides"),
    ("proof/sim/src/outcome.rs", "a run in numbers"),
];

pub fn count(tree: &Tree) -> Vec<Finding> {
    compare(tree, breaches(tree), "FIELDS", FIELDS)
}

fn breaches(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, file) in tree.all_parsed() {
        if !PLAIN.iter().any(|(plain, _)| path.starts_with(plain)) {
            Reader { path, breaches: &mut breaches }.visit_file(file);
        }
    }
    breaches
}

struct Reader<'a> {
    path: &'a str,
    breaches: &'a mut Vec<Breach>,
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        if let Fields::Named(fields) = &item.fields
            && fields.named.len() > MAX_FIELDS
        {
            let (name, count) = (&item.ident, fields.named.len());
            let message = format!("struct {name} has {count} fields, the limit is {MAX_FIELDS}");
            let finding = Finding::error(self.path, line(&item.ident), message);
            self.breaches.push(Breach { finding, weight: 1 });
        }
        visit::visit_item_struct(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted(path: &str, fields: usize) -> Vec<String> {
        let fields: String = (0..fields).map(|number| format!("    a{number}: u8,\n")).collect();
        let text = format!("\n#[derive(Clone)]\npub struct Wide {{\n{fields}}}\n");
        let breaches = breaches(&Tree::planted(&[(path, &text)])).into_iter();
        breaches
            .map(|Breach { finding, .. }| format!("{}: {}", finding.line, finding.message))
            .collect()
    }

    #[test]
    fn wide_structs_are_found() {
        let message = "3: struct Wide has 21 fields, the limit is 20";
        assert_eq!(planted("core/ring/src/order.rs", 21), [message]);
        assert_eq!(planted("core/ring/src/order.rs", 20), [""; 0]);
    }

    #[test]
    fn plain_data_may_be_wide() {
        assert_eq!(planted("core/wire/src/ring.rs", 30), [""; 0]);
        assert_eq!(planted("io/admin/src/status/counters.rs", 30), [""; 0]);
    }

    #[test]
    fn the_table_names_what_is_there() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        for (plain, _) in PLAIN {
            let there = root.join(plain).exists() || root.join(format!("{plain}.rs")).exists();
            assert!(there, "{plain} is gone");
        }
    }
}
