//! Protobuf for services that know nothing of it: by their contracts.

use bytes::Bytes;
use prost::Message;
use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use serde_json::value::RawValue;
use steadfast::Contract;
use steadfast::contract::{ArgumentContract, MethodContract, ProtoContract};

use crate::names::package_of;

mod convert;
mod file;
mod given;
mod number;
mod print;
mod shape;

use convert::Converter;
use file::Types;
use shape::{Field, Shape};

/// A contract, and all that is made of it.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) contract: Contract,
    /// The service's name with its package.
    pub(crate) service: String,
    form: Form,
    pool: DescriptorPool,
}

/// The file of protobuf.
#[derive(Debug)]
enum Form {
    /// It is made of the contract.
    Derived(Box<FileDescriptorProto>, Types),
    /// The service begins with it.
    Given,
}

/// A method that a caller has named.
pub(crate) struct Method<'a> {
    pub(crate) contract: &'a MethodContract,
    described: &'a Described,
    request: MessageDescriptor,
    reply: MessageDescriptor,
}

impl Described {
    /// # Errors
    /// The contract makes no valid file: why.
    pub(crate) fn new(group: &str, contract: Contract) -> Result<Described, String> {
        if let Some(proto) = &contract.proto {
            let (pool, service) = (given::pool(&contract, proto)?, proto.service.clone());
            return Ok(Described { contract, service, form: Form::Given, pool });
        }
        let types = Types::new(shape::definitions(&contract));
        let file = file::file(group, &contract, &types);
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_proto(file.clone()).map_err(|error| error.to_string())?;
        let service = format!("{}.{}", package_of(group), file::identifier(&contract.service));
        Ok(Described { contract, service, form: Form::Derived(Box::new(file), types), pool })
    }

    /// The method of this name, as the contract or as protobuf writes it.
    pub(crate) fn method(&self, name: &str) -> Option<Method<'_>> {
        let (contract, method) = self
            .methods()
            .find(|(contract, method)| contract.name == name || method.name() == name)?;
        let (request, reply) = (method.input(), method.output());
        Some(Method { contract, described: self, request, reply })
    }

    /// The methods as the contract and as protobuf write them, which have one order.
    fn methods(&self) -> impl Iterator<Item = (&MethodContract, MethodDescriptor)> {
        let service = self.pool.get_service_by_name(&self.service);
        let methods: Vec<MethodDescriptor> =
            service.map(|service| service.methods().collect()).unwrap_or_default();
        self.contract.methods.iter().zip(methods)
    }

    /// Whether this method may be called as a read.
    pub(crate) fn changes_nothing(&self, name: &str) -> bool {
        self.contract.methods.iter().any(|method| method.name == name && method.reads)
    }

    /// The paths of the methods that change nothing.
    pub(crate) fn reads(&self) -> Vec<String> {
        let reads = self.methods().filter(|(contract, _)| contract.reads);
        reads.map(|(_, method)| format!("/{}/{}", self.service, method.name())).collect()
    }

    /// The file and all that it imports, as messages.
    pub(crate) fn files(&self) -> Vec<Vec<u8>> {
        self.pool.files().map(|file| file.encode_to_vec()).collect()
    }

    /// Whether a file has this name.
    pub(crate) fn has_file(&self, name: &str) -> bool {
        self.pool.get_file_by_name(name).is_some()
    }

    /// Whether the file has a service, method, message or enum of this name.
    pub(crate) fn has(&self, symbol: &str) -> bool {
        let mut services = self.pool.services();
        let of_service = services.any(|service| {
            let within = symbol.strip_prefix(service.full_name());
            within.is_some_and(|rest| {
                let method = rest.strip_prefix('.');
                rest.is_empty()
                    || method.is_some_and(|it| service.methods().any(|m| m.name() == it))
            })
        });
        of_service
            || self.pool.get_message_by_name(symbol).is_some()
            || self.pool.get_enum_by_name(symbol).is_some()
    }

    /// The file as people write it.
    pub(crate) fn text(&self) -> String {
        match (&self.form, &self.contract.proto) {
            (Form::Derived(file, _), _) => print::text(file, &self.contract),
            (Form::Given, proto) => proto.as_ref().map(ProtoContract::text).unwrap_or_default(),
        }
    }

    fn shape(&self, text: &str) -> Shape {
        Shape::read(text, &|name: &str| self.contract.types.contains_key(name))
    }
}

impl Method<'_> {
    /// The arguments in a message, as an object of JSON.
    ///
    /// # Errors
    /// The bytes are not the message: what is wrong.
    pub(crate) fn arguments(&self, message: Bytes) -> Result<Bytes, String> {
        let message = DynamicMessage::decode(self.request.clone(), message)
            .map_err(|error| format!("this is no {}: {error}", self.request.full_name()))?;
        let Form::Derived(_, types) = &self.described.form else {
            return given::arguments(self.contract, &message);
        };
        let field = |argument: &ArgumentContract| Field {
            name: argument.name.clone(),
            shape: self.described.shape(&argument.ty),
        };
        let fields: Vec<Field> = self.contract.arguments.iter().map(field).collect();
        let mut json = Vec::with_capacity(128);
        Converter::new(types).to_json(&message, &fields, &mut json)?;
        Ok(json.into())
    }

    /// The message of a result in JSON.
    ///
    /// # Errors
    /// The result is not what the contract says: what is wrong.
    pub(crate) fn result(&self, json: &[u8]) -> Result<Bytes, String> {
        let json: &RawValue = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let Form::Derived(_, types) = &self.described.form else {
            return given::result(&self.reply, json.get());
        };
        let mut message = DynamicMessage::new(self.reply.clone());
        let shape = self.described.shape(&self.contract.result);
        if shape != Shape::Unit {
            Converter::new(types).put(&mut message, 1, &shape, json)?;
        }
        Ok(message.encode_to_vec().into())
    }
}

/// The file of protobuf that stands for a contract.
///
/// # Errors
/// The contract makes no valid file: why.
pub fn proto_of(group: &str, contract: &Contract) -> Result<String, String> {
    Ok(Described::new(group, contract.clone())?.text())
}

#[cfg(test)]
mod tests;
