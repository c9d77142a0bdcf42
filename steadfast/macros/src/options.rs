//! The arguments of the attribute.

use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitStr, Token, Type};

/// The words in the parentheses of `#[steadfast::service(..)]`.
#[derive(Default)]
pub struct Options {
    /// The file of protobuf that has the methods, relative to the package's folder.
    pub proto: Option<LitStr>,
    /// The error that each method of the file may return.
    pub errors: Option<Type>,
    /// The methods of the file have the context of a call as their first argument.
    pub context: bool,
    /// The service is told of its group's views.
    pub views: bool,
    /// The service merges states of histories that have parted.
    pub merge: bool,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Options, Error> {
        let mut options = Options::default();
        let start = input.span();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            match name.to_string().as_str() {
                "proto" => {
                    input.parse::<Token![=]>()?;
                    options.proto = Some(input.parse()?);
                }
                "errors" => {
                    input.parse::<Token![=]>()?;
                    options.errors = Some(input.parse()?);
                }
                "context" => options.context = true,
                "views" => options.views = true,
                "merge" => options.merge = true,
                _ => return Err(Error::new(name.span(), ARGUMENTS)),
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        match options.proto {
            None if options.errors.is_some() || options.context => Err(Error::new(start, METHODS)),
            _ => Ok(options),
        }
    }
}

const ARGUMENTS: &str = "#[steadfast::service] takes no arguments but `views`, `merge`, and those \
                         of a service that begins with a file of protobuf: proto = \"orders.proto\", \
                         errors = OrderError, context";

const METHODS: &str = "`errors` and `context` are for methods from a file: write \
                       proto = \"orders.proto\", too. The methods of a trait say these themselves";
