//! Colours, where they are wanted, and columns that stand in line all the same.

/// Whether to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(bool);

impl Paint {
    /// Never: for files, and for tests.
    #[cfg(test)]
    pub const PLAIN: Paint = Paint(false);

    /// Colours on a terminal, unless the user has said `NO_COLOR` or the terminal can do nothing.
    pub fn for_stream(terminal: bool) -> Paint {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Paint(terminal && !set("NO_COLOR") && !dumb)
    }

    /// Whether colours are shown.
    pub fn is_on(self) -> bool {
        self.0
    }

    fn code(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Stands out.
    pub fn bold(self, text: &str) -> String {
        self.code("1", text)
    }

    /// Steps back.
    pub fn dim(self, text: &str) -> String {
        self.code("2", text)
    }

    /// All is well.
    pub fn good(self, text: &str) -> String {
        self.code("32", text)
    }

    /// Something is wrong.
    pub fn bad(self, text: &str) -> String {
        self.code("1;31", text)
    }

    /// Look here.
    pub fn warn(self, text: &str) -> String {
        self.code("33", text)
    }

    /// One of a terminal's 256 colours.
    pub fn colour(self, number: u8, text: &str) -> String {
        self.code(&format!("38;5;{number}"), text)
    }

    /// The same behind the text, which is black or white, whatever can be read.
    pub fn behind(self, number: u8, text: &str) -> String {
        let text_colour = if is_light(number) { 30 } else { 97 };
        self.code(&format!("48;5;{number};{text_colour}"), text)
    }
}

/// True for a light colour, by the eye's brightness. The numbers 16 to 231 are a cube of six steps
/// of red, green and blue.
fn is_light(number: u8) -> bool {
    let place = number.saturating_sub(16);
    let (red, green, blue) = (place / 36, place / 6 % 6, place % 6);
    3 * u32::from(red) + 6 * u32::from(green) + u32::from(blue) > 30
}

/// Spaces after the text up to this width; text with colours must be filled before it is painted.
pub fn left(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.chars().count())))
}

/// Spaces before the text up to this width.
pub fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.chars().count())))
}

/// 12345 as 12,345.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// 1 as "1 node", 3 as "3 nodes".
pub fn counted(number: u32, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// A span in milliseconds with three digits that count.
pub fn millis(millis: f64) -> String {
    match millis {
        ms if ms < 9.995 => format!("{ms:.2} ms"),
        ms if ms < 99.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let shown: Vec<_> = [0, 999, 1_000, 20_000, 1_234_567].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1,000", "20,000", "1,234,567"]);
        assert_eq!((counted(1, "node"), counted(3, "node")), ("1 node".into(), "3 nodes".into()));
        let shown: Vec<_> = [0.4, 9.996, 12.34, 99.96, 2_104.0].map(millis).into();
        assert_eq!(shown, ["0.40 ms", "10.0 ms", "12.3 ms", "100 ms", "2.10 s"]);
    }

    #[test]
    fn without_colours_no_escape_is_written() {
        assert_eq!(Paint::PLAIN.bad("lost"), "lost");
        assert_eq!(Paint(true).bad("lost"), "\x1b[1;31mlost\x1b[0m");
        assert_eq!(Paint(true).behind(220, "D"), "\x1b[48;5;220;30mD\x1b[0m", "black on yellow");
        assert_eq!(Paint(true).behind(160, "B"), "\x1b[48;5;160;97mB\x1b[0m", "white on red");
    }

    #[test]
    fn columns_count_letters_not_bytes() {
        assert_eq!(left("Póvoa", 7), "Póvoa  ");
        assert_eq!(right("Árvore", 8), "  Árvore");
    }
}
