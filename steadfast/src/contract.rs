//! The contract of a service: its methods and types, as callers in every language read them.
//!
//! The code that [`service`](crate::service) writes answers the method [`DESCRIBE`] with the
//! service's contract; a program in another language may do so too. `steadfast describe` shows it.
//!
//! Types are texts: `bool`, `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, `String`, `Bytes`, `()`,
//! `Vec<T>`, `Option<T>`, `Map<K, V>`, `(A, B)`, `[T; 4]`, or a name in [`Contract::types`]. Any
//! other text is a type that only the service knows: callers send and read its JSON.

use std::collections::BTreeMap;

use bytes::Bytes;
use client::{CallError, Client, Invocation, Reading};
use serde::{Deserialize, Serialize};
use wire::MethodId;
use wire::client::Refusal;

use self::limits::{limited, name, names, type_text};

#[cfg(feature = "descriptors")]
mod base64;
mod breaks;
#[cfg(feature = "descriptors")]
mod descriptors;
mod limits;
mod proto;
pub(crate) mod schema;
#[cfg(feature = "node")]
mod tell;

#[cfg(feature = "descriptors")]
pub use base64::Base64;
pub use limits::{MAX_CONTRACT, MAX_METHODS, MAX_PARTS, MAX_TYPE, MAX_TYPES};
pub use proto::{MAX_PROTO, ProtoContract};
pub use schema::{Schema, Types};
#[cfg(feature = "node")]
pub use tell::tell;

/// The method that tells the contract: a read without arguments. Its request must say that it is
/// JSON, whatever the service speaks otherwise.
pub const DESCRIBE: MethodId = MethodId::of("steadfast.describe");

/// The methods and types of a service.
///
/// ```
/// # use steadfast::Contract;
/// #[steadfast::service]
/// trait Counter {
///     /// Adds `n` and returns the sum.
///     fn add(&mut self, n: u64) -> u64;
/// }
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Tally(u64);
/// # impl Counter for Tally {
/// #     fn add(&mut self, n: u64) -> u64 { self.0 += n; self.0 }
/// # }
///
/// let contract = CounterService::<Tally>::contract();
/// assert_eq!(contract.methods[0].signature(), "add(n: u64) -> u64");
///
/// // A test keeps the contract that callers were built from:
/// let kept = r#"{"service": "Counter", "encodings": ["postcard", "json"], "methods": [
///     {"name": "add", "reads": false, "arguments": [{"name": "n", "type": "u32"}], "result": "u64"}
/// ]}"#;
/// let kept = Contract::from_json(kept.as_bytes())?;
/// assert_eq!(kept.breaks(&contract), ["add: argument n was u32, is u64"]);
/// # Ok::<(), steadfast::ContractError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// The service's name: of its trait, in Rust.
    pub service: String,
    /// Its documentation; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub docs: String,
    /// The forms of arguments and results that it reads and writes: `postcard`, `json`.
    pub encodings: Vec<String>,
    /// Its methods, as they stand in the trait.
    pub methods: Vec<MethodContract>,
    /// The types that the methods and other types name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, TypeContract>,
    /// The file of protobuf that it begins with, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proto: Option<ProtoContract>,
}

/// A method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodContract {
    /// Its name, which is hashed into its [`MethodId`].
    pub name: String,
    /// It changes nothing, and may be called as a read.
    pub reads: bool,
    /// Its documentation; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub docs: String,
    /// Its arguments, in order.
    pub arguments: Vec<ArgumentContract>,
    /// The type of its result.
    pub result: String,
    /// The type of the service's own error, if it may return one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An argument of a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentContract {
    /// Its name, for calls that give arguments by name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
}

/// A type that a contract defines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TypeContract {
    /// Named fields are a JSON object; several without names an array; a single one without a name
    /// is the field itself; none is `null`.
    Struct {
        /// Its documentation; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        docs: String,
        /// Its fields, in order.
        fields: Vec<FieldContract>,
    },
    /// In JSON, a variant without fields is its name; another one is an object of its name, and of
    /// its fields in the form of a struct's.
    Enum {
        /// Its documentation; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        docs: String,
        /// Its variants, in order.
        variants: Vec<VariantContract>,
    },
}

/// A field of a struct or of a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldContract {
    /// Its name; empty if it is known by its place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its documentation; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub docs: String,
}

/// A variant of an enum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantContract {
    /// Its name.
    pub name: String,
    /// Its fields, in order.
    #[serde(default)]
    pub fields: Vec<FieldContract>,
    /// Its documentation; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub docs: String,
}

/// Why there is no contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// The group could not be asked.
    #[error(transparent)]
    Call(CallError),
    /// The group's program does not tell its contract.
    #[error(
        "the program of this group does not tell its contract: have it answer the method \
         `steadfast.describe`, or build it with this version of steadfast"
    )]
    Untold,
    /// These bytes are no contract.
    #[error("this is not a contract: {0}")]
    Answer(String),
}

impl Contract {
    /// Asks a group for its contract.
    ///
    /// # Errors
    /// No replica answers within [`DEFAULT_DEADLINE`](crate::DEFAULT_DEADLINE), or its answer is
    /// not a contract.
    pub fn of(client: &Client, group: &str) -> Result<Contract, ContractError> {
        Contract::read(client.call(Contract::ask(group)))
    }

    /// The call that asks a group for its contract: for an async client, or with a deadline of
    /// one's own. [`read`](Self::read) reads what comes back.
    pub fn ask(group: &str) -> Invocation<'_> {
        Invocation::new(group, DESCRIBE).json().body("[]").reading(Reading::Linearizable)
    }

    /// Reads what the call of [`ask`](Self::ask) returned.
    ///
    /// # Errors
    /// The call failed, or its answer is not a contract.
    pub fn read(answer: Result<Bytes, CallError>) -> Result<Contract, ContractError> {
        match answer {
            Ok(json) => Contract::from_json(&json),
            Err(CallError::Refused {
                refusal: Refusal::NoSuchMethod | Refusal::NotReadOnly,
                ..
            }) => Err(ContractError::Untold),
            Err(error) => Err(ContractError::Call(error)),
        }
    }

    /// Reads a contract from at most [`MAX_CONTRACT`] bytes of JSON. Unknown keys are ignored: a
    /// newer program may tell more.
    ///
    /// # Errors
    /// It is not a contract, or one beyond the limits.
    pub fn from_json(json: &[u8]) -> Result<Contract, ContractError> {
        if json.len() > MAX_CONTRACT {
            let text = format!("it has {} bytes, at most {MAX_CONTRACT} are read", json.len());
            return Err(ContractError::Answer(text));
        }
        let contract: Contract = serde_json::from_slice(json)
            .map_err(|error| ContractError::Answer(error.to_string()))?;
        contract.check().map_err(ContractError::Answer)?;
        Ok(contract)
    }

    /// Writes it as JSON for people, for a file that [`from_json`](Self::from_json) reads.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self).expect("texts and lists have a form");
        json + "\n"
    }

    /// Names and numbers are within the limits, can be printed, and tell all parts apart.
    fn check(&self) -> Result<(), String> {
        name("the service", &self.service)?;
        names("an encoding", self.encodings.iter(), MAX_PARTS)?;
        names("a method", self.methods.iter().map(|it| &it.name), MAX_METHODS)?;
        for method in &self.methods {
            names("an argument", method.arguments.iter().map(|it| &it.name), MAX_PARTS)?;
            let arguments = method.arguments.iter().map(|argument| &*argument.ty);
            let mut all = arguments.chain([&*method.result]).chain(method.error.as_deref());
            all.try_for_each(type_text)?;
        }
        self.proto.as_ref().map_or(Ok(()), ProtoContract::check)?;
        names("a type", self.types.keys(), MAX_TYPES)?;
        for (ty, definition) in &self.types {
            if !ty.chars().all(is_of_name) {
                return Err(format!("the type {ty:?} is not named like one"));
            }
            match definition {
                TypeContract::Struct { fields, .. } => check_fields(fields)?,
                TypeContract::Enum { variants, .. } => {
                    names("a variant", variants.iter().map(|it| &it.name), MAX_PARTS)?;
                    for variant in variants {
                        check_fields(&variant.fields)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl MethodContract {
    /// The method as Rust writes it, such as `add(n: u64) -> Result<u64, Overdrawn>`.
    pub fn signature(&self) -> String {
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .map(|argument| format!("{}: {}", argument.name, argument.ty))
            .collect();
        let result = match &self.error {
            None if self.result == "()" => String::new(),
            None => format!(" -> {}", self.result),
            Some(error) => format!(" -> Result<{}, {error}>", self.result),
        };
        format!("{}({}){result}", self.name, arguments.join(", "))
    }
}

/// Whether a type's name may have this character.
fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || ['_', ':', '.'].contains(&letter)
}

fn check_fields(fields: &[FieldContract]) -> Result<(), String> {
    fields.iter().try_for_each(|field| type_text(&field.ty))?;
    match fields.iter().all(|field| field.name.is_empty()) {
        true => limited("a field", fields.len(), MAX_PARTS),
        false => names("a field", fields.iter().map(|it| &it.name), MAX_PARTS),
    }
}

#[cfg(test)]
mod tests;
