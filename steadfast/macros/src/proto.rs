//! Services that begin with a file of protobuf: its rpcs become the trait's methods, its messages
//! Rust's types.
//!
//! `file.rs` compiles the file, `types.rs` writes the types, `names.rs` knows how Rust names them.

use std::path::Path;

use protox::prost_reflect::prost_types::method_options::IdempotencyLevel;
use protox::prost_reflect::{MethodDescriptor, ServiceDescriptor};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Error, ItemTrait, LitStr, TraitItem};

use crate::given::{Given, Refusal};
use crate::options::Options;

mod docs;
mod file;
mod names;
mod types;

use file::Compiled;
use types::Messages;

/// Puts the methods of the file into the trait.
///
/// # Errors
/// The file cannot be compiled, or has what a service cannot have: at the file's name.
pub fn fill(item: &mut ItemTrait, path: &LitStr, options: &Options) -> Result<Given, Error> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    given(item, Path::new(&package), &path.value(), options)
        .map_err(|message| Error::new(path.span(), message))
}

fn given(
    item: &mut ItemTrait,
    package: &Path,
    path: &str,
    options: &Options,
) -> Result<Given, Refusal> {
    if !item.items.is_empty() {
        return Err("the file has the methods: leave the trait empty".into());
    }
    let compiled = Compiled::new(package, path)?;
    let name = item.ident.unraw().to_string();
    let service = service(&compiled, path, &name)?;
    if item.attrs.iter().all(|attribute| !attribute.path().is_ident("doc")) {
        let docs = docs::of(&service.parent_file(), service.path());
        item.attrs.extend(docs);
    }
    let messages = Messages::of(&service, item)?;
    for method in service.methods() {
        item.items.push(method_of(&method, &messages, options)?);
    }
    let (file, full_name) = (service.parent_file().name().to_owned(), service.full_name());
    let descriptors = compiled.descriptors();
    Ok(Given {
        types: messages.code(item),
        sources: compiled.sources(descriptors.len()),
        contract: Some(quote! {
            ::core::option::Option::Some(::steadfast::contract::ProtoContract {
                service: ::std::string::String::from(#full_name),
                file: ::std::string::String::from(#file),
                sources: __SOURCES
                    .iter()
                    .map(|(name, text)| ((*name).into(), (*text).into()))
                    .collect(),
                descriptors: ::std::string::String::from(#descriptors),
            })
        }),
    })
}

fn service(compiled: &Compiled, path: &str, name: &str) -> Result<ServiceDescriptor, Refusal> {
    let file = compiled.file();
    let found = file.services().find(|service| service.name() == name);
    found.ok_or_else(|| {
        let all: Vec<String> = file.services().map(|it| format!("`{}`", it.name())).collect();
        match all.is_empty() {
            true => format!("{path} has no service: add `service {name} {{ .. }}`"),
            false => format!(
                "{path} has no service `{name}`: name the trait as one of {}",
                all.join(", ")
            ),
        }
    })
}

fn method_of(
    method: &MethodDescriptor,
    messages: &Messages,
    options: &Options,
) -> Result<TraitItem, Refusal> {
    let rpc = method.name();
    if method.is_client_streaming() || method.is_server_streaming() {
        return Err(format!(
            "rpc {rpc} streams, and a service answers each call with one message: leave `stream` \
             out, or put the rpc into another service"
        ));
    }
    let ident = names::ident(&names::snake(rpc)).ok_or_else(|| {
        format!("rpc {rpc} has no name that a method of Rust can have: give it another one")
    })?;
    let level = method.method_descriptor_proto().options.as_ref();
    let reads = level.is_some_and(|it| it.idempotency_level() == IdempotencyLevel::NoSideEffects);
    let receiver = if reads {
        quote! { &self }
    } else {
        quote! { &mut self }
    };
    let context = options.context.then(|| quote! { context: &::steadfast::Context, });
    let (request, reply) = (messages.ident(&method.input()), messages.ident(&method.output()));
    let output = match &options.errors {
        Some(error) => quote! { ::core::result::Result<#reply, #error> },
        None => quote! { #reply },
    };
    let docs = docs::of(&method.parent_file(), method.path());
    let deprecated = level.is_some_and(|it| it.deprecated()).then(|| quote! { #[deprecated] });
    let code = quote! {
        #(#docs)*
        #deprecated
        fn #ident(#receiver, #context request: #request) -> #output;
    };
    syn::parse2(code).map_err(|error| format!("rpc {rpc}: {error}"))
}

#[cfg(test)]
mod tests;
