//! A contract as a file of protobuf: messages, a service, and their documentation.
//!
//! Arguments and fields are numbered as they stand. What protobuf cannot nest (a list of lists, an
//! optional list) stands in a message of its own with the one field `value`.

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, MessageOptions, MethodDescriptorProto, OneofDescriptorProto,
    ServiceDescriptorProto,
};
use steadfast::Contract;

use super::shape::{Content, Definition, Field, Scalar, Shape};
use crate::names::package_of;

/// The one field of a message that stands for something that cannot be nested.
pub(crate) const VALUE: &str = "value";

/// The field of a reply.
const RESULT: &str = "result";

/// The file of a group's contract.
pub(crate) fn file(group: &str, contract: &Contract, types: &Types) -> FileDescriptorProto {
    let mut maker = Maker { types, file: FileDescriptorProto::default(), taken: BTreeSet::new() };
    let package = package_of(group);
    maker.file.name = Some(format!("{group}.proto"));
    maker.file.syntax = Some("proto3".into());
    maker.file.package = Some(package.clone());
    maker.taken.extend(types.names.values().cloned());
    let mut service = ServiceDescriptorProto {
        name: Some(identifier(&contract.service)),
        ..ServiceDescriptorProto::default()
    };
    maker.taken.insert(identifier(&contract.service));
    let known = |name: &str| contract.types.contains_key(name);
    for method in &contract.methods {
        let arguments = method.arguments.iter().map(|argument| Field {
            name: argument.name.clone(),
            shape: Shape::read(&argument.ty, &known),
        });
        let camel = camel(&method.name);
        let request = maker.message(&format!("{camel}Request"), &arguments.collect::<Vec<_>>());
        let result = match Shape::read(&method.result, &known) {
            Shape::Unit => Vec::new(),
            shape => vec![Field { name: RESULT.into(), shape }],
        };
        let reply = maker.message(&format!("{camel}Reply"), &result);
        service.method.push(MethodDescriptorProto {
            name: Some(identifier(&method.name)),
            input_type: Some(format!(".{package}.{request}")),
            output_type: Some(format!(".{package}.{reply}")),
            ..MethodDescriptorProto::default()
        });
    }
    for (name, definition) in &types.definitions {
        maker.define(&types.names[name], definition);
    }
    maker.file.service.push(service);
    maker.file
}

/// The types of a contract, with the names of their messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    pub(crate) definitions: BTreeMap<String, Definition>,
    names: BTreeMap<String, String>,
}

impl Types {
    pub(crate) fn new(definitions: BTreeMap<String, Definition>) -> Types {
        let mut taken = BTreeSet::new();
        let named = |name: &String| (name.clone(), unique(&mut taken, &identifier(name)));
        let names = definitions.keys().map(named).collect();
        Types { definitions, names }
    }

    /// The shape itself, where a name only stands for another one.
    pub(crate) fn resolve<'a>(&'a self, shape: &'a Shape) -> &'a Shape {
        let mut shape = shape;
        for _ in 0..=self.definitions.len() {
            match shape {
                Shape::Named(name) => match self.definitions.get(name) {
                    Some(Definition::Alias(other)) => shape = other,
                    _ => return shape,
                },
                _ => return shape,
            }
        }
        // It stands for itself.
        &Shape::Json
    }
}

/// Puts messages into a file.
struct Maker<'a> {
    types: &'a Types,
    file: FileDescriptorProto,
    /// Names at the top of the file.
    taken: BTreeSet<String>,
}

/// A field's type.
struct Kind {
    ty: Type,
    /// The full name of a message or an enum.
    name: Option<String>,
}

impl Maker<'_> {
    fn package(&self) -> &str {
        self.file.package()
    }

    /// Adds a message, and gives its name.
    fn message(&mut self, wanted: &str, fields: &[Field]) -> String {
        let name = unique(&mut self.taken, &identifier(wanted));
        self.fill(&name, fields);
        name
    }

    /// Adds a message under a name that is taken for it.
    fn fill(&mut self, name: &str, fields: &[Field]) {
        let mut message = DescriptorProto { name: Some(name.into()), ..DescriptorProto::default() };
        let mut taken = BTreeSet::new();
        for (number, field) in (1..).zip(fields) {
            let label = unique(&mut taken, &identifier(&field.name));
            let hint = format!("{name}{}", camel(&field.name));
            self.add(&mut message, (number, &label), &field.shape, &hint);
        }
        self.file.message_type.push(message);
    }

    /// Adds a field to a message.
    fn add(
        &mut self,
        message: &mut DescriptorProto,
        (number, name): (i32, &str),
        shape: &Shape,
        hint: &str,
    ) {
        let types = self.types;
        let (label, kind, is_optional) = match types.resolve(shape) {
            Shape::Maybe(inner) => (Label::Optional, self.single(inner, hint), true),
            Shape::List(inner) => (Label::Repeated, self.single(inner, hint), false),
            Shape::Map(inner) => {
                let value = self.single(inner, hint);
                let entry = format!("{}Entry", camel(name));
                let ty = format!(".{}.{}.{entry}", self.package(), message.name());
                message.nested_type.push(map_entry(entry, value));
                (Label::Repeated, Kind { ty: Type::Message, name: Some(ty) }, false)
            }
            other => (Label::Optional, self.single(other, hint), false),
        };
        let mut field = field(number, name, kind);
        field.set_label(label);
        if is_optional {
            // An optional field of proto3 is the only one of a hidden choice.
            field.proto3_optional = Some(true);
            field.oneof_index = Some(i32::try_from(message.oneof_decl.len()).unwrap_or(i32::MAX));
            let oneof = OneofDescriptorProto { name: Some(format!("_{name}")), options: None };
            message.oneof_decl.push(oneof);
        }
        message.field.push(field);
    }

    /// The type of a field with one value.
    fn single(&mut self, shape: &Shape, hint: &str) -> Kind {
        let types = self.types;
        let ty = |ty| Kind { ty, name: None };
        match types.resolve(shape) {
            Shape::Scalar(Scalar::Bool) => ty(Type::Bool),
            Shape::Scalar(Scalar::U32) => ty(Type::Uint32),
            Shape::Scalar(Scalar::U64) => ty(Type::Uint64),
            Shape::Scalar(Scalar::I32) => ty(Type::Int32),
            Shape::Scalar(Scalar::I64) => ty(Type::Int64),
            Shape::Scalar(Scalar::F32) => ty(Type::Float),
            Shape::Scalar(Scalar::F64) => ty(Type::Double),
            Shape::Scalar(Scalar::Text | Scalar::U128 | Scalar::I128) | Shape::Json => {
                ty(Type::String)
            }
            Shape::Named(name) => {
                let is_enum = matches!(types.definitions[name], Definition::Names(_));
                let full = format!(".{}.{}", self.package(), types.names[name]);
                Kind { ty: if is_enum { Type::Enum } else { Type::Message }, name: Some(full) }
            }
            Shape::Unit => self.wrap(hint, &[]),
            Shape::Tuple(items) => {
                let item = |(number, shape): (usize, &Shape)| Field {
                    name: format!("item_{number}"),
                    shape: shape.clone(),
                };
                let items: Vec<Field> = (1..).zip(items).map(item).collect();
                self.wrap(hint, &items)
            }
            nested @ (Shape::List(_) | Shape::Maybe(_) | Shape::Map(_)) => {
                let value = Field { name: VALUE.into(), shape: nested.clone() };
                self.wrap(hint, &[value])
            }
        }
    }

    fn wrap(&mut self, hint: &str, fields: &[Field]) -> Kind {
        let name = self.message(hint, fields);
        Kind { ty: Type::Message, name: Some(format!(".{}.{name}", self.package())) }
    }

    fn define(&mut self, name: &str, definition: &Definition) {
        match definition {
            // Everybody uses the other type.
            Definition::Alias(_) => {}
            Definition::Record(fields) => self.fill(name, fields),
            Definition::Names(names) => {
                // Names of values stand beside those of types.
                let prefix = screaming(name);
                let mut taken = BTreeSet::from([format!("{prefix}_UNSPECIFIED")]);
                let mut all = vec![value(format!("{prefix}_UNSPECIFIED"), 0)];
                for (number, name) in (1..).zip(names) {
                    let wanted = format!("{prefix}_{}", screaming(&identifier(name)));
                    all.push(value(unique(&mut taken, &wanted), number));
                }
                self.file.enum_type.push(EnumDescriptorProto {
                    name: Some(name.into()),
                    value: all,
                    ..EnumDescriptorProto::default()
                });
            }
            Definition::Choice(variants) => {
                let mut message =
                    DescriptorProto { name: Some(name.into()), ..DescriptorProto::default() };
                let mut taken = BTreeSet::new();
                for (number, variant) in (1..).zip(variants) {
                    let wanted = screaming(&identifier(&variant.name)).to_lowercase();
                    let label = unique(&mut taken, &wanted);
                    let hint = format!("{name}{}", camel(&variant.name));
                    let kind = match &variant.content {
                        Content::Record(fields) => self.wrap(&hint, fields),
                        Content::Shape(shape) => self.single(shape, &hint),
                    };
                    let mut field = field(number, &label, kind);
                    field.set_label(Label::Optional);
                    field.oneof_index = Some(0);
                    message.field.push(field);
                }
                let oneof = OneofDescriptorProto { name: Some("kind".into()), options: None };
                message.oneof_decl.push(oneof);
                self.file.message_type.push(message);
            }
        }
    }
}

fn field(number: i32, name: &str, kind: Kind) -> FieldDescriptorProto {
    let mut field = FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        type_name: kind.name,
        ..FieldDescriptorProto::default()
    };
    field.set_type(kind.ty);
    field
}

fn map_entry(name: String, value: Kind) -> DescriptorProto {
    let mut key = field(1, "key", Kind { ty: Type::String, name: None });
    let mut value = field(2, VALUE, value);
    key.set_label(Label::Optional);
    value.set_label(Label::Optional);
    DescriptorProto {
        name: Some(name),
        field: vec![key, value],
        options: Some(MessageOptions { map_entry: Some(true), ..MessageOptions::default() }),
        ..DescriptorProto::default()
    }
}

fn value(name: String, number: i32) -> EnumValueDescriptorProto {
    EnumValueDescriptorProto { name: Some(name), number: Some(number), options: None }
}

/// A name that protobuf takes.
pub(crate) fn identifier(name: &str) -> String {
    let fit = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let mut fitted: String = name.chars().map(fit).collect();
    if !fitted.starts_with(|first: char| first.is_ascii_alphabetic()) {
        fitted.insert_str(0, "x_");
    }
    fitted
}

fn unique(taken: &mut BTreeSet<String>, wanted: &str) -> String {
    let numbered = (2..).map(|number| format!("{wanted}{number}"));
    let mut all = std::iter::once(wanted.to_owned()).chain(numbered);
    all.find(|name| taken.insert(name.clone())).expect("numbers do not end")
}

/// `shut_down` as `ShutDown`.
fn camel(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let upper = |word: &str| match word.split_at_checked(1) {
        Some((first, rest)) => first.to_ascii_uppercase() + rest,
        None => String::new(),
    };
    words.map(upper).collect()
}

/// `BookingError` as `BOOKING_ERROR`.
fn screaming(name: &str) -> String {
    let mut text = String::new();
    let mut before = ' ';
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
        before = letter;
    }
    text
}
