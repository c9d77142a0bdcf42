//! The parts of a service that a file of protobuf gives.

use proc_macro2::TokenStream;

/// The reason why a file is no service, with the remedy.
#[cfg(feature = "proto")]
pub type Refusal = String;

/// The parts of a service besides its trait, if it begins with a file.
#[derive(Default)]
pub struct Given {
    /// Types that stand beside the trait.
    pub types: TokenStream,
    /// The constant with the texts of its files: a change of a file has the crate built anew.
    pub sources: TokenStream,
    /// The value for `Contract::proto`.
    pub contract: Option<TokenStream>,
}
