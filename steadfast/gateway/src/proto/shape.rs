//! The types of a contract as trees.

use std::collections::BTreeMap;

use steadfast::Contract;
use steadfast::contract::{FieldContract, TypeContract, VariantContract};

/// Types within types. Deeper ones are JSON as they are.
const MAX_DEPTH: usize = 32;

/// The form of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Scalar(Scalar),
    Unit,
    List(Box<Shape>),
    Maybe(Box<Shape>),
    /// Keys are strings in JSON.
    Map(Box<Shape>),
    Tuple(Vec<Shape>),
    /// A type that the contract defines.
    Named(String),
    /// Only the service knows: its JSON, as a text.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Bool,
    U32,
    U64,
    I32,
    I64,
    /// Numbers of 128 bits: their digits are a text in protobuf, which has none of them.
    U128,
    I128,
    F32,
    F64,
    Text,
}

impl Scalar {
    /// As contracts write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U128 => "u128",
            Scalar::I128 => "i128",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::Text => "text",
        }
    }

    /// Whether a map of protobuf may have such keys, which are texts in JSON.
    fn is_key(self) -> bool {
        !matches!(self, Scalar::F32 | Scalar::F64 | Scalar::U128 | Scalar::I128)
    }
}

/// A type that the contract defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// An object in JSON.
    Record(Vec<Field>),
    /// Another type under this name, or an array, or nothing.
    Alias(Shape),
    /// One of these names.
    Names(Vec<String>),
    /// One of these variants, each with its content.
    Choice(Vec<Variant>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) shape: Shape,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) name: String,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Record(Vec<Field>),
    Shape(Shape),
}

/// All types of a contract.
pub(crate) fn definitions(contract: &Contract) -> BTreeMap<String, Definition> {
    let known = |name: &str| contract.types.contains_key(name);
    let define = |(name, ty): (&String, &TypeContract)| {
        let definition = match ty {
            TypeContract::Struct { fields, .. } => match content(fields, &known) {
                Content::Record(fields) => Definition::Record(fields),
                Content::Shape(shape) => Definition::Alias(shape),
            },
            TypeContract::Enum { variants, .. } => choice(variants, &known),
        };
        (name.clone(), definition)
    };
    contract.types.iter().map(define).collect()
}

fn choice(variants: &[VariantContract], known: &impl Fn(&str) -> bool) -> Definition {
    if variants.iter().all(|variant| variant.fields.is_empty()) {
        return Definition::Names(variants.iter().map(|it| it.name.clone()).collect());
    }
    let variant = |variant: &VariantContract| Variant {
        name: variant.name.clone(),
        content: content(&variant.fields, known),
    };
    Definition::Choice(variants.iter().map(variant).collect())
}

/// Fields with names are an object, several without an array, one the field itself, none nothing.
fn content(fields: &[FieldContract], known: &impl Fn(&str) -> bool) -> Content {
    let shape = |field: &FieldContract| Shape::read(&field.ty, known);
    match fields {
        [] => Content::Shape(Shape::Unit),
        [only] if only.name.is_empty() => Content::Shape(shape(only)),
        [first, ..] if first.name.is_empty() => {
            Content::Shape(Shape::Tuple(fields.iter().map(shape).collect()))
        }
        _ => {
            let named =
                |field| Field { name: FieldContract::clone(field).name, shape: shape(field) };
            Content::Record(fields.iter().map(named).collect())
        }
    }
}

impl Shape {
    /// Reads a type's text. `known` tells the names that the contract defines.
    pub(crate) fn read(text: &str, known: &impl Fn(&str) -> bool) -> Shape {
        read(text.trim(), known, 0).unwrap_or(Shape::Json)
    }
}

fn read(text: &str, known: &impl Fn(&str) -> bool, depth: usize) -> Option<Shape> {
    if depth > MAX_DEPTH {
        return None;
    }
    let inner = |text: &str| read(text.trim(), known, depth + 1).unwrap_or(Shape::Json);
    let within = |open: &str| text.strip_prefix(open)?.strip_suffix('>');
    let scalar = |scalar| Some(Shape::Scalar(scalar));
    match text {
        "bool" => return scalar(Scalar::Bool),
        "u8" | "u16" | "u32" => return scalar(Scalar::U32),
        "u64" => return scalar(Scalar::U64),
        "i8" | "i16" | "i32" => return scalar(Scalar::I32),
        "i64" => return scalar(Scalar::I64),
        "u128" => return scalar(Scalar::U128),
        "i128" => return scalar(Scalar::I128),
        "f32" => return scalar(Scalar::F32),
        "f64" => return scalar(Scalar::F64),
        "String" => return scalar(Scalar::Text),
        "()" => return Some(Shape::Unit),
        _ if known(text) => return Some(Shape::Named(text.to_owned())),
        _ => {}
    }
    if let Some(item) = within("Vec<") {
        return Some(Shape::List(Box::new(inner(item))));
    }
    if let Some(item) = within("Option<") {
        return Some(Shape::Maybe(Box::new(inner(item))));
    }
    if let Some(both) = within("Map<") {
        let [key, value] = parts(both, ',')?[..] else { return None };
        let key = inner(key);
        let is_key = matches!(key, Shape::Scalar(it) if it.is_key());
        return is_key.then(|| Shape::Map(Box::new(inner(value))));
    }
    if let Some(all) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        return Some(Shape::Tuple(parts(all, ',')?.into_iter().map(inner).collect()));
    }
    let array = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))?;
    match parts(array, ';')?[..] {
        [item, _] => Some(Shape::List(Box::new(inner(item)))),
        _ => None,
    }
}

/// Splits outside all brackets. `None`: the brackets do not match.
fn parts(text: &str, at: char) -> Option<Vec<&str>> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_usize, 0);
    for (index, letter) in text.char_indices() {
        match letter {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.checked_sub(1)?,
            _ if letter == at && depth == 0 => {
                parts.push(&text[from..index]);
                from = index + letter.len_utf8();
            }
            _ => {}
        }
    }
    let last = &text[from..];
    if !last.trim().is_empty() || parts.is_empty() {
        parts.push(last);
    }
    (depth == 0).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Shape {
        Shape::read(text, &|name| name == "Order")
    }

    fn scalar(scalar: Scalar) -> Box<Shape> {
        Box::new(Shape::Scalar(scalar))
    }

    #[test]
    fn texts_are_read_as_rust_writes_them() {
        assert_eq!(shape("u8"), Shape::Scalar(Scalar::U32));
        assert_eq!(shape("Order"), Shape::Named("Order".into()));
        assert_eq!(shape("Vec<Option<u64>>"), {
            Shape::List(Box::new(Shape::Maybe(scalar(Scalar::U64))))
        });
        assert_eq!(shape("Map<String, (u8, f64)>"), {
            let pair = vec![Shape::Scalar(Scalar::U32), Shape::Scalar(Scalar::F64)];
            Shape::Map(Box::new(Shape::Tuple(pair)))
        });
        assert_eq!(shape("[i64; 4]"), Shape::List(scalar(Scalar::I64)));
        assert_eq!(shape("(bool,)"), Shape::Tuple(vec![Shape::Scalar(Scalar::Bool)]));
        assert_eq!(shape("()"), Shape::Unit);
    }

    #[test]
    fn all_else_is_json() {
        for text in ["Money", "Vec<", "Vec<u64", "Map<f64, u8>", "Map<u8>", "[u8]", "(u8", "u256"] {
            assert_eq!(shape(text), Shape::Json, "{text}");
        }
        assert_eq!(shape("Vec<Money>"), Shape::List(Box::new(Shape::Json)));
        let deep = format!("{}u8{}", "Vec<".repeat(100), ">".repeat(100));
        shape(&deep);
    }
}
