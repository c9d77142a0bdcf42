use quote::quote;

use super::{TokenStream, schema};

fn code(item: TokenStream) -> String {
    let code = schema(item).to_string();
    assert!(!code.contains("compile_error"), "refused: {code}");
    code
}

fn refused(item: TokenStream, remedy: &str) {
    let code = schema(item).to_string();
    assert!(code.contains("compile_error") && code.contains(remedy), "{code}");
}

#[test]
fn a_skipped_field_is_not_told() {
    let code = code(quote! {
        struct Order { id: u64, #[serde(skip)] cache: Vec<u8>, #[serde(default)] note: String }
    });
    assert!(code.contains("\"id\"") && code.contains("\"note\"") && !code.contains("cache"));
}

#[test]
fn attributes_that_change_only_how_it_is_read_are_let_through() {
    code(quote! {
        #[derive(Serialize)]
        #[serde(crate = "other::serde", deny_unknown_fields, bound(serialize = "u8: Copy"))]
        struct Order { #[serde(alias = "number", default = "zero")] id: u64 }
    });
    code(quote! { #[serde(transparent)] struct Cents(u64); });
}

#[test]
fn forms_that_a_contract_does_not_tell_are_refused() {
    let leave = "leave Schema out";
    for item in [
        quote! { #[serde(tag = "kind")] enum Event { A } },
        quote! { #[serde(untagged)] enum Event { A } },
        quote! { #[serde(from = "u8")] struct Level(u8); },
        quote! { #[serde(transparent)] struct Level { value: u8 } },
        quote! { struct Order { #[serde(flatten)] rest: Rest } },
        quote! { struct Order { #[serde(with = "hex")] key: Vec<u8> } },
        quote! { struct Order { #[serde(skip_serializing_if = "Option::is_none")] a: Option<u8> } },
        quote! { struct Order { #[serde(skip_serializing)] a: u8 } },
        quote! { struct Pair(u8, #[serde(skip)] u8); },
        quote! { enum Event { A, #[serde(skip)] B } },
        quote! { enum Event { A, #[serde(other)] B } },
        quote! { struct Order { #[serde(rename(serialize = "a"))] b: u8 } },
        quote! { struct Order { #[serde(skip)] b: u8 } },
    ] {
        refused(item, leave);
    }
}

#[test]
fn types_without_one_form_are_refused_with_what_to_do() {
    refused(quote! { struct Page<T>(Vec<T>); }, "without parameters");
    refused(quote! { union Raw { a: u8 } }, "use an enum");
    refused(quote! { struct Nothing {} }, "leave the braces out");
    refused(quote! { enum Event { A() } }, "leave the parentheses out");
    refused(quote! { #[serde(rename = "two words")] struct A(u8); }, "letters, digits");
    refused(quote! { #[serde(rename_all = "Camel")] struct A { b: u8 } }, "no such rule");
}
