//! `--cells`: which cells a system on one machine has, and of how many nodes.

use std::str::FromStr;

use super::plan::CELL_NODES;
use crate::commands::Failure;

/// Nodes of the root, and of the other cells, where only the number of cells is given.
const ROOT_NODES: u8 = 4;
const OTHER_NODES: u8 = 3;

/// Cells below each one, where only the number of cells is given.
const BELOW: [&str; 2] = ["a", "b"];

/// The cells, as they are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cells {
    /// So many, in a tree.
    Tree(u8),
    /// These.
    Listed(Vec<Cell>),
}

/// A cell that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub path: String,
    pub nodes: u8,
}

impl FromStr for Cells {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "write PATH:NODES of each cell, such as porto:4,line-a.porto:3, or a number of cells, 1 to \
             255"
                .to_owned()
        };
        if let Ok(count) = text.parse::<u8>() {
            return if count == 0 { Err(wrong()) } else { Ok(Cells::Tree(count)) };
        }
        let cell = |part: &str| {
            let (path, nodes) = part.trim().split_once(':').ok_or_else(wrong)?;
            let nodes: u8 = nodes.parse().map_err(|_| wrong())?;
            tls::check_path(path).map_err(|error| error.to_string())?;
            if !CELL_NODES.contains(&nodes.into()) {
                return Err(format!("{path} has {nodes} nodes: a cell has 3 to 32"));
            }
            Ok(Cell { path: path.into(), nodes })
        };
        Ok(Cells::Listed(text.split(',').map(cell).collect::<Result<_, _>>()?))
    }
}

impl Cells {
    /// The cells of this system, each behind the one above it: the root first.
    pub fn of(&self, system: &str) -> Result<Vec<Cell>, Failure> {
        let mut cells = match self {
            Cells::Tree(count) => tree(system, (*count).into()),
            Cells::Listed(cells) => cells.clone(),
        };
        if cells.len() > u8::MAX.into() {
            return Err(Failure::Usage("on one machine there are at most 255 cells".into()));
        }
        cells.sort_by_key(|cell| cell.path.split('.').count());
        for (place, Cell { path, .. }) in cells.iter().enumerate() {
            if tls::root_of(path) != system {
                return Err(Failure::Usage(format!(
                    "{path} is no cell of the system {system}: end its path in \".{system}\""
                )));
            }
            let earlier = &cells[..place];
            if earlier.iter().any(|other| other.path == *path) {
                return Err(Failure::Usage(format!("{path} is there twice: name each cell once")));
            }
            if let Some(above) = tls::parent_of(path)
                && !earlier.iter().any(|other| other.path == above)
            {
                return Err(Failure::Usage(format!(
                    "{path} is below {above}, which is not in the list: add {above}:3"
                )));
            }
        }
        Ok(cells)
    }
}

/// So many cells, two below each, level by level.
fn tree(system: &str, count: usize) -> Vec<Cell> {
    let mut cells = vec![Cell { path: system.into(), nodes: ROOT_NODES }];
    for place in 1..count {
        let above = &cells[(place - 1) / BELOW.len()].path;
        let path = format!("{}.{above}", BELOW[(place - 1) % BELOW.len()]);
        cells.push(Cell { path, nodes: OTHER_NODES });
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(cells: &str) -> Vec<String> {
        let cells = cells.parse::<Cells>().unwrap().of("porto").unwrap();
        cells.into_iter().map(|cell| format!("{}:{}", cell.path, cell.nodes)).collect()
    }

    #[test]
    fn a_number_makes_a_tree_of_two_below_each() {
        let seven = ["porto:4", "a.porto:3", "b.porto:3", "a.a.porto:3", "b.a.porto:3"];
        assert_eq!(paths("7"), [&seven[..], &["a.b.porto:3", "b.b.porto:3"]].concat());
        assert_eq!(paths("1"), ["porto:4"]);
        for path in paths("255") {
            assert!(tls::check_path(path.split(':').next().unwrap()).is_ok(), "{path}");
        }
    }

    #[test]
    fn a_list_is_put_in_order_and_checked() {
        let listed = paths("x.line-a.porto:3,line-a.porto:5,porto:32,line-b.porto:3");
        assert_eq!(listed[..2], ["porto:32", "line-a.porto:5"]);
        assert_eq!(listed[2..], ["line-b.porto:3", "x.line-a.porto:3"]);
        for wrong in ["", "0", "256", "porto", "porto:", "porto:2", "porto:33", "Porto:3", "a:3,"] {
            assert!(wrong.parse::<Cells>().is_err(), "{wrong}");
        }
        for (wrong, remedy) in [
            ("porto:3,a.lisboa:3", "end its path in \".porto\""),
            ("porto:3,a.porto:3,a.porto:4", "once"),
            ("a.porto:3", "add porto:3"),
            ("porto:3,x.a.porto:3", "add a.porto:3"),
        ] {
            let Err(Failure::Usage(why)) = wrong.parse::<Cells>().unwrap().of("porto") else {
                panic!("{wrong} was taken")
            };
            assert!(why.contains(remedy), "{why}");
        }
    }
}
