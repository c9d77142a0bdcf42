//! The report of the created cells, and of the next steps.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::report::Report;
use crate::commands::Failure;

/// The created cells.
#[derive(Serialize)]
pub struct SystemReport {
    system: String,
    out: PathBuf,
    cells: Vec<CellReport>,
    next: Vec<String>,
    #[serde(skip)]
    local: bool,
}

#[derive(Serialize)]
struct CellReport {
    path: String,
    #[serde(flatten)]
    made: Report,
}

impl SystemReport {
    pub fn new(out: &Path, system: &str, local: bool) -> SystemReport {
        let (system, out) = (system.to_owned(), out.to_owned());
        SystemReport { system, out, cells: Vec::new(), next: Vec::new(), local }
    }

    pub fn add(&mut self, path: &str, made: Report) {
        self.cells.push(CellReport { path: path.to_owned(), made });
    }

    /// Adds the cells of another report of the system.
    pub fn join(&mut self, other: SystemReport) {
        self.cells.extend(other.cells);
    }

    pub fn json(mut self) -> Result<String, Failure> {
        self.next = self.steps();
        let json = serde_json::to_string_pretty(&self).map_err(Failure::failed)?;
        Ok(json + "\n")
    }

    pub fn text(&self) -> String {
        let out = self.out.display();
        let mut text = format!("System \"{}\", in {out}:\n", self.system);
        for CellReport { path, made } in &self.cells {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {} {out}/{path}/", made.summary());
        }
        text += "\nNext:\n";
        for (index, step) in self.steps().iter().enumerate() {
            let _ = writeln!(text, "  {}. {}", index + 1, step.replace('\n', "\n     "));
        }
        text
    }

    fn steps(&self) -> Vec<String> {
        let out = self.out.display();
        let grows = self.cells.iter().any(|cell| cell.made.adds());
        let mut steps = match &self.cells[..] {
            [_, _, ..] if !grows && self.local => self.start_all(),
            cells => cells.iter().flat_map(|cell| cell.made.steps()).collect(),
        };
        let founds = self.cells.iter().any(|cell| !cell.made.adds());
        if !self.local && founds {
            steps.push(format!(
                "Take {out}/authority/authority.key, that of the system, offline when all cells are \
                 made: whoever has it can make any cell. It is needed only for new cells."
            ));
        }
        steps
    }

    /// All cells are on this machine.
    fn start_all(&self) -> Vec<String> {
        let out = self.out.display();
        let mut start = String::from("Start, the root first:");
        for CellReport { path, .. } in &self.cells {
            let _ = write!(
                start,
                "\nfor node in {out}/{path}/node-*; do steadfast node --config \
                 $node/steadfast.toml & done"
            );
        }
        let root = &self.system;
        vec![
            start,
            format!("Have the commands find a cell: steadfast context use {out}/{root}"),
            "Look: steadfast status".into(),
            "Call: steadfast call counter add '[5]'".into(),
        ]
    }
}
