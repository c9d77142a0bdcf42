//! Rust source split into code and comments, so that a word in a string or a comment is not taken
//! for code. Both keep the places of their characters: line numbers stay right.

/// A source file without its strings, with code and comments apart.
pub struct Source {
    /// Comments and the insides of strings and characters are blank.
    pub code: String,
    /// Everything but comments is blank.
    pub comments: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Line,
    /// How deep: block comments nest.
    Block(usize),
    Text,
    /// How many `#` end it.
    Raw(usize),
}

impl Source {
    pub fn new(text: &str) -> Source {
        let chars: Vec<char> = text.chars().collect();
        let mut source = Source { code: String::new(), comments: String::new() };
        let mut part = Part::Code;
        let mut place = 0;
        while place < chars.len() {
            let (taken, next) = step(part, &chars, place);
            for &character in &chars[place..place + taken] {
                source.push(character, part, next);
            }
            place += taken;
            part = next;
        }
        source
    }

    fn push(&mut self, character: char, part: Part, next: Part) {
        let blank = if character == '\n' { '\n' } else { ' ' };
        let comment = |part| matches!(part, Part::Line | Part::Block(_));
        let in_comment = comment(part) || comment(next);
        let in_code = part == Part::Code && next == Part::Code;
        self.code.push(if in_code { character } else { blank });
        self.comments.push(if in_comment { character } else { blank });
    }

    /// The lines of code before the first `#[cfg(test)]`, and those from it on.
    pub fn without_tests(&self) -> (&str, &str) {
        self.code.split_at(self.code.find("#[cfg(test)]").unwrap_or(self.code.len()))
    }
}

/// How many characters belong together here, and what part comes after them.
fn step(part: Part, chars: &[char], place: usize) -> (usize, Part) {
    let at = |offset: usize| chars.get(place + offset).copied().unwrap_or('\0');
    match part {
        Part::Code => step_code(chars, place),
        Part::Line if at(0) == '\n' => (1, Part::Code),
        Part::Block(depth) if at(0) == '/' && at(1) == '*' => (2, Part::Block(depth + 1)),
        Part::Block(depth) if at(0) == '*' && at(1) == '/' => {
            (2, if depth == 1 { Part::Code } else { Part::Block(depth - 1) })
        }
        Part::Text if at(0) == '\\' => (2.min(chars.len() - place), Part::Text),
        Part::Text if at(0) == '"' => (1, Part::Code),
        Part::Raw(hashes) if at(0) == '"' && (1..=hashes).all(|i| at(i) == '#') => {
            (1 + hashes, Part::Code)
        }
        part => (1, part),
    }
}

fn step_code(chars: &[char], place: usize) -> (usize, Part) {
    let at = |offset: usize| chars.get(place + offset).copied().unwrap_or('\0');
    let after_word = place > 0 && is_word(chars[place - 1]);
    match at(0) {
        '/' if at(1) == '/' => (2, Part::Line),
        '/' if at(1) == '*' => (2, Part::Block(1)),
        '"' => (1, Part::Text),
        'r' if !after_word || chars[place - 1] == 'b' => {
            let hashes = (1..).take_while(|&i| at(i) == '#').count();
            if at(1 + hashes) == '"' { (2 + hashes, Part::Raw(hashes)) } else { (1, Part::Code) }
        }
        // A character, and not a lifetime: quoted, or escaped.
        '\'' if at(1) == '\\' => match (3..14).find(|&i| at(i) == '\'') {
            Some(end) => (end + 1, Part::Code),
            None => (1, Part::Code),
        },
        '\'' if at(2) == '\'' => (3, Part::Code),
        _ => (1, Part::Code),
    }
}

pub fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The line of this byte of a text, from 1.
pub fn line_of(text: &str, place: usize) -> usize {
    text[..place].matches('\n').count() + 1
}

/// Places where a word or path stands by itself, not as a part of a longer word.
pub fn places<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(place, _)| place).filter(move |&place| {
        let before = code[..place].chars().next_back();
        let after = code[place + word.len()..].chars().next();
        let begins = word.starts_with(is_word);
        let ends = word.ends_with(is_word);
        let joined = begins && before.is_some_and(is_word) || ends && after.is_some_and(is_word);
        !joined
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new(text).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn strings_and_comments_are_not_code() {
        assert_eq!(code("a(\"x // y\") // b"), "a( )");
        assert_eq!(code("a /* b /* c */ d */ e"), "a e");
        assert_eq!(code(r##"a r#"b "c" d"# e"##), "a e");
        assert_eq!(code(r#"a("b\"c") d"#), "a( ) d");
        assert_eq!(code("a br\"b\" c"), "a b c");
    }

    #[test]
    fn lifetimes_and_quotes_are_told_apart() {
        assert_eq!(code("fn a<'b>(c: &'b str) {}"), "fn a<'b>(c: &'b str) {}");
        assert_eq!(code("if a == '\"' { b }"), "if a == '\"' { b }");
        assert_eq!(code(r"a('\'', '\u{1F600}') // b"), r"a('\'', '\u{1F600}')");
    }

    #[test]
    fn comments_and_lines_keep_their_places() {
        let source = Source::new("a\n// b\n\"c\nd\" e");
        assert_eq!(source.comments.trim(), "// b");
        assert_eq!(line_of(&source.code, source.code.find('e').unwrap()), 4);
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(places("unsafe unsafe_code my_unsafe", "unsafe").count(), 1);
        assert_eq!(places("x.todo!() todo!()", "todo!").count(), 2);
    }
}
