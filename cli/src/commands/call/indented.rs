//! JSON for people, with each number and text as the service wrote it: a tree of values would round
//! numbers of 128 bits.

use serde_json::value::RawValue;

/// # Errors
/// The bytes are no JSON.
pub fn indented(json: &[u8]) -> Result<String, serde_json::Error> {
    let json: &RawValue = serde_json::from_slice(json)?;
    let mut out = Indented::default();
    for letter in json.get().chars() {
        out.take(letter);
    }
    Ok(out.text)
}

#[derive(Default)]
struct Indented {
    text: String,
    depth: usize,
    /// Within a text, after a backslash, after a bracket that opens.
    in_text: bool,
    is_escaped: bool,
    is_open: bool,
}

impl Indented {
    fn take(&mut self, letter: char) {
        if self.in_text {
            self.in_text = self.is_escaped || letter != '"';
            self.is_escaped = !self.is_escaped && letter == '\\';
            self.text.push(letter);
            return;
        }
        match letter {
            _ if letter.is_ascii_whitespace() => return,
            '}' | ']' => {
                self.depth -= 1;
                if !self.is_open {
                    self.line();
                }
            }
            _ if self.is_open => self.line(),
            _ => {}
        }
        self.text.push(letter);
        self.is_open = matches!(letter, '{' | '[');
        match letter {
            '{' | '[' => self.depth += 1,
            ',' => self.line(),
            ':' => self.text.push(' '),
            '"' => self.in_text = true,
            _ => {}
        }
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_as_serde_json_has_it() {
        for json in [
            "5",
            " \"a \\\" ] , \\\\\" ",
            "[]",
            "{ }",
            "[[ ],{}, 1 ,[2, {\"a\":[true]}]]",
            "{\"a\" : {\"b\": [1,2]}, \"c:,\": null}",
        ] {
            let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
            assert_eq!(indented(json.as_bytes()).expect("JSON"), format!("{value:#}"));
        }
    }

    #[test]
    fn numbers_stay_as_they_are() {
        let json = "[1234567890123456789012345,1.50,1e2]";
        let lines = "[\n  1234567890123456789012345,\n  1.50,\n  1e2\n]";
        assert_eq!(indented(json.as_bytes()).expect("JSON"), lines);
        assert!(indented(b"[1").is_err() && indented(b"\"\xff\"").is_err());
    }
}
