//! Which file uses which: every place in a crate where one file names what another one defines.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemUse, Local, Macro, PatIdent, Path, Visibility};

use super::Tree;
use super::modules::{Modules, Target, hands_on, imports};
use super::syntax::{left_out, left_out_by};

/// For each file, those that it uses, with the lines where it does.
pub type Uses<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<usize>>>;

/// Folders with a crate.
pub fn crates(tree: &Tree) -> Vec<&str> {
    tree.with_suffix("/Cargo.toml").map(|(path, _)| path.trim_end_matches("/Cargo.toml")).collect()
}

/// The crate that a file belongs to.
pub fn crate_of<'a>(crates: &[&'a str], path: &str) -> &'a str {
    let holds = |folder: &&&str| path.strip_prefix(**folder).is_some_and(|r| r.starts_with('/'));
    crates.iter().filter(holds).max_by_key(|folder| folder.len()).copied().unwrap_or("")
}

/// The uses within a crate's library and program, without their tests.
///
/// A `pub use` alone is no use: it re-exports a name, and its users use the file that defines it.
/// An imported module is no use either; the names taken from it are. Methods are called without a
/// path and are not seen; the names of their types are.
pub fn uses<'a>(tree: &'a Tree, folder: &str) -> Uses<'a> {
    let mut uses = Uses::new();
    for root in ["lib.rs", "main.rs"] {
        let root = format!("{folder}/src/{root}");
        let Some((root, _)) = tree.parsed(&root) else { continue };
        let modules = Modules::load(tree, root);
        for (own, module) in modules.all.iter().enumerate() {
            let (modules, uses) = (&modules, &mut uses);
            let mut reader = Reader { modules, own, in_block: false, locals: Vec::new(), uses };
            for item in module.items {
                reader.visit_item(item);
            }
        }
    }
    uses
}

struct Reader<'m, 'a> {
    modules: &'m Modules<'a>,
    own: usize,
    in_block: bool,
    /// Variables of the function that is read: they hide what has their names outside.
    locals: Vec<String>,
    uses: &'m mut Uses<'a>,
}

impl Reader<'_, '_> {
    fn note(&mut self, target: Target, line: usize) {
        let file = |module: usize| self.modules.all[module].file;
        let (from, to) = (file(self.own), file(target.module()));
        if from != to {
            self.uses.entry(from).or_default().entry(to).or_default().insert(line);
        }
    }

    fn note_path(&mut self, path: &[String], line: usize) {
        match self.modules.resolve(self.own, path) {
            // A variable, rather than the module or function of that name.
            Some(Target::Module(_)) if path.len() == 1 => {}
            Some(Target::Value(_)) if path.len() == 1 && self.locals.contains(&path[0]) => {}
            Some(target) => self.note(target, line),
            None => {}
        }
    }

    /// Paths in a macro's arguments. A name after a dot is a field or a method.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let is = |place: usize, wanted: char| match tokens.get(place) {
            Some(TokenTree::Punct(punct)) => punct.as_char() == wanted,
            _ => false,
        };
        let mut place = 0;
        while let Some(token) = tokens.get(place) {
            let of_value = place > 0 && is(place - 1, '.');
            match token {
                TokenTree::Group(group) => self.note_tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let mut path = vec![first.to_string()];
                    while is(place + 1, ':') && is(place + 2, ':') {
                        let Some(TokenTree::Ident(next)) = tokens.get(place + 3) else { break };
                        path.push(next.to_string());
                        place += 3;
                    }
                    if !of_value {
                        self.note_path(&path, first.span().start().line);
                    }
                }
                _ => {}
            }
            place += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_, '_> {
    fn visit_item(&mut self, item: &'ast Item) {
        // Modules within a file are among the crate's modules.
        let inner = matches!(item, Item::Mod(_)) && !self.in_block;
        let pattern = matches!(item, Item::Macro(item) if item.ident.is_some());
        if !left_out(item) && !inner && !pattern {
            let outside = self.locals.len();
            visit::visit_item(self, item);
            self.locals.truncate(outside);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !left_out_by(&function.attrs) {
            let outside = self.locals.len();
            visit::visit_impl_item_fn(self, function);
            self.locals.truncate(outside);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        // The initial value does not see the new variable yet.
        if let Some(init) = &local.init {
            self.visit_local_init(init);
        }
        self.visit_pat(&local.pat);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        let name = pattern.ident.to_string();
        if name.starts_with(char::is_uppercase) {
            self.note_path(&[name], super::syntax::line(pattern));
        } else {
            self.locals.push(name);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let outside = std::mem::replace(&mut self.in_block, true);
        visit::visit_block(self, block);
        self.in_block = outside;
    }

    fn visit_item_use(&mut self, declared: &'ast ItemUse) {
        if declared.leading_colon.is_some() || hands_on(declared) && !self.in_block {
            return;
        }
        for import in imports(&declared.tree) {
            match self.modules.resolve(self.own, &import.path) {
                // The names of a block are not known later, so that this is what can be seen.
                Some(target @ Target::Module(_)) if self.in_block || import.glob => {
                    self.note(target, import.line);
                }
                Some(target @ (Target::Item(_) | Target::Value(_))) => {
                    self.note(target, import.line)
                }
                _ => {}
            }
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            let names: Vec<_> = path.segments.iter().map(|part| part.ident.to_string()).collect();
            self.note_path(&names, super::syntax::line(path));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.note_tokens(call.tokens.clone());
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// Files in circles, each circle once: the files that a file reaches and that reach it.
pub fn circles<'a>(uses: &Uses<'a>) -> Vec<BTreeSet<&'a str>> {
    let reached: BTreeMap<_, _> = uses.keys().map(|file| (*file, reach(uses, file))).collect();
    let mut circles: Vec<BTreeSet<_>> = Vec::new();
    for (file, from) in &reached {
        if from.contains(file) && !circles.iter().any(|circle| circle.contains(file)) {
            let back = |other: &&&str| reached.get(**other).is_some_and(|all| all.contains(file));
            circles.push(from.iter().filter(back).copied().collect());
        }
    }
    circles
}

fn reach<'a>(uses: &Uses<'a>, file: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![file];
    while let Some(file) = open.pop() {
        for next in uses.get(file).into_iter().flat_map(|next| next.keys()) {
            if reached.insert(*next) {
                open.push(next);
            }
        }
    }
    reached
}

/// The shortest way from a file back to itself, as files with the lines where they use the next.
pub fn shortest<'a>(uses: &Uses<'a>, circle: &BTreeSet<&'a str>) -> Vec<(&'a str, usize)> {
    let ways = circle.iter().filter_map(|start| way_back(uses, start));
    ways.min_by_key(Vec::len).unwrap_or_default()
}

fn way_back<'a>(uses: &Uses<'a>, start: &'a str) -> Option<Vec<(&'a str, usize)>> {
    let mut came_from: BTreeMap<&str, (&'a str, usize)> = BTreeMap::new();
    let mut open = std::collections::VecDeque::from([start]);
    while let Some(file) = open.pop_front() {
        for (next, lines) in uses.get(file).into_iter().flatten() {
            came_from.entry(next).or_insert_with(|| {
                open.push_back(next);
                (file, lines.first().copied().unwrap_or_default())
            });
        }
    }
    let mut way = Vec::new();
    let mut place = start;
    loop {
        let (before, line) = *came_from.get(place)?;
        way.push((before, line));
        place = before;
        if place == start {
            break;
        }
    }
    way.reverse();
    Some(way)
}
