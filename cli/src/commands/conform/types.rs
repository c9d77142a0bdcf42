//! The types of a contract, in Rust's form, and values of them in JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use steadfast::contract::{FieldContract, TypeContract};
use wire::Random;

/// Types within types that are followed. A recursive type ends here.
const DEPTH: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Bool,
    Int {
        least: i128,
        greatest: i128,
    },
    Float,
    Text,
    Unit,
    List(Box<Type>),
    Array(Box<Type>, usize),
    Optional(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Tuple(Vec<Type>),
    /// One of the contract's own, or one of which only its name is known.
    Named(String),
}

/// The types that a contract describes, by their names.
pub type Types = BTreeMap<String, TypeContract>;

impl Type {
    /// Reads a type's name; a text of another form is a name, too.
    pub fn of(text: &str) -> Type {
        let mut reader = Reader { text, depth: 0 };
        match reader.read() {
            Some(ty) if reader.text.trim().is_empty() => ty,
            _ => Type::Named(text.into()),
        }
    }

    /// A value that the seed chooses; `None` if the type's form is not known.
    pub fn value(&self, types: &Types, random: &mut Random) -> Option<Value> {
        self.nested_value(types, random, 0)
    }

    fn nested_value(&self, types: &Types, random: &mut Random, depth: usize) -> Option<Value> {
        if depth > DEPTH {
            return None;
        }
        let below = depth + 1;
        let length = if below < DEPTH { random.below(4) } else { 0 };
        Some(match self {
            Type::Bool => json!(random.one_in(2)),
            Type::Int { least, greatest } => {
                let (from, to) = ((*least).max(-100), (*greatest).min(100));
                let span = u64::try_from(to - from).ok()?;
                json!(i64::try_from(from).ok()? + i64::try_from(random.below(span + 1)).ok()?)
            }
            // Quarters are exact in binary: every language writes them alike.
            Type::Float => json!(random.below(1_000) as f64 / 4.0),
            Type::Text => json!(word(random)),
            Type::Unit => Value::Null,
            Type::List(of) => list((0..length).map(|_| of.nested_value(types, random, below)))?,
            Type::Array(of, length) => {
                list((0..*length).map(|_| of.nested_value(types, random, below)))?
            }
            Type::Optional(_) if below >= DEPTH || random.one_in(3) => Value::Null,
            Type::Optional(of) => of.nested_value(types, random, below)?,
            Type::Map(key, of) => {
                let mut map = Map::new();
                for _ in 0..length {
                    let key = match key.nested_value(types, random, below)? {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    map.insert(key, of.nested_value(types, random, below)?);
                }
                Value::Object(map)
            }
            Type::Tuple(of) => list(of.iter().map(|of| of.nested_value(types, random, below)))?,
            Type::Named(name) => match types.get(name)? {
                TypeContract::Struct { fields, .. } => of_fields(fields, types, random, below)?,
                TypeContract::Enum { variants, .. } => {
                    let index = random.below(u64::try_from(variants.len()).ok()?.max(1));
                    let variant = variants.get(usize::try_from(index).ok()?)?;
                    if variant.fields.is_empty() {
                        return Some(json!(variant.name));
                    }
                    let content = of_fields(&variant.fields, types, random, below)?;
                    json!({ variant.name.as_str(): content })
                }
            },
        })
    }

    /// A value of another type, that no reader of this one may take; `None` if none is sure.
    pub fn wrong_value(&self) -> Option<Value> {
        match self {
            Type::Bool | Type::Int { .. } | Type::Float => Some(json!("no number")),
            Type::Text => Some(json!(["no text"])),
            Type::List(_) | Type::Array(..) | Type::Tuple(_) | Type::Map(..) => {
                Some(json!("no list"))
            }
            Type::Optional(of) => of.wrong_value(),
            Type::Unit | Type::Named(_) => None,
        }
    }

    /// Whether a value can be of this type.
    pub fn fits(&self, types: &Types, value: &Value) -> bool {
        match self {
            Type::Bool => value.is_boolean(),
            Type::Int { least, greatest } => {
                let number = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
                number.is_some_and(|number| (*least..=*greatest).contains(&number))
            }
            Type::Float => value.is_number() || value.as_str().is_some_and(is_float),
            Type::Text => value.is_string(),
            Type::Unit => value.is_null(),
            Type::List(of) => all(value, |_, value| of.fits(types, value)),
            Type::Array(of, length) => {
                value.as_array().is_some_and(|list| list.len() == *length)
                    && all(value, |_, value| of.fits(types, value))
            }
            Type::Optional(of) => value.is_null() || of.fits(types, value),
            Type::Map(_, of) => {
                value.as_object().is_some_and(|map| map.values().all(|value| of.fits(types, value)))
            }
            Type::Tuple(of) => {
                value.as_array().is_some_and(|list| list.len() == of.len())
                    && all(value, |index, value| of[index].fits(types, value))
            }
            Type::Named(name) => match types.get(name) {
                Some(TypeContract::Struct { fields, .. }) => fields_fit(fields, types, value),
                Some(TypeContract::Enum { variants, .. }) => {
                    variants.iter().any(|variant| match value.get(&variant.name) {
                        Some(content) => fields_fit(&variant.fields, types, content),
                        None => value == variant.name.as_str(),
                    })
                }
                _ => true,
            },
        }
    }
}

fn list(values: impl Iterator<Item = Option<Value>>) -> Option<Value> {
    values.collect::<Option<Vec<_>>>().map(Value::Array)
}

fn all(value: &Value, fits: impl Fn(usize, &Value) -> bool) -> bool {
    let fit = |list: &Vec<Value>| list.iter().enumerate().all(|(index, value)| fits(index, value));
    value.as_array().is_some_and(fit)
}

fn is_tuple(fields: &[FieldContract]) -> bool {
    fields.iter().all(|field| field.name.is_empty())
}

/// JSON has these numbers as texts.
fn is_float(text: &str) -> bool {
    matches!(text, "NaN" | "Infinity" | "-Infinity")
}

/// Named fields are an object; several without names an array; a single one without a name is the
/// field itself; none is `null`.
fn of_fields(
    fields: &[FieldContract],
    types: &Types,
    random: &mut Random,
    depth: usize,
) -> Option<Value> {
    let mut value = |field: &FieldContract| Type::of(&field.ty).nested_value(types, random, depth);
    match fields {
        [] => return Some(Value::Null),
        [field] if is_tuple(fields) => return value(field),
        _ if is_tuple(fields) => return list(fields.iter().map(value)),
        _ => {}
    }
    let named = fields.iter().map(|field| Some((field.name.clone(), value(field)?)));
    named.collect::<Option<Map<_, _>>>().map(Value::Object)
}

fn fields_fit(fields: &[FieldContract], types: &Types, value: &Value) -> bool {
    let fits = |field: &FieldContract, value: &Value| Type::of(&field.ty).fits(types, value);
    match fields {
        [] => value.is_null(),
        [field] if is_tuple(fields) => fits(field, value),
        _ if is_tuple(fields) => {
            all(value, |index, value| fields.get(index).is_some_and(|field| fits(field, value)))
        }
        // An absent field may have a default.
        _ => fields.iter().all(|field| {
            value.get(&field.name).is_none_or(|value| fits(field, value)) && value.is_object()
        }),
    }
}

fn word(random: &mut Random) -> String {
    const WORDS: [&str; 6] = ["", "lathe", "Übergabe", "two words", "\"quoted\"\n", "東京"];
    WORDS[usize::try_from(random.below(6)).unwrap_or(0)].into()
}

/// Reads the grammar: a name, with other types in angle brackets; tuples; arrays.
struct Reader<'a> {
    text: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn read(&mut self) -> Option<Type> {
        self.depth += 1;
        if self.depth > 64 {
            return None;
        }
        if self.takes('(') {
            let of = self.several(')')?;
            return Some(if of.is_empty() { Type::Unit } else { Type::Tuple(of) });
        }
        if self.takes('[') {
            let of = Box::new(self.read()?);
            let (length, rest) = self.text.strip_prefix(';')?.split_once(']')?;
            self.text = rest;
            // More would be no argument that anybody reads.
            let length = length.trim().parse().ok().filter(|length| *length <= 1_024)?;
            return Some(Type::Array(of, length));
        }
        self.text = self.text.trim_start();
        let end = self.text.find(|c: char| !c.is_alphanumeric() && !"_:.".contains(c));
        let (name, rest) = self.text.split_at(end.unwrap_or(self.text.len()));
        self.text = rest;
        if self.takes('<') {
            let mut of = self.several('>')?.into_iter().map(Box::new);
            return match (name, of.next()?, of.next(), of.next()) {
                ("Vec", of, None, None) => Some(Type::List(of)),
                ("Option", of, None, None) => Some(Type::Optional(of)),
                ("Map", key, Some(of), None) => Some(Type::Map(key, of)),
                _ => None,
            };
        }
        Some(match name {
            "" => return None,
            "bool" => Type::Bool,
            "f32" | "f64" => Type::Float,
            "String" => Type::Text,
            "Bytes" => Type::List(Box::new(Type::Int { least: 0, greatest: 255 })),
            name => integer(name).unwrap_or_else(|| Type::Named(name.into())),
        })
    }

    fn several(&mut self, end: char) -> Option<Vec<Type>> {
        let mut types = Vec::new();
        while !self.takes(end) {
            types.push(self.read()?);
            if !self.takes(',') {
                return self.takes(end).then_some(types);
            }
        }
        Some(types)
    }

    fn takes(&mut self, letter: char) -> bool {
        let text = self.text.trim_start();
        let rest = text.strip_prefix(letter);
        self.text = rest.unwrap_or(text);
        rest.is_some()
    }
}

fn integer(name: &str) -> Option<Type> {
    let sign = name.chars().next()?;
    let bits = match &name[sign.len_utf8()..] {
        "8" => 8,
        "16" => 16,
        "32" => 32,
        "64" | "size" => 64,
        _ => return None,
    };
    match sign {
        'u' => Some(Type::Int { least: 0, greatest: (1 << bits) - 1 }),
        'i' => Some(Type::Int { least: -(1 << (bits - 1)), greatest: (1 << (bits - 1)) - 1 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(least: i128, greatest: i128) -> Type {
        Type::Int { least, greatest }
    }

    #[test]
    fn types_are_read() {
        let byte = || Box::new(int(0, 255));
        for (text, expected) in [
            ("u8", int(0, 255)),
            ("i16", int(-32_768, 32_767)),
            ("()", Type::Unit),
            ("Vec<u8>", Type::List(byte())),
            ("Bytes", Type::List(byte())),
            ("(bool, f64)", Type::Tuple(vec![Type::Bool, Type::Float])),
            ("[u8; 4]", Type::Array(byte(), 4)),
            (
                "Option<Map<String, Order>>",
                Type::Optional(Box::new(Type::Map(
                    Box::new(Type::Text),
                    Box::new(Type::Named("Order".into())),
                ))),
            ),
            ("dyn Any + 'static", Type::Named("dyn Any + 'static".into())),
            ("Vec<u8", Type::Named("Vec<u8".into())),
            ("é", Type::Named("é".into())),
        ] {
            assert_eq!(Type::of(text), expected, "{text}");
        }
        let deep = "(".repeat(100_000);
        assert_eq!(Type::of(&deep), Type::Named(deep.clone()));
    }

    #[test]
    fn made_values_are_of_their_type_and_the_seed_decides_them() {
        let types: Types = serde_json::from_value(json!({
            "Order": {"kind": "struct", "fields": [
                {"name": "id", "type": "u16"}, {"name": "parts", "type": "Vec<Part>"}]},
            "Part": {"kind": "enum", "variants": [
                {"name": "Screw"}, {"name": "Plate", "fields": [{"name": "mm", "type": "f64"}]},
                {"name": "Pair", "fields": [{"type": "u8"}, {"type": "String"}]},
                {"name": "Within", "fields": [{"type": "Option<Order>"}]}]}
        }))
        .expect("types");
        for text in ["Order", "(i8, Vec<Order>)", "Map<u8, [Part; 2]>", "Option<()>"] {
            let ty = Type::of(text);
            for seed in 0..200 {
                let make = || ty.value(&types, &mut Random::new(seed));
                let Some(value) = make() else { continue };
                assert!(ty.fits(&types, &value), "{text}: {value}");
                assert_eq!(make(), Some(value));
            }
        }
        assert_eq!(Type::of("Unknown").value(&types, &mut Random::new(1)), None);
    }

    #[test]
    fn values_of_other_types_do_not_fit() {
        let types = Types::new();
        for text in ["u8", "bool", "String", "Vec<u8>", "(u8, u8)", "Option<i64>", "Map<u8, u8>"] {
            let ty = Type::of(text);
            let wrong = ty.wrong_value().expect("a wrong value");
            assert!(!ty.fits(&types, &wrong), "{text}: {wrong}");
        }
        assert!(!Type::of("u8").fits(&types, &json!(256)));
        assert!(!Type::of("[u8; 2]").fits(&types, &json!([1])));
    }
}
