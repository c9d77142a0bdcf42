//! Names of protobuf as Rust writes them.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Ident, ItemTrait};

/// `PlaceOrder` and `placeOrder` are `place_order`, `GetHTTPStatus` is `get_http_status`.
pub fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(index + 1);
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                before != '_'
                    && (!before.is_uppercase() || after.is_some_and(|after| after.is_lowercase()))
            });
        if begins {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `place_order`, `PLACE_ORDER` and `PlaceOrder` are `PlaceOrder`.
pub fn pascal(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let rest = |letters: std::str::Chars<'_>| letters.as_str().to_owned();
        let is_loud = !word.chars().any(char::is_lowercase);
        match letters.next() {
            None => String::new(),
            Some(first) if is_loud => {
                first.to_uppercase().chain(rest(letters).to_lowercase().chars()).collect()
            }
            Some(first) => first.to_uppercase().collect::<String>() + letters.as_str(),
        }
    };
    name.split('_').map(word).collect()
}

/// A variant's name without its enum's: `STATE_PAID_OUT` of `State` is `PaidOut`.
pub fn variant(of: &str, name: &str) -> String {
    let whole = pascal(name);
    let short = whole.strip_prefix(&pascal(&snake(of)));
    let begins = |short: &&str| short.starts_with(|first: char| first.is_alphabetic());
    short.filter(begins).map_or_else(|| whole.clone(), str::to_owned)
}

/// An identifier, raw where it is a word of the language.
///
/// `None`: Rust has no such identifier.
pub fn ident(name: &str) -> Option<Ident> {
    let plain = syn::parse_str::<Ident>(name).ok().map(|it| Ident::new(&it.to_string(), at()));
    let raw = || syn::parse_str::<Ident>(&format!("r#{name}")).ok();
    plain.or_else(|| raw().map(|_| Ident::new_raw(name, at())))
}

/// The attribute stands for all that is made of the file.
fn at() -> Span {
    Span::call_site()
}

/// The names that the attribute gives to types of its own.
pub fn own(item: &ItemTrait) -> Vec<String> {
    let suffixes = ["", "Service", "Client", "AsyncClient", "Nested"];
    suffixes.iter().map(|suffix| format!("{}{suffix}", item.ident.unraw())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_rust_writes_them() {
        for (name, written) in [
            ("PlaceOrder", "place_order"),
            ("placeOrder", "place_order"),
            ("GetHTTPStatus", "get_http_status"),
            ("V2", "v2"),
            ("List_All", "list_all"),
        ] {
            assert_eq!(snake(name), written);
        }
        for (name, written) in [
            ("place_order", "PlaceOrder"),
            ("PLACE_ORDER", "PlaceOrder"),
            ("HTTPStatus", "HTTPStatus"),
        ] {
            assert_eq!(pascal(name), written);
        }
        assert_eq!(variant("State", "STATE_PAID_OUT"), "PaidOut");
        assert_eq!(variant("OrderState", "ORDER_STATE_OPEN"), "Open");
        assert_eq!(variant("State", "OPEN"), "Open");
        assert_eq!(variant("State", "STATE_2ND"), "State2nd");
        assert_eq!(variant("State", "STATE"), "State");
    }

    #[test]
    fn words_of_the_language_are_raw_where_they_can_be() {
        let written = |name: &str| ident(name).map(|it| it.to_string());
        assert_eq!(written("type").as_deref(), Some("r#type"));
        assert_eq!(written("order").as_deref(), Some("order"));
        assert_eq!(written("self"), None);
        assert_eq!(written("2nd"), None);
    }
}
