//! Between a message of protobuf and the JSON that services speak.
//!
//! JSON is read and written as text: a tree of values would round numbers of 128 bits.

use std::borrow::Cow;
use std::collections::BTreeMap;

use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage, Value,
};
use serde_json::value::RawValue;

use super::file::Types;
use super::number;
use super::shape::{Content, Definition, Field, Scalar, Shape, Variant};

/// Values within values. A message of more is refused: it would exhaust the stack.
const MAX_DEPTH: usize = 64;

/// Converts by the types of one contract.
#[derive(Clone, Copy)]
pub(crate) struct Converter<'a> {
    types: &'a Types,
    depth: usize,
}

/// Why a value has no such form.
pub(crate) type Misfit = String;

impl<'a> Converter<'a> {
    pub(crate) fn new(types: &'a Types) -> Converter<'a> {
        Converter { types, depth: 0 }
    }

    fn deeper(self) -> Result<Converter<'a>, Misfit> {
        let depth = self.depth + 1;
        match depth <= MAX_DEPTH {
            true => Ok(Converter { depth, ..self }),
            false => Err(format!("values lie more than {MAX_DEPTH} deep in each other")),
        }
    }

    /// Writes the object of a message with these fields, which are numbered as they stand.
    pub(crate) fn to_json(
        self,
        message: &DynamicMessage,
        fields: &[Field],
        out: &mut Vec<u8>,
    ) -> Result<(), Misfit> {
        list(out, *b"{}", (1..).zip(fields), |(number, field), out| {
            name(&field.name, out);
            let taken = self.take(message, number, &field.shape, out);
            taken.map_err(|misfit| format!("{}: {misfit}", field.name))
        })
    }

    /// The message of an object with these fields.
    pub(crate) fn to_message(
        self,
        descriptor: MessageDescriptor,
        fields: &[Field],
        json: &RawValue,
    ) -> Result<DynamicMessage, Misfit> {
        let object = object(json)?;
        let mut message = DynamicMessage::new(descriptor);
        for (number, field) in (1..).zip(fields) {
            let value = object.get(&*field.name).copied().unwrap_or(RawValue::NULL);
            let put = self.put(&mut message, number, &field.shape, value);
            put.map_err(|misfit| format!("{}: {misfit}", field.name))?;
        }
        Ok(message)
    }

    /// Sets the field of this number.
    pub(crate) fn put(
        self,
        message: &mut DynamicMessage,
        number: u32,
        shape: &Shape,
        json: &RawValue,
    ) -> Result<(), Misfit> {
        let to = self.deeper()?;
        let field = field(&message.descriptor(), number)?;
        let value = match self.types.resolve(shape) {
            Shape::Maybe(_) if is_null(json) => return Ok(()),
            Shape::Maybe(inner) => to.single(&field.kind(), inner, json)?,
            Shape::List(inner) => {
                let item = |json: &RawValue| to.single(&field.kind(), inner, json);
                Value::List(array(json)?.into_iter().map(item).collect::<Result<_, _>>()?)
            }
            Shape::Map(inner) => {
                let kind = map_value(&field)?;
                let entry = |(key, json): (Cow<'_, str>, &RawValue)| {
                    Ok((MapKey::String(key.into_owned()), to.single(&kind, inner, json)?))
                };
                Value::Map(object(json)?.into_iter().map(entry).collect::<Result<_, Misfit>>()?)
            }
            other => to.single(&field.kind(), other, json)?,
        };
        message.set_field(&field, value);
        Ok(())
    }

    /// A single value in a field of this kind.
    fn single(self, kind: &Kind, shape: &Shape, json: &RawValue) -> Result<Value, Misfit> {
        let to = self.deeper()?;
        let shape = self.types.resolve(shape);
        match shape {
            Shape::Scalar(scalar) => return scalar_of(*scalar, json),
            Shape::Json => return Ok(Value::String(json.get().to_owned())),
            _ => {}
        }
        if let Kind::Enum(descriptor) = kind {
            let names = match shape {
                Shape::Named(name) => self.types.definitions.get(name),
                _ => None,
            };
            let Some(Definition::Names(names)) = names else { return Err(STRANGE.into()) };
            let told = text(json);
            let place = names.iter().position(|name| told.as_deref() == Some(name));
            let place = place.and_then(|place| i32::try_from(place + 1).ok());
            let number =
                place.ok_or_else(|| format!("{} is no {}", short(json), descriptor.name()));
            return number.map(Value::EnumNumber);
        }
        let Kind::Message(descriptor) = kind else { return Err(STRANGE.into()) };
        let mut message = DynamicMessage::new(descriptor.clone());
        match shape {
            Shape::Unit => {}
            Shape::Tuple(items) => {
                let array = array(json).ok().filter(|array| array.len() == items.len());
                let array = array
                    .ok_or_else(|| format!("{} is no array of {}", short(json), items.len()))?;
                for (number, (shape, json)) in (1..).zip(items.iter().zip(array)) {
                    to.put(&mut message, number, shape, json)?;
                }
            }
            Shape::Named(name) => match self.types.definitions.get(name) {
                Some(Definition::Record(fields)) => {
                    return to.to_message(descriptor.clone(), fields, json).map(Value::Message);
                }
                Some(Definition::Choice(variants)) => to.choose(&mut message, variants, json)?,
                _ => return Err(STRANGE.into()),
            },
            nested => to.put(&mut message, 1, nested, json)?,
        }
        Ok(Value::Message(message))
    }

    /// A variant without content is its name, another one an object of its name and its content.
    fn choose(
        self,
        message: &mut DynamicMessage,
        variants: &[Variant],
        json: &RawValue,
    ) -> Result<(), Misfit> {
        let (name, content) = match (text(json), object(json)) {
            (Some(name), _) => (name, RawValue::NULL),
            (_, Ok(one)) if one.len() == 1 => one.into_iter().next().expect("it has one"),
            _ => return Err(format!("{} is no variant", short(json))),
        };
        let place = variants.iter().position(|variant| variant.name == name);
        let place = place.ok_or_else(|| format!("there is no variant {name:?}"))?;
        let number = u32::try_from(place + 1).map_err(|_| STRANGE)?;
        let field = field(&message.descriptor(), number)?;
        let value = match &variants[place].content {
            Content::Shape(shape) => self.single(&field.kind(), shape, content)?,
            Content::Record(fields) => {
                let Kind::Message(descriptor) = field.kind() else { return Err(STRANGE.into()) };
                Value::Message(self.to_message(descriptor, fields, content)?)
            }
        };
        message.set_field(&field, value);
        Ok(())
    }

    /// Writes the JSON of the field of this number.
    pub(crate) fn take(
        self,
        message: &DynamicMessage,
        number: u32,
        shape: &Shape,
        out: &mut Vec<u8>,
    ) -> Result<(), Misfit> {
        let from = self.deeper()?;
        let field = field(&message.descriptor(), number)?;
        let shape = self.types.resolve(shape);
        if matches!(shape, Shape::Maybe(_)) && !message.has_field(&field) {
            out.extend(b"null");
            return Ok(());
        }
        let value = message.get_field(&field);
        match (shape, &*value) {
            (Shape::Maybe(inner), value) => from.json(inner, value, out),
            (Shape::List(inner), Value::List(items)) => {
                list(out, *b"[]", items, |item, out| from.json(inner, item, out))
            }
            (Shape::Map(inner), Value::Map(entries)) => {
                list(out, *b"{}", entries, |(key, value), out| {
                    name(key.as_str().ok_or(STRANGE)?, out);
                    from.json(inner, value, out)
                })
            }
            (other, value) => from.json(other, value, out),
        }
    }

    /// Writes the JSON of a single value.
    fn json(self, shape: &Shape, value: &Value, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let from = self.deeper()?;
        let shape = self.types.resolve(shape);
        let definition = match shape {
            Shape::Named(name) => self.types.definitions.get(name),
            _ => None,
        };
        match (shape, value) {
            (Shape::Json, Value::String(text)) => {
                let json: &RawValue = serde_json::from_str(text)
                    .map_err(|error| format!("a text of JSON is needed here: {error}"))?;
                out.extend(json.get().as_bytes());
            }
            (Shape::Scalar(scalar), value) => json_of(*scalar, value, out)?,
            (Shape::Unit, _) => out.extend(b"null"),
            (Shape::Tuple(items), Value::Message(message)) => {
                list(out, *b"[]", (1..).zip(items), |(number, shape), out| {
                    from.take(message, number, shape, out)
                })?;
            }
            (Shape::Named(_), Value::EnumNumber(number)) => {
                let Some(Definition::Names(names)) = definition else { return Err(STRANGE.into()) };
                let place = usize::try_from(number - 1).ok();
                let name = place.and_then(|place| names.get(place));
                let name = name.ok_or_else(|| format!("{number} is none of {}", names.join(", ")));
                quote(name?, out);
            }
            (Shape::Named(_), Value::Message(message)) => match definition {
                Some(Definition::Record(fields)) => from.to_json(message, fields, out)?,
                Some(Definition::Choice(variants)) => from.chosen(message, variants, out)?,
                _ => return Err(STRANGE.into()),
            },
            (nested, Value::Message(message)) => from.take(message, 1, nested, out)?,
            _ => return Err(STRANGE.into()),
        }
        Ok(())
    }

    fn chosen(
        self,
        message: &DynamicMessage,
        variants: &[Variant],
        out: &mut Vec<u8>,
    ) -> Result<(), Misfit> {
        for (number, variant) in (1..).zip(variants) {
            let field = field(&message.descriptor(), number)?;
            if !message.has_field(&field) {
                continue;
            }
            let value = message.get_field(&field);
            if let Content::Shape(shape) = &variant.content
                && *self.types.resolve(shape) == Shape::Unit
            {
                quote(&variant.name, out);
                return Ok(());
            }
            out.push(b'{');
            name(&variant.name, out);
            match (&variant.content, &*value) {
                (Content::Shape(shape), value) => self.json(shape, value, out)?,
                (Content::Record(fields), Value::Message(message)) => {
                    self.to_json(message, fields, out)?;
                }
                _ => return Err(STRANGE.into()),
            }
            out.push(b'}');
            return Ok(());
        }
        let names: Vec<&str> = variants.iter().map(|variant| &*variant.name).collect();
        Err(format!("set one of {}", names.join(", ")))
    }
}

/// Shape and descriptor come from one contract, and do not fit: a mistake of ours.
const STRANGE: &str = "the gateway's own descriptor does not fit";

fn field(descriptor: &MessageDescriptor, number: u32) -> Result<FieldDescriptor, Misfit> {
    descriptor.get_field(number).ok_or_else(|| STRANGE.into())
}

fn map_value(field: &FieldDescriptor) -> Result<Kind, Misfit> {
    match field.kind() {
        Kind::Message(entry) if entry.is_map_entry() => Ok(entry.map_entry_value_field().kind()),
        _ => Err(STRANGE.into()),
    }
}

fn scalar_of(scalar: Scalar, json: &RawValue) -> Result<Value, Misfit> {
    let given = json.get();
    let value = match scalar {
        Scalar::Bool => serde_json::from_str(given).ok().map(Value::Bool),
        Scalar::U32 => serde_json::from_str(given).ok().map(Value::U32),
        Scalar::U64 => serde_json::from_str(given).ok().map(Value::U64),
        Scalar::I32 => serde_json::from_str(given).ok().map(Value::I32),
        Scalar::I64 => serde_json::from_str(given).ok().map(Value::I64),
        Scalar::U128 => number::unsigned(given).map(Value::String),
        Scalar::I128 => number::signed(given).map(Value::String),
        Scalar::F32 => number::float(given).map(Value::F32),
        Scalar::F64 => number::double(given).map(Value::F64),
        Scalar::Text => text(json).map(|it| Value::String(it.into_owned())),
    };
    value.ok_or_else(|| format!("{} is no {}", short(json), scalar.name()))
}

fn json_of(scalar: Scalar, value: &Value, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let plain = match value {
        Value::Bool(it) => it.to_string(),
        Value::U32(it) => it.to_string(),
        Value::U64(it) => it.to_string(),
        Value::I32(it) => it.to_string(),
        Value::I64(it) => it.to_string(),
        Value::F32(it) => number::written((*it).into()),
        Value::F64(it) => number::written(*it),
        Value::String(it) => {
            let digits = match scalar {
                Scalar::U128 => number::unsigned(it),
                Scalar::I128 => number::signed(it),
                _ => {
                    quote(it, out);
                    return Ok(());
                }
            };
            digits.ok_or_else(|| format!("{it:?} is no {}: send digits", scalar.name()))?
        }
        _ => return Err(STRANGE.into()),
    };
    out.extend(plain.as_bytes());
    Ok(())
}

/// Writes parts between brackets.
fn list<T>(
    out: &mut Vec<u8>,
    [open, close]: [u8; 2],
    parts: impl IntoIterator<Item = T>,
    write: impl Fn(T, &mut Vec<u8>) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    out.push(open);
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(part, out)?;
    }
    out.push(close);
    Ok(())
}

fn name(name: &str, out: &mut Vec<u8>) {
    quote(name, out);
    out.push(b':');
}

fn quote(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a text has a form");
}

fn is_null(json: &RawValue) -> bool {
    json.get() == "null"
}

fn text(json: &RawValue) -> Option<Cow<'_, str>> {
    let is_text = json.get().starts_with('"');
    let text = || serde_json::from_str::<String>(json.get()).ok();
    is_text.then(text).flatten().map(Cow::Owned)
}

fn array(json: &RawValue) -> Result<Vec<&RawValue>, Misfit> {
    serde_json::from_str(json.get()).map_err(|_| format!("{} is no array", short(json)))
}

/// The values of an object by their names.
type Entries<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

fn object(json: &RawValue) -> Result<Entries<'_>, Misfit> {
    serde_json::from_str(json.get()).map_err(|_| format!("{} is no object", short(json)))
}

/// The beginning of a value, for an error.
fn short(json: &RawValue) -> String {
    let text = json.get();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
