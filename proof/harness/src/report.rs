//! The output of an experiment: a table for people, or one JSON object a line for programs.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::chart::Chart;
use crate::{Outcome, machine};

/// Leaves figures and charts in a folder, by the names of their files.
pub fn write<N: AsRef<Path>>(
    out: &Path,
    name: &str,
    figures: &Value,
    charts: Vec<(N, Chart)>,
) -> Outcome<()> {
    fs::create_dir_all(out)?;
    fs::write(out.join(name), serde_json::to_string_pretty(figures)? + "\n")?;
    for (name, chart) in charts {
        fs::write(out.join(name), chart.svg())?;
    }
    Ok(())
}

/// A row of these fields, and of more.
pub fn row(fields: impl Serialize, mut more: Value) -> Value {
    if let (Ok(Value::Object(fields)), Some(all)) =
        (serde_json::to_value(fields), more.as_object_mut())
    {
        all.extend(fields);
    }
    more
}

/// All that an experiment has found, where it tells it in the end.
pub trait Findings {
    /// For programs.
    fn json(&self) -> Value;
    /// For people.
    fn print(&self, run: &Run);
}

/// How an experiment is to run, and to tell.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// JSON instead of tables.
    pub json: bool,
    /// In the smallest size: whether it works is all that is asked, not how quickly.
    pub smoke: bool,
}

impl Run {
    /// Prints the machine that it runs on, and these words. In JSON that goes to standard error,
    /// without the words.
    pub fn begin(&self, words: &str) {
        let machine = machine::description();
        match (self.json, words) {
            (true, _) => eprintln!("on {machine}"),
            (false, "") => println!("on {machine}"),
            (false, words) => println!("on {machine}; {words}"),
        }
    }

    /// One finding: as JSON, or in words.
    pub fn tell(&self, line: &Value, words: impl FnOnce() -> String) {
        if self.json {
            println!("{line}");
        } else {
            println!("{}", words());
        }
    }

    /// All that was found: as one JSON object, or in words and tables.
    pub fn found(&self, findings: &impl Findings) {
        if self.json {
            println!("{}", findings.json());
        } else {
            findings.print(self);
        }
    }

    /// A table with these columns, between commas. Each says which field of a row it shows, and
    /// how: `gap ms=gap/p50:9.1` has the head `gap ms`, and the field `p50` of the field `gap` in
    /// nine places with one digit behind the point. With `<` it is on the left. Without a head of
    /// its own the field is the head.
    pub fn table(&self, columns: &'static str) -> Table {
        let table = Table { cells: columns.split(',').map(Cell::new).collect(), json: self.json };
        if !self.json {
            table.line(|cell| cell.head.into());
        }
        table
    }

    /// The usual number of something, or the smallest.
    pub fn sized<T>(&self, usual: T, smallest: T) -> T {
        if self.smoke { smallest } else { usual }
    }
}

/// A column.
struct Cell {
    head: &'static str,
    path: String,
    left: bool,
    width: usize,
    digits: Option<usize>,
}

impl Cell {
    fn new(column: &'static str) -> Cell {
        let column = column.trim();
        let (head, field) = column.split_once('=').unwrap_or(("", column));
        let (path, format) = field.split_once(':').unwrap_or((field, ""));
        let head = if column.contains('=') { head } else { path };
        let number = format.trim_start_matches('<');
        let (width, digits) = number.split_once('.').unwrap_or((number, ""));
        Cell {
            head,
            path: format!("/{path}"),
            left: format.starts_with('<'),
            width: width.parse().unwrap_or(0),
            digits: digits.parse().ok(),
        }
    }

    fn text(&self, row: &Value) -> String {
        match (row.pointer(&self.path), self.digits) {
            (None | Some(Value::Null), _) => "-".into(),
            (Some(Value::String(text)), _) => text.clone(),
            (Some(Value::Array(values)), _) => {
                values.iter().map(Value::to_string).collect::<Vec<_>>().join(" ")
            }
            (Some(Value::Object(fields)), _) => {
                let fields = fields.iter().map(|(name, value)| format!("{name} {value}"));
                fields.collect::<Vec<_>>().join(", ")
            }
            (Some(value), Some(digits)) => {
                value.as_f64().map_or_else(|| value.to_string(), |it| format!("{it:.digits$}"))
            }
            (Some(value), None) => value.to_string(),
        }
    }
}

/// Rows of one kind.
pub struct Table {
    cells: Vec<Cell>,
    json: bool,
}

impl Table {
    /// Tells a row: all of it as JSON, else what the columns show.
    pub fn row(&self, row: &Value) {
        if self.json {
            println!("{row}");
        } else {
            self.line(|cell| cell.text(row));
        }
    }

    fn line(&self, text: impl Fn(&Cell) -> String) {
        let cells = self.cells.iter().enumerate().map(|(place, cell)| {
            let (text, width) = (text(cell), cell.width);
            match (cell.left, place) {
                (true, 0) => format!("{text:<width$}"),
                (true, _) => format!("  {text:<width$}"),
                (false, _) => format!("{text:>width$}"),
            }
        });
        println!("{}", cells.collect::<String>().trim_end());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_column_shows_a_field_as_it_says() {
        let row =
            json!({ "name": "n1", "gap": { "p50": 1.25 }, "none": null, "all": [1, 2], "n": 7 });
        let shown = |field| Cell::new(field).text(&row);
        assert_eq!(shown("name:<8"), "n1");
        assert_eq!(shown("gap/p50:9.1"), "1.2");
        assert_eq!(shown("n:9.1"), "7.0");
        assert_eq!(
            (shown("n:9"), shown("none:9.1"), shown("missing")),
            ("7".into(), "-".into(), "-".into())
        );
        assert_eq!(shown("all"), "1 2");
        let cell = Cell::new(" gap ms=gap/p50:9.1");
        assert_eq!((cell.head, cell.path.as_str(), cell.width), ("gap ms", "/gap/p50", 9));
    }
}
