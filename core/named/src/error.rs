//! Why a value cannot be written or read, and where.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{de, ser};

/// Why a value cannot be written, or bytes are not of its type. It names the field: ``missing field
/// `credit`, in `Account.limits[2]` ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    reason: String,
    is_too_large: bool,
    /// From the inside out.
    path: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    Type(&'static str),
}

impl Error {
    pub(crate) fn new(reason: impl Into<String>) -> Error {
        Error(Box::new(Inner { reason: reason.into(), is_too_large: false, path: Vec::new() }))
    }

    pub(crate) fn cut() -> Error {
        Error::new("the bytes end too early")
    }

    pub(crate) fn too_deep(depth: usize) -> Error {
        Error::new(format!("it nests deeper than {depth} levels"))
    }

    pub(crate) fn too_large(bytes: usize) -> Error {
        let mut error = Error::new(format!("it has more than {bytes} bytes"));
        error.0.is_too_large = true;
        error
    }

    /// The value reads back as another one.
    pub fn changed() -> Error {
        Error::new(
            "it reads back as another value: a variant of an `untagged` enum takes the values of a \
             later one, or `serialize` and `deserialize` of a type do not fit each other",
        )
    }

    /// The value is larger than the bound that was given; nothing else is known of it.
    pub fn is_too_large(&self) -> bool {
        self.0.is_too_large
    }

    #[cold]
    pub(crate) fn in_field(mut self, name: &str) -> Error {
        self.0.path.push(Step::Field(name.to_string()));
        self
    }

    #[cold]
    pub(crate) fn at_index(mut self, index: usize) -> Error {
        self.0.path.push(Step::Index(index));
        self
    }

    #[cold]
    pub(crate) fn in_type(mut self, name: &'static str) -> Error {
        if !matches!(self.0.path.last(), Some(Step::Type(_))) {
            self.0.path.push(Step::Type(name));
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.reason)?;
        let mut path = String::new();
        for step in self.0.path.iter().rev() {
            match step {
                Step::Field(name) if path.is_empty() => path += name,
                Step::Field(name) => path += &format!(".{name}"),
                Step::Index(index) => path += &format!("[{index}]"),
                Step::Type(name) if path.is_empty() => path += name,
                Step::Type(_) => {}
            }
        }
        if path.is_empty() { Ok(()) } else { write!(f, ", in `{path}`") }
    }
}

impl core::error::Error for Error {}

impl ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::new(message.to_string())
    }
}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::new(message.to_string())
    }
}
