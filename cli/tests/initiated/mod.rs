//! Folders that `steadfast init` makes, for tests.
// Each test file takes what it needs.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use steadfast::NodeConfig;
use tempfile::TempDir;

use crate::daemon::program;

fn init(arguments: &[&str], folder: &Path) -> Output {
    let mut command: Command = program();
    command.arg("init").args(arguments).arg("--out").arg(folder);
    command.output().expect("the program can be run")
}

pub fn made(arguments: &[&str], folder: &Path) -> String {
    let output = init(arguments, folder);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub fn refused(arguments: &[&str], folder: &Path) -> String {
    let output = init(arguments, folder);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

pub fn plant() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("plant");
    (folder, out)
}

pub fn config(folder: &Path) -> NodeConfig {
    let text = fs::read_to_string(folder.join("steadfast.toml")).unwrap();
    let mut config = NodeConfig::from_toml(&text).unwrap();
    config.resolve(&steadfast::Folders::one(folder));
    config
}

/// The files' sum of bytes and names, to see whether anything has changed.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

/// Four ports that nobody has at the moment.
pub fn free_ports() -> [String; 4] {
    let free = steadfast::free_ring_addresses(4);
    [0, 1, 2, 3].map(|index: usize| free[index].port().to_string())
}
