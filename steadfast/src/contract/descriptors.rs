//! The descriptors of a contract's file, and which changes of them break callers by protobuf.

use std::collections::BTreeMap;

use base64ct::{Base64, Encoding};
use prost::Message;
use prost_types::field_descriptor_proto::Label;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto,
};

use super::ProtoContract;

impl ProtoContract {
    /// The bytes of the `FileDescriptorSet`.
    ///
    /// # Errors
    /// They are not in base64.
    pub fn descriptor_set(&self) -> Result<Vec<u8>, String> {
        let decoded = Base64::decode_vec(&self.descriptors);
        decoded.map_err(|_| "the descriptors of its file are not in base64".to_owned())
    }

    /// The changes that break callers by protobuf: other numbers, names or types.
    pub(super) fn breaks(&self, newer: &ProtoContract) -> Vec<String> {
        if self.descriptors == newer.descriptors && self.service == newer.service {
            return Vec::new();
        }
        let read = |proto: &ProtoContract| {
            let set = FileDescriptorSet::decode(&*proto.descriptor_set()?)
                .map_err(|error| format!("these are no descriptors: {error}"))?;
            Ok::<Definitions, String>(Definitions::of(set))
        };
        let (before, after) = match (read(self), read(newer)) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) => return vec![format!("the older file of protobuf: {why}")],
            (_, Err(why)) => return vec![format!("the newer file of protobuf: {why}")],
        };
        let mut found = Vec::new();
        if self.service != newer.service {
            found.push(format!("the service was {}, is {}", self.service, newer.service));
        }
        before.breaks(&after, (&self.service, &newer.service), &mut found);
        found
    }
}

/// The definitions of the files, by names with packages.
#[derive(Default)]
struct Definitions {
    messages: BTreeMap<String, DescriptorProto>,
    enums: BTreeMap<String, EnumDescriptorProto>,
    /// The rpcs of each service.
    rpcs: BTreeMap<String, Vec<MethodDescriptorProto>>,
}

impl Definitions {
    fn of(set: FileDescriptorSet) -> Definitions {
        let mut all = Definitions::default();
        for file in set.file {
            let within = |name: &str| match file.package() {
                "" => name.to_owned(),
                package => format!("{package}.{name}"),
            };
            for service in &file.service {
                all.rpcs.insert(within(service.name()), service.method.clone());
            }
            for it in &file.enum_type {
                all.enums.insert(within(it.name()), it.clone());
            }
            let mut waiting: Vec<(String, DescriptorProto)> =
                file.message_type.iter().map(|it| (within(it.name()), it.clone())).collect();
            while let Some((name, mut message)) = waiting.pop() {
                for it in std::mem::take(&mut message.enum_type) {
                    all.enums.insert(format!("{name}.{}", it.name()), it);
                }
                for it in std::mem::take(&mut message.nested_type) {
                    waiting.push((format!("{name}.{}", it.name()), it));
                }
                all.messages.insert(name, message);
            }
        }
        all
    }

    fn breaks(&self, newer: &Definitions, services: (&str, &str), found: &mut Vec<String>) {
        let rpcs =
            |all: &Definitions, service: &str| all.rpcs.get(service).cloned().unwrap_or_default();
        let after = rpcs(newer, services.1);
        for rpc in rpcs(self, services.0) {
            let name = rpc.name();
            match after.iter().find(|other| other.name() == name) {
                None => found.push(format!("rpc {name} is gone")),
                Some(now) => {
                    was(
                        found,
                        &format!("rpc {name}: the request"),
                        rpc.input_type(),
                        now.input_type(),
                    );
                    was(
                        found,
                        &format!("rpc {name}: the reply"),
                        rpc.output_type(),
                        now.output_type(),
                    );
                }
            }
        }
        for (name, message) in &self.messages {
            match newer.messages.get(name) {
                None => found.push(format!("the message {name} is gone")),
                Some(now) => fields(name, message, now, found),
            }
        }
        for (name, it) in &self.enums {
            match newer.enums.get(name) {
                None => found.push(format!("the enum {name} is gone")),
                Some(now) => values(name, it, now, found),
            }
        }
    }
}

fn was(found: &mut Vec<String>, of: &str, before: &str, after: &str) {
    if before != after {
        let plain = |text: &str| text.trim_start_matches('.').to_owned();
        found.push(format!("{of} was {}, is {}", plain(before), plain(after)));
    }
}

fn fields(
    message: &str,
    before: &DescriptorProto,
    after: &DescriptorProto,
    found: &mut Vec<String>,
) {
    for field in &before.field {
        let (name, number) = (field.name(), field.number());
        let of = format!("{message}: field {name}");
        match after.field.iter().find(|other| other.number() == number) {
            Some(now) => {
                if now.name() != name {
                    found.push(format!("{of} is named {} now, by number {number}", now.name()));
                }
                was(found, &of, &form(field, before), &form(now, after));
            }
            None => match after.field.iter().find(|other| other.name() == name) {
                Some(now) => {
                    let now = now.number();
                    found.push(format!("{of} was number {number}, is number {now}"));
                }
                None => found.push(format!("{of}, number {number}, is gone")),
            },
        }
    }
}

/// A field's type as the file writes it, with all that counts on the wire and in stubs.
fn form(field: &FieldDescriptorProto, of: &DescriptorProto) -> String {
    let plain = field.r#type().as_str_name().trim_start_matches("TYPE_").to_lowercase();
    let ty = match field.type_name() {
        "" => &*plain,
        named => named.trim_start_matches('.'),
    };
    let oneof = field.oneof_index.and_then(|at| of.oneof_decl.get(usize::try_from(at).ok()?));
    match (field.label(), oneof) {
        (Label::Repeated, _) => format!("repeated {ty}"),
        (Label::Required, _) => format!("required {ty}"),
        (_, Some(_)) if field.proto3_optional() => format!("optional {ty}"),
        (_, Some(oneof)) => format!("{ty} in oneof {}", oneof.name()),
        (Label::Optional, None) => ty.to_owned(),
    }
}

fn values(
    name: &str,
    before: &EnumDescriptorProto,
    after: &EnumDescriptorProto,
    found: &mut Vec<String>,
) {
    for value in &before.value {
        let (of, number) = (format!("{name}: value {}", value.name()), value.number());
        match after.value.iter().find(|other| other.name() == value.name()) {
            Some(now) if now.number() == number => {}
            Some(now) => {
                found.push(format!("{of} was number {number}, is number {}", now.number()))
            }
            None => found.push(format!("{of}, number {number}, is gone")),
        }
    }
}
