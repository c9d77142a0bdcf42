//! The types that a method's callers get.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Type;

use crate::model::{Method, Output};

/// Whether the type is a `Result`, as the compiler knows it.
pub fn is_result(ty: &Type) -> TokenStream {
    quote! { { ::steadfast::__private::IsResult::<#ty>::YES } }
}

/// The types that a caller gets: the result, and the service's own error.
pub fn returned(method: &Method) -> (TokenStream, TokenStream) {
    let Output { ok, error, may_be_result } = &method.output;
    let part = |name: TokenStream| {
        let is_result = is_result(ok);
        quote! { <#ok as ::steadfast::__private::Returned<#is_result>>::#name }
    };
    match error {
        Some(error) => (ok.to_token_stream(), error.to_token_stream()),
        None if *may_be_result => (part(quote! { Ok }), part(quote! { Error })),
        None => (ok.to_token_stream(), quote! { ::core::convert::Infallible }),
    }
}
