//! Serde's rules for the names of fields and variants.

/// A rule of `rename_all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Rule {
    /// The rule of this name.
    pub fn of(name: &str) -> Option<Rule> {
        Some(match name {
            "lowercase" => Rule::Lower,
            "UPPERCASE" => Rule::Upper,
            "PascalCase" => Rule::Pascal,
            "camelCase" => Rule::Camel,
            "snake_case" => Rule::Snake,
            "SCREAMING_SNAKE_CASE" => Rule::ScreamingSnake,
            "kebab-case" => Rule::Kebab,
            "SCREAMING-KEBAB-CASE" => Rule::ScreamingKebab,
            _ => return None,
        })
    }

    /// The name of a field that Rust writes `like_this`.
    pub fn of_field(self, name: &str) -> String {
        match self {
            Rule::Lower | Rule::Snake => name.to_owned(),
            Rule::Upper | Rule::ScreamingSnake => name.to_ascii_uppercase(),
            Rule::Pascal => name.split('_').map(|word| capital(word, true)).collect(),
            Rule::Camel => capital(&Rule::Pascal.of_field(name), false),
            Rule::Kebab => name.replace('_', "-"),
            Rule::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// The name of a variant that Rust writes `LikeThis`.
    pub fn of_variant(self, name: &str) -> String {
        match self {
            Rule::Lower => name.to_ascii_lowercase(),
            Rule::Upper => name.to_ascii_uppercase(),
            Rule::Pascal => name.to_owned(),
            Rule::Camel => capital(name, false),
            Rule::Snake => {
                let mut snake = String::new();
                for (place, letter) in name.char_indices() {
                    if place > 0 && letter.is_uppercase() {
                        snake.push('_');
                    }
                    snake.push(letter.to_ascii_lowercase());
                }
                snake
            }
            Rule::ScreamingSnake => Rule::Snake.of_variant(name).to_ascii_uppercase(),
            Rule::Kebab => Rule::Snake.of_variant(name).replace('_', "-"),
            Rule::ScreamingKebab => Rule::ScreamingSnake.of_variant(name).replace('_', "-"),
        }
    }
}

/// The word with its first letter large or small.
fn capital(word: &str, large: bool) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| match large {
        true => letter.to_ascii_uppercase(),
        false => letter.to_ascii_lowercase(),
    });
    first.into_iter().chain(letters).collect()
}
