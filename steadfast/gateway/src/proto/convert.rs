//! Between a message of protobuf and the JSON that services speak.

use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage, Value,
};
use serde_json::{Map, Number, Value as Json};

use super::file::Types;
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

    /// The object of a message with these fields, which are numbered as they stand.
    pub(crate) fn to_json(
        self,
        message: &DynamicMessage,
        fields: &[Field],
    ) -> Result<Json, Misfit> {
        let mut object = Map::new();
        for (number, field) in (1..).zip(fields) {
            let value = self.take(message, number, &field.shape);
            let value = value.map_err(|misfit| format!("{}: {misfit}", field.name))?;
            object.insert(field.name.clone(), value);
        }
        Ok(Json::Object(object))
    }

    /// The message of an object with these fields.
    pub(crate) fn to_message(
        self,
        descriptor: MessageDescriptor,
        fields: &[Field],
        json: &Json,
    ) -> Result<DynamicMessage, Misfit> {
        let Json::Object(object) = json else {
            return Err(format!("{} is no object", short(json)));
        };
        let mut message = DynamicMessage::new(descriptor);
        for (number, field) in (1..).zip(fields) {
            let value = object.get(&field.name).unwrap_or(&Json::Null);
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
        json: &Json,
    ) -> Result<(), Misfit> {
        let to = self.deeper()?;
        let field = field(&message.descriptor(), number)?;
        let value = match self.types.resolve(shape) {
            Shape::Maybe(_) if json.is_null() => return Ok(()),
            Shape::Maybe(inner) => to.single(&field.kind(), inner, json)?,
            Shape::List(inner) => {
                let Json::Array(items) = json else {
                    return Err(format!("{} is no array", short(json)));
                };
                let item = |json| to.single(&field.kind(), inner, json);
                Value::List(items.iter().map(item).collect::<Result<_, _>>()?)
            }
            Shape::Map(inner) => {
                let Json::Object(entries) = json else {
                    return Err(format!("{} is no object", short(json)));
                };
                let kind = map_value(&field)?;
                let entry = |(key, json): (&String, &Json)| {
                    Ok((MapKey::String(key.clone()), to.single(&kind, inner, json)?))
                };
                Value::Map(entries.iter().map(entry).collect::<Result<_, Misfit>>()?)
            }
            other => to.single(&field.kind(), other, json)?,
        };
        message.set_field(&field, value);
        Ok(())
    }

    /// A single value in a field of this kind.
    fn single(self, kind: &Kind, shape: &Shape, json: &Json) -> Result<Value, Misfit> {
        let to = self.deeper()?;
        let shape = self.types.resolve(shape);
        match shape {
            Shape::Scalar(scalar) => return scalar_of(*scalar, json),
            Shape::Json => return Ok(Value::String(json.to_string())),
            _ => {}
        }
        if let Kind::Enum(descriptor) = kind {
            let names = match shape {
                Shape::Named(name) => self.types.definitions.get(name),
                _ => None,
            };
            let Some(Definition::Names(names)) = names else { return Err(STRANGE.into()) };
            let place = names.iter().position(|name| json.as_str() == Some(name));
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
                let array = json.as_array().filter(|array| array.len() == items.len());
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
        json: &Json,
    ) -> Result<(), Misfit> {
        let (name, content) = match json {
            Json::String(name) => (name, &Json::Null),
            Json::Object(one) if one.len() == 1 => one.iter().next().expect("it has one"),
            other => return Err(format!("{} is no variant", short(other))),
        };
        let place = variants.iter().position(|variant| variant.name == *name);
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

    /// The JSON of the field of this number.
    pub(crate) fn take(
        self,
        message: &DynamicMessage,
        number: u32,
        shape: &Shape,
    ) -> Result<Json, Misfit> {
        let from = self.deeper()?;
        let field = field(&message.descriptor(), number)?;
        let shape = self.types.resolve(shape);
        if matches!(shape, Shape::Maybe(_)) && !message.has_field(&field) {
            return Ok(Json::Null);
        }
        let value = message.get_field(&field);
        match (shape, &*value) {
            (Shape::Maybe(inner), value) => from.json(inner, value),
            (Shape::List(inner), Value::List(items)) => {
                let items = items.iter().map(|item| from.json(inner, item));
                Ok(Json::Array(items.collect::<Result<_, _>>()?))
            }
            (Shape::Map(inner), Value::Map(entries)) => {
                let entry = |(key, value): (&MapKey, &Value)| {
                    let key = key.as_str().ok_or(STRANGE)?.to_owned();
                    Ok((key, from.json(inner, value)?))
                };
                Ok(Json::Object(entries.iter().map(entry).collect::<Result<_, Misfit>>()?))
            }
            (other, value) => from.json(other, value),
        }
    }

    /// The JSON of a single value.
    fn json(self, shape: &Shape, value: &Value) -> Result<Json, Misfit> {
        let from = self.deeper()?;
        let shape = self.types.resolve(shape);
        let definition = match shape {
            Shape::Named(name) => self.types.definitions.get(name),
            _ => None,
        };
        match (shape, value) {
            (Shape::Json, Value::String(text)) => serde_json::from_str(text)
                .map_err(|error| format!("a text of JSON is needed here: {error}")),
            (Shape::Scalar(_), value) => json_of(value),
            (Shape::Unit, _) => Ok(Json::Null),
            (Shape::Tuple(items), Value::Message(message)) => {
                let item = |(number, shape)| from.take(message, number, shape);
                let items = (1..).zip(items).map(item);
                Ok(Json::Array(items.collect::<Result<_, _>>()?))
            }
            (Shape::Named(_), Value::EnumNumber(number)) => {
                let Some(Definition::Names(names)) = definition else { return Err(STRANGE.into()) };
                let place = usize::try_from(number - 1).ok();
                let name = place.and_then(|place| names.get(place));
                let name = name.ok_or_else(|| format!("{number} is none of {}", names.join(", ")));
                name.map(|name| Json::String(name.clone()))
            }
            (Shape::Named(_), Value::Message(message)) => match definition {
                Some(Definition::Record(fields)) => from.to_json(message, fields),
                Some(Definition::Choice(variants)) => from.chosen(message, variants),
                _ => Err(STRANGE.into()),
            },
            (nested, Value::Message(message)) => from.take(message, 1, nested),
            _ => Err(STRANGE.into()),
        }
    }

    fn chosen(self, message: &DynamicMessage, variants: &[Variant]) -> Result<Json, Misfit> {
        for (number, variant) in (1..).zip(variants) {
            let field = field(&message.descriptor(), number)?;
            if !message.has_field(&field) {
                continue;
            }
            let value = message.get_field(&field);
            let content = match (&variant.content, &*value) {
                (Content::Shape(shape), _) if *self.types.resolve(shape) == Shape::Unit => {
                    return Ok(Json::String(variant.name.clone()));
                }
                (Content::Shape(shape), value) => self.json(shape, value)?,
                (Content::Record(fields), Value::Message(message)) => {
                    self.to_json(message, fields)?
                }
                _ => return Err(STRANGE.into()),
            };
            return Ok(Json::Object(Map::from_iter([(variant.name.clone(), content)])));
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

fn scalar_of(scalar: Scalar, json: &Json) -> Result<Value, Misfit> {
    let float = json.as_f64();
    let value = match scalar {
        Scalar::Bool => json.as_bool().map(Value::Bool),
        Scalar::U32 => json.as_u64().and_then(|it| u32::try_from(it).ok()).map(Value::U32),
        Scalar::U64 => json.as_u64().map(Value::U64),
        Scalar::I32 => json.as_i64().and_then(|it| i32::try_from(it).ok()).map(Value::I32),
        Scalar::I64 => json.as_i64().map(Value::I64),
        Scalar::F32 => float.map(|it| Value::F32(it as f32)),
        Scalar::F64 => float.map(Value::F64),
        Scalar::Text => json.as_str().map(|it| Value::String(it.to_owned())),
    };
    // serde writes numbers that are none, and infinite ones, as null.
    let nan = match scalar {
        Scalar::F32 if json.is_null() => Some(Value::F32(f32::NAN)),
        Scalar::F64 if json.is_null() => Some(Value::F64(f64::NAN)),
        _ => None,
    };
    let wrong = || format!("{} is no {}", short(json), format!("{scalar:?}").to_lowercase());
    value.or(nan).ok_or_else(wrong)
}

fn json_of(value: &Value) -> Result<Json, Misfit> {
    let float = |it: f64| Number::from_f64(it).map_or(Json::Null, Json::Number);
    Ok(match value {
        Value::Bool(it) => Json::Bool(*it),
        Value::U32(it) => Json::from(*it),
        Value::U64(it) => Json::from(*it),
        Value::I32(it) => Json::from(*it),
        Value::I64(it) => Json::from(*it),
        Value::F32(it) => float(f64::from(*it)),
        Value::F64(it) => float(*it),
        Value::String(it) => Json::String(it.clone()),
        _ => return Err(STRANGE.into()),
    })
}

/// The beginning of a value, for an error.
fn short(json: &Json) -> String {
    let text = json.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
