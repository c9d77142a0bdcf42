//! The code written for a state of a rank: its fields, by their names.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Fields};

/// Writes the code, or the error.
pub fn state(item: TokenStream) -> TokenStream {
    syn::parse2::<DeriveInput>(item)
        .and_then(|item| expand(&item))
        .unwrap_or_else(Error::into_compile_error)
}

fn expand(item: &DeriveInput) -> Result<TokenStream, Error> {
    let named = match &item.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Some(&fields.named),
            _ => None,
        },
        _ => None,
    };
    let named = named.ok_or_else(|| {
        let message = "a rank's state is a struct with named fields: numbers, and vectors and \
                       arrays of numbers";
        Error::new_spanned(&item.ident, message)
    })?;
    let fields: Vec<_> = named.iter().filter_map(|field| field.ident.as_ref()).collect();
    let names: Vec<String> = fields.iter().map(|field| field.unraw().to_string()).collect();
    let name = &item.ident;
    let (generics, arguments, bounds) = item.generics.split_for_impl();
    Ok(quote! {
        impl #generics ::steadfast::job::State for #name #arguments #bounds {
            fn fields(
                &self,
            ) -> ::std::vec::Vec<(&'static str, &dyn ::steadfast::job::Field)> {
                ::std::vec![#((#names, &self.#fields as &dyn ::steadfast::job::Field)),*]
            }

            fn fields_mut(
                &mut self,
            ) -> ::std::vec::Vec<(&'static str, &mut dyn ::steadfast::job::Field)> {
                ::std::vec![#((#names, &mut self.#fields as &mut dyn ::steadfast::job::Field)),*]
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_its_name() {
        let code = state(quote! { struct Gauss { matrix: Vec<f64>, r#type: u32 } }).to_string();
        assert!(code.contains("\"matrix\" , & self . matrix as"), "{code}");
        assert!(code.contains("\"type\" , & mut self . r#type as"), "{code}");
    }

    #[test]
    fn what_has_no_named_fields_is_refused_with_what_to_do() {
        for item in [quote! { struct Point(f64, f64); }, quote! { enum Either { A, B } }] {
            let code = state(item).to_string();
            assert!(code.contains("compile_error") && code.contains("named fields"), "{code}");
        }
    }
}
