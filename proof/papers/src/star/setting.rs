//! The parts' common setting, and what they have found.

use std::path::{Path, PathBuf};

use harness::Outcome;
use harness::chart::Chart;
use serde_json::Value;

/// The setting of all parts.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "All parts")]
pub struct Setting {
    /// A Python interpreter with the package: its ranks are measured as well.
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// The examples in Python.
    #[arg(long, value_name = "FOLDER", default_value = "examples/jobs")]
    examples: PathBuf,
    /// Folder of images.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    pub storage: PathBuf,
}

/// All that was found.
#[derive(Default)]
pub struct Found {
    /// Rows of all tables.
    pub rows: Vec<Value>,
    /// Charts, with the names of their files.
    pub charts: Vec<(&'static str, Chart)>,
}

impl Setting {
    /// The command of an example in Python.
    pub fn example(&self, python: &Path, file: &str, argument: &str) -> Outcome<Vec<String>> {
        let file = self.examples.join(file).canonicalize().map_err(|error| {
            format!("--examples: {}: {error}", self.examples.join(file).display())
        })?;
        let words = [python, &file].map(|it| it.to_string_lossy().into_owned());
        Ok(words.into_iter().chain([argument.to_owned()]).collect())
    }
}
