use quote::quote;
use syn::{File, Item};

use super::{TokenStream, service};

fn expanded(item: TokenStream) -> File {
    syn::parse2(service(TokenStream::new(), item)).expect("the generated code parses")
}

fn errors(arguments: TokenStream, item: TokenStream) -> String {
    let code = service(arguments, item).to_string();
    assert!(code.contains("compile_error"), "not refused: {code}");
    code
}

#[test]
fn four_types_stand_beside_the_unchanged_trait() {
    let item = quote! { pub(crate) trait Counter { fn add(&mut self, n: u64) -> u64; } };
    let file = expanded(item.clone());
    let names: Vec<String> = file
        .items
        .iter()
        .map(|item| match item {
            Item::Trait(item) => item.ident.to_string(),
            Item::Struct(item) => item.ident.to_string(),
            Item::Const(item) => item.ident.to_string(),
            _ => panic!("an item that nobody expects"),
        })
        .collect();
    let types =
        ["Counter", "CounterService", "CounterClient", "CounterAsyncClient", "CounterNested"];
    assert_eq!(names[..5], types);
    assert_eq!(names[5..], ["_"]);
    let kept = &file.items[0];
    assert_eq!(quote! { #kept }.to_string(), item.to_string());
}

#[test]
fn clients_carry_the_documentation_and_the_fallible_result() {
    let file = expanded(quote! {
        trait Account {
            /// Takes money out.
            ///
            /// # Errors
            /// When there is not enough.
            #[deprecated = "cash is gone"]
            fn withdraw(&mut self, context: &Context, cents: u64) -> Result<u64, Overdrawn>;
            fn balance(&self) -> u64;
        }
    });
    let code = quote! { #file }.to_string();
    let count = |text: &str| code.matches(text).count();
    assert_eq!(
        count("Takes money out."),
        5,
        "the trait, both clients, who calls from a handler, and the contract"
    );
    assert_eq!(count("# Errors"), 8, "five times the author's, three times ours for `balance`");
    assert_eq!(count("cash is gone"), 4);
    assert_eq!(count(":: steadfast :: CallError < Overdrawn >"), 3);
    assert_eq!(count(":: steadfast :: CallError < :: core :: convert :: Infallible >"), 3);
    assert_eq!(count("fn withdraw (& self , cents : u64 ,)"), 0, "no stray comma");
    assert_eq!(count("fn withdraw (& self , cents : u64)"), 3, "the context is not sent");
}

#[test]
fn the_contract_has_what_callers_see() {
    let file = expanded(quote! {
        /// Money.
        trait r#Type {
            fn set(&mut self, context: &Context, r#in: Vec<u8>);
            fn get(&self) -> Result<u64, Gone>;
        }
    });
    let code = quote! { #file }.to_string();
    let has = |text: &str| assert!(code.contains(text), "{text} is not in the code");
    has("service : :: std :: string :: String :: from (\"Type\")");
    has("documented (& [r\" Money.\"])");
    has("name : :: std :: string :: String :: from (\"in\")");
    has(
        "Probe :: < Vec < u8 > > (:: core :: marker :: PhantomData)) . text (& mut types , \"Vec<u8>\")",
    );
    has("reads : false");
    has("reads : true");
    has("error : :: core :: option :: Option :: Some (");
    assert_eq!(code.matches(":: steadfast :: DESCRIBE =>").count(), 2, "as a call and as a read");
    assert!(!code.contains("String :: from (\"context\")"), "it is not sent");
}

#[test]
fn every_pair_of_methods_is_checked_for_one_hash() {
    let file = expanded(quote! { trait T { fn a(&self); fn b(&self); fn c(&self); } });
    let code = quote! { #file }.to_string();
    assert_eq!(code.matches("hash to the same id: rename one of them").count(), 3);
    let own = "hashes to the id of a method of the system: rename it";
    assert_eq!(code.matches(own).count(), 2 * 3, "the contract's and a merge's");
}

#[test]
fn what_is_no_trait_is_left_as_it_was_and_refused() {
    let code = errors(TokenStream::new(), quote! { struct Counter; });
    assert!(code.starts_with("struct Counter ;"), "{code}");
    assert!(code.contains("a service is a trait"), "{code}");
}

#[test]
fn arguments_of_the_attribute_are_refused() {
    let code = errors(quote! { name = "counter" }, quote! { trait T { fn a(&self); } });
    assert!(code.contains("takes no arguments"), "{code}");
}
