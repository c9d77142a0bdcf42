//! The function that makes a service's contract.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{ItemTrait, Type, parse_quote};

use super::outcome::is_result;
use crate::model::{Method, Output, attributes, written};
use crate::schema::{documentation, text_of};

/// Writes `__contract`: one function, whatever implements the trait.
pub fn function(item: &ItemTrait, methods: &[Method], proto: Option<TokenStream>) -> TokenStream {
    let service = item.ident.unraw().to_string();
    let docs = documentation(&attributes(&item.attrs, "doc"));
    let methods = methods.iter().map(method);
    let proto = proto.unwrap_or_else(|| quote! { ::core::option::Option::None });
    quote! {
        #[allow(unused_imports)]
        fn __contract() -> ::steadfast::Contract {
            use ::steadfast::__private::by_schema::{Told as _, Written as _};
            let mut types = ::steadfast::contract::Types::default();
            let methods = ::std::vec![#(#methods),*];
            ::steadfast::Contract {
                service: ::std::string::String::from(#service),
                docs: #docs,
                encodings: ::std::vec!["named".into(), "postcard".into(), "json".into()],
                methods,
                types: types.finish(),
                proto: #proto,
            }
        }
    }
}

fn method(method: &Method) -> TokenStream {
    let (name, reads) = (&method.name, method.reads);
    let docs = documentation(&method.docs);
    let arguments = method.arguments.iter().map(|argument| {
        let (name, ty) = (argument.ident.unraw().to_string(), in_types(&argument.ty));
        quote! {
            ::steadfast::contract::ArgumentContract {
                name: ::std::string::String::from(#name),
                ty: #ty,
            }
        }
    });
    let (result, error) = outcome(&method.output);
    quote! {
        ::steadfast::contract::MethodContract {
            name: ::std::string::String::from(#name),
            reads: #reads,
            docs: #docs,
            arguments: ::std::vec![#(#arguments),*],
            result: #result,
            error: #error,
        }
    }
}

/// The texts of the result and of the service's own error.
fn outcome(output: &Output) -> (TokenStream, TokenStream) {
    let Output { ok, error, may_be_result } = output;
    match error {
        Some(error) => {
            let error = in_types(error);
            (in_types(ok), quote! { ::core::option::Option::Some(#error) })
        }
        None if *may_be_result => {
            let (is_result, written) = (is_result(ok), written(ok));
            let part = |name: TokenStream| -> Type {
                parse_quote! { <#ok as ::steadfast::__private::Returned<#is_result>>::#name }
            };
            let (result, error) = (part(quote! { Ok }), part(quote! { Error }));
            let (result, error) = (named_by(&result, &written), named_by(&error, &written));
            let is_result = quote! { ::steadfast::__private::IsResult::<#ok>::YES };
            (result, quote! { #is_result.then(|| #error) })
        }
        None => (in_types(ok), quote! { ::core::option::Option::None }),
    }
}

/// The text of a type that nobody has written out.
fn named_by(ty: &Type, written: &str) -> TokenStream {
    quote! {
        ::steadfast::__private::text_of_part::<#ty>(
            (&::steadfast::__private::by_schema::Probe::<#ty>(::core::marker::PhantomData))
                .text(&mut types, ""),
            #written,
        )
    }
}

fn in_types(ty: &Type) -> TokenStream {
    text_of(ty, &quote! { &mut types })
}
