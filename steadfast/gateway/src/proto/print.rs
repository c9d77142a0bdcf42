//! A file of protobuf as people write it, for those who generate code from it.

use std::fmt::Write;

use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto};
use steadfast::Contract;
use steadfast::contract::TypeContract;

/// The text of a contract's file.
pub(crate) fn text(file: &FileDescriptorProto, contract: &Contract) -> String {
    let mut text = Text(String::new());
    text.line(0, "// Made of the service's contract by `steadfast describe --proto`.");
    text.line(0, "syntax = \"proto3\";");
    text.line(0, "");
    text.line(0, &format!("package {};", file.package()));
    for service in &file.service {
        text.line(0, "");
        text.docs(0, &contract.docs);
        text.line(0, &format!("service {} {{", service.name()));
        for (method, told) in service.method.iter().zip(&contract.methods) {
            text.docs(2, &told.docs);
            if let Some(error) = &told.error {
                text.line(
                    2,
                    &format!("// Its own error: {error}, as JSON in `steadfast-error-bin`."),
                );
            }
            let local = |name: &str| last(name).to_owned();
            let (input, output) = (local(method.input_type()), local(method.output_type()));
            text.line(2, &format!("rpc {}({input}) returns ({output});", method.name()));
        }
        text.line(0, "}");
    }
    for message in &file.message_type {
        text.line(0, "");
        text.docs(0, docs(contract, message.name()));
        text.message(message);
    }
    for it in &file.enum_type {
        text.line(0, "");
        text.docs(0, docs(contract, it.name()));
        text.line(0, &format!("enum {} {{", it.name()));
        for value in &it.value {
            text.line(2, &format!("{} = {};", value.name(), value.number()));
        }
        text.line(0, "}");
    }
    text.0
}

fn docs<'a>(contract: &'a Contract, name: &str) -> &'a str {
    match contract.types.get(name) {
        Some(TypeContract::Struct { docs, .. } | TypeContract::Enum { docs, .. }) => docs,
        None => "",
    }
}

/// The last part of a name with its package.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

struct Text(String);

impl Text {
    fn line(&mut self, indent: usize, line: &str) {
        let indent = if line.is_empty() { 0 } else { indent };
        writeln!(self.0, "{:indent$}{line}", "").expect("a string takes everything");
    }

    fn docs(&mut self, indent: usize, docs: &str) {
        for line in docs.lines() {
            self.line(indent, format!("// {line}").trim_end());
        }
    }

    fn message(&mut self, message: &DescriptorProto) {
        let fields = |of: &dyn Fn(&FieldDescriptorProto) -> bool| -> Vec<FieldDescriptorProto> {
            message.field.iter().filter(|field| of(field)).cloned().collect()
        };
        let in_choice =
            |field: &FieldDescriptorProto| field.oneof_index.is_some() && !field.proto3_optional();
        self.line(0, &format!("message {} {{", message.name()));
        for field in fields(&|field| !in_choice(field)) {
            self.line(2, &written(&field, message));
        }
        let chosen = fields(&in_choice);
        if !chosen.is_empty() {
            self.line(2, "oneof kind {");
            for field in chosen {
                self.line(4, &written(&field, message));
            }
            self.line(2, "}");
        }
        self.line(0, "}");
    }
}

fn written(field: &FieldDescriptorProto, message: &DescriptorProto) -> String {
    let entry = message
        .nested_type
        .iter()
        .find(|entry| field.r#type() == Type::Message && last(field.type_name()) == entry.name());
    let ty = match entry {
        Some(entry) => format!("map<{}, {}>", ty(&entry.field[0]), ty(&entry.field[1])),
        None if field.label() == Label::Repeated => format!("repeated {}", ty(field)),
        None if field.proto3_optional() => format!("optional {}", ty(field)),
        None => ty(field),
    };
    format!("{ty} {} = {};", field.name(), field.number())
}

fn ty(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum => last(field.type_name()).to_owned(),
        plain => plain.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    }
}
