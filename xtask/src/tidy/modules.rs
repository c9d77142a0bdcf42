//! A crate's modules: which names each of them has, and in which file the thing behind a path is
//! defined.

use std::collections::BTreeMap;

use syn::{Item, UseTree, Visibility};

use super::Tree;
use super::syntax::left_out;

/// All modules below one root, `lib.rs` or `main.rs`, but for those of tests.
pub struct Modules<'a> {
    pub all: Vec<Module<'a>>,
}

pub struct Module<'a> {
    pub file: &'a str,
    pub items: &'a [Item],
    parent: Option<usize>,
    names: BTreeMap<String, Vec<Name>>,
    /// Modules and enums whose names are all seen here.
    globs: Vec<Vec<String>>,
}

/// The meaning of a name: a module and, say, a function may share one.
#[derive(Clone)]
enum Name {
    Module(usize),
    /// A type, or another item that may have names of its own.
    Item,
    /// A function or a constant: no path goes on behind it.
    Value,
    Imported(Vec<String>),
}

/// The target of a path, as the number of a module.
#[derive(Clone, Copy, PartialEq)]
pub enum Target {
    Module(usize),
    /// Something that the module defines.
    Item(usize),
    Value(usize),
}

/// One name that a `use` brings in.
pub struct Import {
    pub path: Vec<String>,
    /// Nothing for `*` and `_`.
    pub name: Option<String>,
    pub glob: bool,
    pub line: usize,
}

/// Re-exports of re-exports end long before; a name that imports itself ends here.
const DEEPEST: usize = 16;

impl<'a> Modules<'a> {
    pub fn load(tree: &'a Tree, root: &'a str) -> Self {
        let mut modules = Modules { all: Vec::new() };
        if let Some((_, file)) = tree.parsed(root) {
            let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
            modules.add(tree, root, folder, None, &file.items);
        }
        modules
    }

    /// `folder` is where the files of its children lie.
    fn add(
        &mut self,
        tree: &'a Tree,
        file: &'a str,
        folder: &str,
        parent: Option<usize>,
        items: &'a [Item],
    ) -> usize {
        let own = self.all.len();
        let (names, globs) = (BTreeMap::new(), Vec::new());
        self.all.push(Module { file, items, parent, names, globs });
        for item in items.iter().filter(|item| !left_out(item)) {
            match item {
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let folder = format!("{folder}/{name}");
                    let number = match &child.content {
                        Some((_, items)) => self.add(tree, file, &folder, Some(own), items),
                        None => {
                            let paths = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
                            let found = paths.iter().find_map(|path| tree.parsed(path));
                            let Some((file, parsed)) = found else { continue };
                            self.add(tree, file, &folder, Some(own), &parsed.items)
                        }
                    };
                    self.name(own, name, Name::Module(number));
                }
                Item::Use(declared) => {
                    for import in imports(&declared.tree) {
                        if import.glob {
                            self.all[own].globs.push(import.path);
                        } else if let Some(name) = import.name {
                            self.name(own, name, Name::Imported(import.path));
                        }
                    }
                }
                item => {
                    if let Some(name) = defined(item) {
                        let value = matches!(item, Item::Const(_) | Item::Fn(_) | Item::Static(_));
                        self.name(own, name, if value { Name::Value } else { Name::Item });
                    }
                }
            }
        }
        own
    }

    fn name(&mut self, module: usize, name: String, meaning: Name) {
        self.all[module].names.entry(name).or_default().push(meaning);
    }

    /// The target of a path in this module; `None` if it leads out of the crate.
    pub fn resolve(&self, module: usize, path: &[String]) -> Option<Target> {
        self.walk(module, path, 0)
    }

    fn walk(&self, module: usize, path: &[String], depth: usize) -> Option<Target> {
        if depth > DEEPEST {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(module),
            "super" => Target::Module(self.all[module].parent?),
            name => self.look_up(module, name, rest.is_empty(), depth)?,
        };
        for (index, name) in rest.iter().enumerate() {
            let Target::Module(within) = target else { break };
            let last = index + 1 == rest.len();
            target = match name.as_str() {
                "super" => Target::Module(self.all[within].parent?),
                name => match self.look_up(within, name, last, depth) {
                    Some(target) => target,
                    // It is handed on from another crate.
                    None if self.all[within].names.contains_key(name) => return None,
                    // A name that nobody defines comes from a macro there.
                    None => Target::Item(within),
                },
            };
        }
        Some(target)
    }

    /// At its end a path means the item rather than a module of the same name.
    fn look_up(&self, module: usize, name: &str, last: bool, depth: usize) -> Option<Target> {
        let meanings = self.all[module].names.get(name).map_or(&[][..], Vec::as_slice);
        let mut found: Vec<_> = meanings
            .iter()
            .filter_map(|meaning| match meaning {
                Name::Module(number) => Some(Target::Module(*number)),
                Name::Item => Some(Target::Item(module)),
                Name::Value => Some(Target::Value(module)),
                Name::Imported(path) => self.walk(module, path, depth + 1),
            })
            .collect();
        if meanings.is_empty() {
            found.extend(self.all[module].globs.iter().filter_map(|path| {
                match self.walk(module, path, depth + 1)? {
                    Target::Module(seen) => self.look_up(seen, name, last, depth + 1),
                    Target::Item(_) | Target::Value(_) => None,
                }
            }));
        }
        found.retain(|target| last || !matches!(target, Target::Value(_)));
        let wanted = found.iter().find(|target| matches!(target, Target::Module(_)) != last);
        wanted.or(found.first()).copied()
    }
}

impl Target {
    pub fn module(self) -> usize {
        match self {
            Target::Module(number) | Target::Item(number) | Target::Value(number) => number,
        }
    }
}

/// The name of what an item defines.
fn defined(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Whether others may see what this brings in: it hands on, and uses nothing by itself.
pub fn hands_on(declared: &syn::ItemUse) -> bool {
    !matches!(declared.vis, Visibility::Inherited)
}

/// Every name of a `use`, with its whole path.
pub fn imports(tree: &UseTree) -> Vec<Import> {
    let mut found = Vec::new();
    collect(tree, &mut Vec::new(), &mut found);
    found
}

fn collect(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<Import>) {
    let import = |mut path: Vec<String>, ident: &syn::Ident, name: &syn::Ident| {
        if ident != "self" {
            path.push(ident.to_string());
        }
        let name = if name == "self" { path.last().cloned() } else { Some(name.to_string()) };
        let name = name.filter(|name| name != "_");
        Import { path, name, glob: false, line: ident.span().start().line }
    };
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            collect(&step.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                collect(tree, path, found);
            }
        }
        UseTree::Name(leaf) => found.push(import(path.clone(), &leaf.ident, &leaf.ident)),
        UseTree::Rename(leaf) => found.push(import(path.clone(), &leaf.ident, &leaf.rename)),
        UseTree::Glob(star) => {
            let line = star.star_token.spans[0].start().line;
            found.push(Import { path: path.clone(), name: None, glob: true, line });
        }
    }
}
