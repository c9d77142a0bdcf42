//! The code written for a type that contracts define: its fields and variants as serde names them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, LitStr, Meta, Token, Type, Variant};

use crate::model::{attributes, written};

mod names;

use names::Rule;

/// Writes the code, or the errors.
pub fn schema(item: TokenStream) -> TokenStream {
    syn::parse2::<DeriveInput>(item)
        .and_then(|item| expand(&item))
        .unwrap_or_else(Error::into_compile_error)
}

fn expand(item: &DeriveInput) -> Result<TokenStream, Error> {
    if !item.generics.params.is_empty() {
        let message = "a type with parameters has no one form, which a contract could define: \
                       derive Schema on a type without parameters";
        return Err(Error::new_spanned(&item.generics, message));
    }
    let serde = Serde::read(&item.attrs, Place::Type(&item.data))?;
    let ident = &item.ident;
    let name = serde.rename.unwrap_or_else(|| ident.unraw().to_string());
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        let message = "a type's name in a contract has letters, digits and underscores only: \
                       rename it otherwise";
        return Err(Error::new_spanned(ident, message));
    }
    let docs = documentation(&attributes(&item.attrs, "doc"));
    let definition = match &item.data {
        Data::Struct(data) => {
            empty(&data.fields, "struct")?;
            let fields = fields(&data.fields, serde.rename_all)?;
            quote! { Struct { docs: #docs, fields: #fields } }
        }
        Data::Enum(data) => {
            let of_fields = serde.rename_all_fields;
            let variants = data
                .variants
                .iter()
                .map(|it| variant(it, serde.rename_all, of_fields))
                .collect::<Result<Vec<_>, _>>()?;
            quote! { Enum { docs: #docs, variants: ::std::vec![#(#variants),*] } }
        }
        Data::Union(_) => {
            return Err(Error::new_spanned(ident, "serde cannot send a union: use an enum"));
        }
    };
    Ok(quote! {
        impl ::steadfast::Schema for #ident {
            #[allow(unused_imports, unused_variables)]
            fn schema(types: &mut ::steadfast::contract::Types) -> ::std::string::String {
                use ::steadfast::__private::by_schema::{Told as _, Written as _};
                types.define::<Self>(#name, |types| {
                    ::steadfast::contract::TypeContract::#definition
                })
            }
        }
    })
}

/// Code for the text of a type, given the code for `&mut Types`. The traits of `by_schema` are in
/// scope there.
pub fn text_of(ty: &Type, types: &TokenStream) -> TokenStream {
    let text = written(ty);
    quote! {
        (&::steadfast::__private::by_schema::Probe::<#ty>(::core::marker::PhantomData))
            .text(#types, #text)
    }
}

/// Code for the text of a documentation.
pub fn documentation(docs: &[Attribute]) -> TokenStream {
    let lines = docs.iter().filter_map(|doc| match &doc.meta {
        Meta::NameValue(value) => Some(&value.value),
        _ => None,
    });
    quote! { ::steadfast::__private::documented(&[#(#lines),*]) }
}

/// Serde writes braces and parentheses without fields in forms of their own.
fn empty(fields: &Fields, kind: &str) -> Result<(), Error> {
    match fields {
        Fields::Named(_) | Fields::Unnamed(_) if fields.is_empty() => {
            let message = format!(
                "a contract has no form for a {kind} without fields: leave the {fields} out",
                fields = if matches!(fields, Fields::Named(_)) { "braces" } else { "parentheses" }
            );
            Err(Error::new_spanned(fields, message))
        }
        _ => Ok(()),
    }
}

fn fields(all: &Fields, rule: Option<Rule>) -> Result<TokenStream, Error> {
    let mut code = Vec::new();
    for field in all {
        let serde = Serde::read(&field.attrs, Place::Field { named: field.ident.is_some() })?;
        if serde.skip {
            continue;
        }
        let ident = field.ident.as_ref().map(|ident| ident.unraw().to_string());
        let name = match ident {
            Some(ident) => serde.rename.unwrap_or_else(|| match rule {
                Some(rule) => rule.of_field(&ident),
                None => ident,
            }),
            None => String::new(),
        };
        let ty = text_of(&field.ty, &quote! { types });
        let docs = documentation(&attributes(&field.attrs, "doc"));
        code.push(quote! {
            ::steadfast::contract::FieldContract {
                name: ::std::string::String::from(#name),
                ty: #ty,
                docs: #docs,
            }
        });
    }
    if code.is_empty() && !all.is_empty() {
        let message = "a contract has no form for a type whose fields are all skipped: leave \
                       Schema out";
        return Err(Error::new_spanned(all, message));
    }
    Ok(quote! { ::std::vec![#(#code),*] })
}

fn variant(
    variant: &Variant,
    rule: Option<Rule>,
    of_fields: Option<Rule>,
) -> Result<TokenStream, Error> {
    empty(&variant.fields, "variant")?;
    let serde = Serde::read(&variant.attrs, Place::Variant)?;
    let ident = variant.ident.unraw().to_string();
    let name = serde.rename.unwrap_or_else(|| match rule {
        Some(rule) => rule.of_variant(&ident),
        None => ident,
    });
    let fields = fields(&variant.fields, serde.rename_all.or(of_fields))?;
    let docs = documentation(&attributes(&variant.attrs, "doc"));
    Ok(quote! {
        ::steadfast::contract::VariantContract {
            name: ::std::string::String::from(#name),
            fields: #fields,
            docs: #docs,
        }
    })
}

/// The place of a serde attribute.
enum Place<'a> {
    Type(&'a Data),
    Variant,
    Field { named: bool },
}

/// The serde attributes that a contract obeys.
#[derive(Default)]
struct Serde {
    rename: Option<String>,
    rename_all: Option<Rule>,
    rename_all_fields: Option<Rule>,
    skip: bool,
}

impl Serde {
    /// # Errors
    /// An attribute changes the form in a way that a contract does not tell.
    fn read(all: &[Attribute], place: Place<'_>) -> Result<Serde, Error> {
        let mut serde = Serde::default();
        for attribute in all.iter().filter(|it| it.path().is_ident("serde")) {
            attribute.parse_nested_meta(|meta| serde.take(&meta, &place))?;
        }
        Ok(serde)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>, place: &Place<'_>) -> Result<(), Error> {
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match (&*name, place) {
            ("rename", _) => self.rename = Some(text(meta)?.value()),
            ("rename_all", _) => self.rename_all = Some(rule(meta)?),
            ("rename_all_fields", _) => self.rename_all_fields = Some(rule(meta)?),
            ("skip", Place::Field { named: true }) => self.skip = true,
            // The form of the only field.
            ("transparent", Place::Type(Data::Struct(data)))
                if matches!(data.fields, Fields::Unnamed(_)) && data.fields.len() == 1 => {}
            // These change what is read besides, or nothing.
            ("default" | "alias" | "bound" | "crate" | "deny_unknown_fields" | "expecting", _) => {
                if meta.input.peek(Token![=]) {
                    meta.value()?.parse::<Expr>()?;
                } else if meta.input.peek(syn::token::Paren) {
                    let inner;
                    syn::parenthesized!(inner in meta.input);
                    inner.parse::<TokenStream>()?;
                }
            }
            _ => {
                return Err(meta.error(format!(
                    "serde's `{name}` gives the type a form that a contract does not tell: leave \
                     Schema out, and contracts have the type by its name alone"
                )));
            }
        }
        Ok(())
    }
}

fn text(meta: &ParseNestedMeta<'_>) -> Result<LitStr, Error> {
    if meta.input.peek(syn::token::Paren) {
        let message = "a contract has one name for both directions: write `= \"name\"`, or leave \
                       Schema out";
        return Err(meta.error(message));
    }
    meta.value()?.parse()
}

fn rule(meta: &ParseNestedMeta<'_>) -> Result<Rule, Error> {
    let text = text(meta)?;
    Rule::of(&text.value()).ok_or_else(|| {
        Error::new_spanned(&text, "serde has no such rule: \"camelCase\" is one, for example")
    })
}

#[cfg(test)]
mod tests;
