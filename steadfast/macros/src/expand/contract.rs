//! The function that makes a service's contract.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{ItemTrait, Type};

use crate::model::{Method, attributes};
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
                encodings: ::std::vec!["postcard".into(), "json".into()],
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
    let result = in_types(&method.output.ok);
    let error = match &method.output.error {
        Some(error) => {
            let error = in_types(error);
            quote! { ::core::option::Option::Some(#error) }
        }
        None => quote! { ::core::option::Option::None },
    };
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

fn in_types(ty: &Type) -> TokenStream {
    text_of(ty, &quote! { &mut types })
}
