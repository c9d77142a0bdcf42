//! Messages and enums as Rust's types.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Ident, TokenStream};
use protox::prost_reflect::{
    EnumDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor, OneofDescriptor,
    ServiceDescriptor, Syntax,
};
use quote::quote;
use syn::ItemTrait;

use super::{docs, names};
use crate::given::Refusal;

/// Names that the attribute reads as Rust's own, or ours.
const TAKEN: [&str; 4] = ["Context", "Result", "Self", "Schema"];

/// The types that a service's methods take and return, and those within them.
pub struct Messages {
    messages: Vec<MessageDescriptor>,
    enums: Vec<EnumDescriptor>,
    idents: BTreeMap<String, Ident>,
}

impl Messages {
    /// All types that the service's methods reach.
    ///
    /// # Errors
    /// One of them has no form in Rust, or two have the same name: which, and what to do.
    pub fn of(service: &ServiceDescriptor, item: &ItemTrait) -> Result<Messages, Refusal> {
        let mut found =
            Messages { messages: Vec::new(), enums: Vec::new(), idents: BTreeMap::new() };
        let mut waiting: Vec<MessageDescriptor> =
            service.methods().flat_map(|method| [method.output(), method.input()]).collect();
        waiting.reverse();
        while let Some(message) = waiting.pop() {
            if !found.name(message.full_name(), &message.parent_file())? {
                continue;
            }
            let mut within = Vec::new();
            for field in message.fields() {
                match value_of(&field).1 {
                    Kind::Message(inner) => within.push(inner),
                    Kind::Enum(inner) if found.name(inner.full_name(), &inner.parent_file())? => {
                        found.enums.push(inner);
                    }
                    _ => {}
                }
            }
            waiting.extend(within.into_iter().rev());
            found.messages.push(message);
        }
        found.check(item)?;
        Ok(found)
    }

    /// Names a type. `false`: that is done.
    fn name(&mut self, full_name: &str, file: &FileDescriptor) -> Result<bool, Refusal> {
        if self.idents.contains_key(full_name) {
            return Ok(false);
        }
        if full_name.starts_with("google.protobuf.") && full_name != "google.protobuf.Empty" {
            return Err(format!(
                "{full_name} has no form in Rust here: use a message of your own, such as one \
                 with `uint64 nanoseconds = 1;` for a time"
            ));
        }
        if file.syntax() != Syntax::Proto3 {
            return Err(format!(
                "{} is no proto3, and {full_name} is needed: begin it with `syntax = \"proto3\";`",
                file.name()
            ));
        }
        let local = match file.package_name() {
            "" => full_name,
            package => &full_name[package.len() + 1..],
        };
        let name: String = local.split('.').map(names::pascal).collect();
        let ident = names::ident(&name).ok_or_else(|| {
            format!("{full_name} has no name that a type of Rust can have: give it another one")
        })?;
        self.idents.insert(full_name.to_owned(), ident);
        Ok(true)
    }

    /// Names must tell types, fields and variants apart.
    fn check(&self, item: &ItemTrait) -> Result<(), Refusal> {
        let own = names::own(item);
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for (full_name, ident) in &self.idents {
            let name = ident.to_string();
            if own.contains(&name) || TAKEN.contains(&&*name) {
                return Err(format!(
                    "{full_name} would be the type `{name}`, which is another one: give it \
                     another name"
                ));
            }
            if let Some(other) = seen.insert(name.clone(), full_name) {
                return Err(format!(
                    "{other} and {full_name} would both be the type `{name}`: rename one of them"
                ));
            }
        }
        for message in &self.messages {
            for field in message.fields() {
                if names::ident(field.name()).is_none() {
                    return Err(format!(
                        "{} has no name that a field of Rust can have: give it another one",
                        field.full_name()
                    ));
                }
            }
        }
        for it in &self.enums {
            let mut seen: BTreeMap<String, i32> = BTreeMap::new();
            for value in it.values() {
                let name = names::variant(it.name(), value.name());
                let number = value.number();
                if *seen.entry(name.clone()).or_insert(number) != number {
                    return Err(format!(
                        "two values of {} would both be the variant `{name}`: rename one of them",
                        it.full_name()
                    ));
                }
                if names::ident(&name).is_none() {
                    return Err(format!(
                        "the value {} has no name that a variant of Rust can have: give it \
                         another one",
                        value.full_name()
                    ));
                }
            }
        }
        Ok(())
    }

    /// The type of a message that a method takes or returns.
    pub fn ident(&self, message: &MessageDescriptor) -> &Ident {
        &self.idents[message.full_name()]
    }

    /// All types, as visible as the trait.
    pub fn code(&self, item: &ItemTrait) -> TokenStream {
        let messages = self.messages.iter().map(|message| self.message(message, item));
        let enums = self.enums.iter().map(|it| self.choice(it, item));
        quote! { #(#messages)* #(#enums)* }
    }

    fn message(&self, message: &MessageDescriptor, item: &ItemTrait) -> TokenStream {
        let (ident, vis) = (self.ident(message), &item.vis);
        let docs = docs::of(&message.parent_file(), message.path());
        let derives = derives();
        if message.fields().len() == 0 {
            // An object without fields: a contract has no such form, and tells the name alone.
            let name = ident.to_string();
            return quote! {
                #(#docs)*
                #derives
                #[derive(::core::default::Default)]
                #[serde(crate = "::steadfast::__private::serde", deny_unknown_fields)]
                #vis struct #ident {}

                impl ::steadfast::Schema for #ident {
                    fn schema(_: &mut ::steadfast::contract::Types) -> ::std::string::String {
                        ::std::string::String::from(#name)
                    }
                }
            };
        }
        let fields = message.fields().map(|field| self.field(&field));
        quote! {
            #(#docs)*
            #derives
            #[derive(::core::default::Default, ::steadfast::Schema)]
            #[serde(crate = "::steadfast::__private::serde", default, deny_unknown_fields)]
            #[allow(non_snake_case)]
            #vis struct #ident { #(#fields)* }
        }
    }

    fn field(&self, field: &FieldDescriptor) -> TokenStream {
        let name = names::ident(field.name()).expect("it is checked");
        let mut docs = docs::of(&field.parent_file(), field.path());
        if let Some(oneof) = choice_of(field) {
            let others: Vec<String> = oneof.fields().map(|it| format!("`{}`", it.name())).collect();
            let text = format!(" One of {} at most.", others.join(", "));
            if !docs.is_empty() {
                docs.push(syn::parse_quote! { #[doc = ""] });
            }
            docs.push(syn::parse_quote! { #[doc = #text] });
        }
        let (key, value) = value_of(field);
        let single = self.kind(&value);
        let ty = match (key, &value) {
            (Some(key), _) => {
                let key = self.kind(&key);
                quote! { ::std::collections::BTreeMap<#key, #single> }
            }
            (None, _) if field.is_list() => quote! { ::std::vec::Vec<#single> },
            (None, Kind::Message(inner)) if reaches(inner, field.parent_message()) => {
                quote! { ::core::option::Option<::std::boxed::Box<#single>> }
            }
            (None, _) if field.supports_presence() => quote! { ::core::option::Option<#single> },
            (None, _) => single,
        };
        quote! {
            #(#docs)*
            pub #name: #ty,
        }
    }

    /// The type of a single value.
    fn kind(&self, kind: &Kind) -> TokenStream {
        match kind {
            Kind::Double => quote! { f64 },
            Kind::Float => quote! { f32 },
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => quote! { i32 },
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => quote! { i64 },
            Kind::Uint32 | Kind::Fixed32 => quote! { u32 },
            Kind::Uint64 | Kind::Fixed64 => quote! { u64 },
            Kind::Bool => quote! { bool },
            Kind::String => quote! { ::std::string::String },
            Kind::Bytes => quote! { ::steadfast::contract::Base64 },
            Kind::Message(message) => {
                let ident = self.ident(message);
                quote! { #ident }
            }
            Kind::Enum(it) => {
                let ident = &self.idents[it.full_name()];
                quote! { #ident }
            }
        }
    }

    fn choice(&self, it: &EnumDescriptor, item: &ItemTrait) -> TokenStream {
        let (ident, vis) = (&self.idents[it.full_name()], &item.vis);
        let docs = docs::of(&it.parent_file(), it.path());
        let derives = derives();
        let mut seen = BTreeSet::new();
        let variants = it.values().filter(|value| seen.insert(value.number())).map(|value| {
            let name = value.name();
            let docs = docs::of(&it.parent_file(), value.path());
            let variant = names::variant(it.name(), name);
            let variant = names::ident(&variant).expect("it is checked");
            let default = (value.number() == 0).then(|| quote! { #[default] });
            let others = it
                .values()
                .filter(|other| other.number() == value.number() && other.name() != value.name());
            let others = others.map(|other| other.name().to_owned());
            quote! {
                #(#docs)*
                #default
                #[serde(rename = #name, #(alias = #others),*)]
                #variant,
            }
        });
        quote! {
            #(#docs)*
            #derives
            #[derive(
                ::core::marker::Copy, ::core::default::Default, ::core::cmp::Eq,
                ::core::cmp::PartialOrd, ::core::cmp::Ord, ::core::hash::Hash, ::steadfast::Schema,
            )]
            #[serde(crate = "::steadfast::__private::serde")]
            #vis enum #ident { #(#variants)* }
        }
    }
}

/// The attributes of all types. Nobody need use each of them.
fn derives() -> TokenStream {
    quote! {
        #[allow(dead_code, missing_docs)]
        #[derive(
            ::core::clone::Clone, ::core::fmt::Debug, ::core::cmp::PartialEq,
            ::steadfast::__private::serde::Serialize, ::steadfast::__private::serde::Deserialize,
        )]
    }
}

/// The kinds of a map's key, and of a value in a map, in a list, or by itself.
fn value_of(field: &FieldDescriptor) -> (Option<Kind>, Kind) {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            (Some(entry.map_entry_key_field().kind()), entry.map_entry_value_field().kind())
        }
        kind => (None, kind),
    }
}

/// The `oneof` that a person has written around the field.
fn choice_of(field: &FieldDescriptor) -> Option<OneofDescriptor> {
    let written = !field.field_descriptor_proto().proto3_optional();
    field.containing_oneof().filter(|_| written)
}

/// A value of one message may have one of the other within, with nothing on the heap between.
fn reaches(from: &MessageDescriptor, to: &MessageDescriptor) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![from.clone()];
    while let Some(message) = waiting.pop() {
        if message == *to {
            return true;
        }
        if seen.insert(message.full_name().to_owned()) {
            let single = |field: FieldDescriptor| match field.kind() {
                Kind::Message(inner) if !field.is_list() && !field.is_map() => Some(inner),
                _ => None,
            };
            waiting.extend(message.fields().filter_map(single));
        }
    }
    false
}
