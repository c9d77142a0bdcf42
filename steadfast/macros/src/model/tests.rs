use expect_test::{Expect, expect};

use super::{Method, methods};

fn read(source: &str) -> Vec<Method> {
    methods(&syn::parse_str(source).expect("the test's trait parses")).expect("it is a service")
}

/// Each fault as `place: message`.
fn refused(source: &str, expected: Expect) {
    let item = syn::parse_str(source).expect("the test's trait parses");
    let error = methods(&item).err().expect("this trait is no service");
    let faults: Vec<String> = error
        .into_iter()
        .map(|fault| {
            let place = fault.span().source_text().expect("spans are kept in tests");
            format!("{place}: {fault}")
        })
        .collect();
    expected.assert_eq(&faults.join("\n"));
}

#[test]
fn methods_are_read_with_all_that_the_clients_need() {
    let methods = read(
        "trait Store {
            /// Puts it there.
            fn put(&mut self, context: &steadfast::Context, key: String, value: Vec<(u8, u64)>);
            fn r#match(&self, r#type: u8) -> std::result::Result<Option<u64>, Missing> {
                default(r#type)
            }
        }",
    );
    let signatures: Vec<String> = methods.iter().map(Method::signature).collect();
    assert_eq!(
        signatures,
        [
            "put(key: String, value: Vec<(u8, u64)>)",
            "match(type: u8) -> Result<Option<u64>, Missing>"
        ]
    );
    assert!(methods[0].context && !methods[1].context);
    assert_eq!(methods[0].docs.len(), 1);
    assert!(methods[0].output.error.is_none());
    assert!(methods[1].output.error.is_some());
}

#[test]
fn the_trait_itself_must_be_plain() {
    refused(
        "trait Store<K> where K: Ord { type Key; const SIZE: usize; fn get(&self) -> u64; }",
        expect![[r#"
            K: a service's trait has no generic parameters: its messages must have one form; write the types out, or one trait for each
            where K: Ord: a service's trait has no where clause: write a supertrait instead
            type Key;: a service has no associated types: clients do not know who implements the trait; name the type in the methods
            const SIZE: usize;: a service has no associated constants: put the constant beside the trait"#]],
    );
    refused(
        "trait Empty {}",
        expect!["Empty: a service needs at least one method: `fn get(&self) -> u64;`"],
    );
}

#[test]
fn methods_must_be_plain_functions_on_a_replica() {
    refused(
        "trait Store {
            async fn get(&self) -> u64;
            fn any<T: Ord>(&self) -> u64;
            fn make(n: u64) -> u64;
            fn nothing();
            fn consume(self);
            fn boxed(self: Box<Self>);
            unsafe fn wild(&self);
            fn within(&self);
            #[cfg(unix)] fn sometimes(&self);
        }",
        expect![[r#"
            async: a service's method is not async: replicas execute one request after the other, in the same order; the generated async client is async all the same
            T: Ord: a service's method has no generic parameters: its messages must have one form; write the types out
            n: u64: a service's method is called on a replica: its first parameter is `&mut self`, or `&self` when it changes nothing
            nothing: a service's method is called on a replica: its first parameter is `&mut self`, or `&self` when it changes nothing
            self: a service's method is called on a replica: its first parameter is `&mut self`, or `&self` when it changes nothing
            self: Box<Self>: a service's method is called on a replica: its first parameter is `&mut self`, or `&self` when it changes nothing
            unsafe: a service's method cannot be unsafe: its callers are on other machines
            within: `within` is a function of the generated clients: give the method another name
            #[cfg(unix)]: a service's method cannot be conditional: clients and all replicas must agree on the methods; put the cfg on the whole trait"#]],
    );
}

#[test]
fn arguments_and_results_must_be_named_and_owned() {
    refused(
        "trait Store {
            fn name(&mut self, name: &str, rest: &[u8]);
            fn nested(&mut self, names: Vec<&'static str>);
            fn pattern(&mut self, (a, b): (u64, u64), _: u8);
            fn late(&mut self, n: u64, context: &Context);
            fn mutable(&mut self, context: &mut Context);
            fn any(&mut self, what: impl Into<String>, other: Box<dyn Any>);
            fn borrow(&self) -> Option<&u64>;
            fn lifetime(&self) -> Cow<'static, str>;
            fn own(&self) -> Self;
            fn alias(&self) -> io::Result<u64>;
        }",
        expect![[r#"
            &str: an argument crosses the network, so its type must be owned: write `String`
            &[u8]: an argument crosses the network, so its type must be owned: write `Vec<u8>`
            &'static str: an argument crosses the network, so its type must be owned: write `String`
            (a, b): an argument needs a name, not a pattern: JSON calls give arguments by name
            _: an argument needs a name, not a pattern: JSON calls give arguments by name
            context: &Context: the context is `&Context`, and the first argument after `self`
            context: &mut Context: the context is `&Context`, and the first argument after `self`
            impl Into<String>: an argument crosses the network: its type must be one that serde can send
            dyn Any: an argument crosses the network: its type must be one that serde can send
            &u64: a result crosses the network, so its type must be owned: write `u64`
            'static: a result crosses the network, so its type must be owned: it cannot borrow
            Self: clients do not know who implements the trait: name the type instead of `Self`
            io::Result<u64>: write the error out, as in `Result<T, E>`: it is sent to the client, which gets it as `CallError::Service(E)`"#]],
    );
}
