//! Results of methods, where the macro sees a name that may stand for a `Result`.
//!
//! `type Outcome<T> = Result<T, Fault>` is a `Result` for the compiler, and a name for a macro. So
//! the generated code asks the compiler: [`IsResult`] is a constant of the type, and [`Returned`]
//! has an implementation for each answer.

use std::convert::Infallible;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::encoding::Encoding;

/// Whether a type is a `Result`: its own constant stands before that of [`NoResult`].
#[derive(Debug)]
pub struct IsResult<T>(PhantomData<T>);

impl<T, E> IsResult<Result<T, E>> {
    /// It is.
    pub const YES: bool = true;
}

/// All other types.
pub trait NoResult {
    /// It is not.
    const YES: bool = false;
}

impl<T> NoResult for IsResult<T> {}

/// The parts of what a method returns.
pub trait Returned<const IS_RESULT: bool>: Sized {
    /// The result.
    type Ok;
    /// The service's own error.
    type Error;

    /// The one or the other.
    ///
    /// # Errors
    /// The service's own.
    fn split(self) -> Result<Self::Ok, Self::Error>;

    /// Reads the service's own error.
    ///
    /// # Errors
    /// The bytes are none.
    fn read_error(encoding: Encoding, bytes: &[u8]) -> Result<Self::Error, String>;
}

impl<T, E: DeserializeOwned> Returned<true> for Result<T, E> {
    type Ok = T;
    type Error = E;

    fn split(self) -> Result<T, E> {
        self
    }

    fn read_error(encoding: Encoding, bytes: &[u8]) -> Result<E, String> {
        encoding.decode(bytes)
    }
}

impl<T> Returned<false> for T {
    type Ok = T;
    type Error = Infallible;

    fn split(self) -> Result<T, Infallible> {
        Ok(self)
    }

    fn read_error(_: Encoding, _: &[u8]) -> Result<Infallible, String> {
        Err("an error from a method that returns none".to_owned())
    }
}

/// The text of a type in a contract: by its schema, or its own name. `written` is what stands in
/// the trait: an alias, or the type itself.
pub fn text_of_part<T>(by_schema: String, written: &str) -> String {
    if !by_schema.is_empty() {
        return by_schema;
    }
    let name = std::any::type_name::<T>();
    let short = name.split('<').next().and_then(|path| path.rsplit("::").next()).unwrap_or(name);
    let base = |text: &str| text.split('<').next().map(str::to_owned);
    if base(written).as_deref() == Some(short) { written.to_owned() } else { short.to_owned() }
}
