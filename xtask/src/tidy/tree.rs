//! The project's text files, by path.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use super::source::Source;

/// Folders that are not the project's text.
const SKIPPED: &[&str] = &["target", ".git", "proptest-regressions"];

/// Every text file with its path from the project's root, `/` between folders.
#[derive(Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
    // Made when a rule first asks, once for all rules.
    parsed: OnceCell<BTreeMap<String, syn::File>>,
    sources: OnceCell<BTreeMap<String, Source>>,
}

impl Tree {
    /// Reads the files below `root`. Files that are not UTF-8 are no text and are left out.
    pub fn load(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        tree.load_folder(root, "")?;
        Ok(tree)
    }

    fn load_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                if !SKIPPED.contains(&&*name) {
                    self.load_folder(&entry.path(), &format!("{path}/"))?;
                }
            } else if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
                self.files.insert(path, text);
            }
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// A file or a folder of this path exists.
    pub fn contains(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.keys().any(|file| file.starts_with(&folder))
    }

    /// All files whose path ends so, in order.
    pub fn with_suffix<'a>(
        &'a self,
        suffix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.all().filter(move |(path, _)| path.ends_with(suffix))
    }

    /// All files, in order.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// All Rust files as syntax, in order. A file that does not parse is left for the compiler to
    /// refuse.
    pub fn all_parsed(&self) -> &BTreeMap<String, syn::File> {
        self.parsed.get_or_init(|| {
            let files = self.with_suffix(".rs");
            files
                .filter_map(|(path, text)| Some((path.into(), syn::parse_file(text).ok()?)))
                .collect()
        })
    }

    /// All Rust files with code and comments apart, in order.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        let sources = self.sources.get_or_init(|| {
            let files = self.with_suffix(".rs");
            files.map(|(path, text)| (path.into(), Source::new(text))).collect()
        });
        sources.iter().map(|(path, source)| (path.as_str(), source))
    }

    /// A Rust file with its path.
    pub fn parsed(&self, path: &str) -> Option<(&str, &syn::File)> {
        self.all_parsed().get_key_value(path).map(|(path, file)| (path.as_str(), file))
    }

    /// A project of a few planted files.
    #[cfg(test)]
    pub fn planted(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().map(|(path, text)| (path.to_string(), text.to_string()));
        Tree { files: files.collect(), ..Tree::default() }
    }
}

/// The messages of the errors that a rule finds in a planted project.
#[cfg(test)]
pub fn found(rule: super::Rule, files: &[(&str, &str)]) -> Vec<String> {
    let findings = rule(&Tree::planted(files)).into_iter();
    findings
        .map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.message))
        .collect()
}
