//! Helpers for rules that read parsed Rust.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Attribute, Item, Meta};

/// The lines that something takes, its first and its last one among them.
pub fn lines(first: Span, last: Span) -> usize {
    last.end().line - first.start().line + 1
}

pub fn line(node: &impl Spanned) -> usize {
    node.span().start().line
}

/// Compiled into tests or documentation alone: `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, ...))]`,
/// `#[cfg(doc)]`.
pub fn left_out_by(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition: String =
                list.tokens.to_string().chars().filter(|c| !c.is_whitespace()).collect();
            matches!(&*condition, "test" | "doc") || condition.starts_with("all(test,")
        }
        _ => false,
    })
}

pub fn left_out(item: &Item) -> bool {
    left_out_by(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    })
}
