//! The code written for a service: the trait as it was, its adapter, its clients.
//!
//! The types that users see (four) stand beside the trait. The others (a type for each method's
//! arguments, the ids) stand in an anonymous constant, so that they take no names.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, ItemTrait};

use crate::given::Given;
use crate::model::{self, Method, Output};
use crate::options::Options;

mod contract;
mod outcome;

use outcome::{is_result, returned};

/// Writes the code, or the errors after the trait itself, so that nothing else fails for want of
/// the trait.
pub fn service(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut item: ItemTrait = match syn::parse2(item.clone()) {
        Ok(item) => item,
        Err(error) => {
            let message = "a service is a trait: put #[steadfast::service] on `trait Name { .. }`";
            let error = Error::new(error.span(), message).into_compile_error();
            return quote! { #item #error };
        }
    };
    let checked = syn::parse2(arguments).and_then(|options| {
        let given = given(&mut item, &options)?;
        let methods = model::methods(&item)?;
        if options.views {
            item.items.push(syn::parse2(told_of_views())?);
        }
        if options.merge {
            item.items.push(syn::parse2(merges_states())?);
        }
        Ok((methods, given, options))
    });
    match checked {
        Ok((methods, given, options)) => expand(&item, &methods, given, &options),
        Err(error) => {
            let error = error.into_compile_error();
            quote! { #item #error }
        }
    }
}

/// Puts the methods of the file that the options name into the trait.
#[cfg(feature = "proto")]
fn given(item: &mut ItemTrait, options: &Options) -> Result<Given, Error> {
    match &options.proto {
        Some(path) => crate::proto::fill(item, path, options),
        None => Ok(Given::default()),
    }
}

#[cfg(not(feature = "proto"))]
fn given(_: &mut ItemTrait, options: &Options) -> Result<Given, Error> {
    let message = "a service that begins with a file needs the feature `proto` of steadfast: add \
                   it in Cargo.toml";
    match &options.proto {
        Some(path) => Err(Error::new(path.span(), message)),
        None => Ok(Given::default()),
    }
}

/// The method of the trait that is told of views, and that no client calls.
fn told_of_views() -> TokenStream {
    quote! {
        /// The group has this view from here on, among the calls. A replica may miss views between
        /// which there is no call: the state may depend on the newest one, and not on how many
        /// there were.
        fn view(&mut self, view: &::steadfast::View);
    }
}

/// The method of the trait that merges states, and that no client calls.
fn merges_states() -> TokenStream {
    quote! {
        /// Merges the state of another history, which both sides of a partition went on to. Calls
        /// from before they parted are in both, and a call whose answer was lost may be: what both
        /// have counts once.
        fn merge(&mut self, other: Self)
        where
            Self: Sized;
    }
}

fn expand(item: &ItemTrait, methods: &[Method], given: Given, options: &Options) -> TokenStream {
    let types = types(item);
    let arguments = methods.iter().map(argument_type);
    let ids = methods.iter().map(id);
    let collisions = collisions(item, methods);
    let named = |suffix: &str| format_ident!("{}{suffix}", item.ident);
    let adapter = NODE.then(|| adapter(item, methods, options));
    let Given { types: given_types, sources, contract: proto } = given;
    let contract = NODE.then(|| contract::function(item, methods, proto));
    let sync_client = client(item, methods, &named("Client"), Kind::Sync);
    let async_client = ASYNC.then(|| client(item, methods, &named("AsyncClient"), Kind::Async));
    let nested = NODE.then(|| client(item, methods, &named("Nested"), Kind::Nested));
    // Without services nothing implements the trait: it only says what can be called.
    let unused = (!NODE).then(|| quote! { #[allow(dead_code)] });
    quote! {
        #unused
        #item
        #given_types
        #types
        #[allow(dead_code, deprecated, non_camel_case_types, non_upper_case_globals)]
        const _: () = {
            #[allow(unused_imports)]
            use ::steadfast::__private::NoResult as _;
            #(#arguments)*
            #(#ids)*
            #collisions
            #sources
            #contract
            #adapter
            #sync_client
            #async_client
            #nested
        };
    }
}

/// Async clients are written. The code is the caller's crate's, which has no such feature.
const ASYNC: bool = cfg!(feature = "async");
/// Services and handlers' clients are written.
const NODE: bool = cfg!(feature = "node");

/// The kind of caller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sync,
    Async,
    /// A handler, by its context.
    Nested,
}

/// The four types that users name.
fn types(item: &ItemTrait) -> TokenStream {
    let (name, vis) = (&item.ident, &item.vis);
    let service = format_ident!("{name}Service");
    let client = format_ident!("{name}Client");
    let async_client = format_ident!("{name}AsyncClient");
    let service_doc = format!(
        "Serves an implementation of [`{name}`] as a replica: give it to \
         [`Node::host`](::steadfast::Node::host)."
    );
    let client_doc = format!(
        "Calls a group of replicas of [`{name}`]. Cheap to clone, and may be used by many threads \
         at once."
    );
    let nested = format_ident!("{name}Nested");
    let nested_doc = format!(
        "Calls a group of replicas of [`{name}`] from a handler of another group, by the handler's \
         [`Context`](::steadfast::Context)."
    );
    let async_doc = format!("Calls a group of replicas of [`{name}`] from async code.");
    let service = NODE.then(|| {
        quote! {
            #[doc = #service_doc]
            #[allow(dead_code)]
            #[derive(Clone, Debug, Default)]
            #vis struct #service<T> {
                implementation: T,
            }
        }
    });
    let async_client = ASYNC.then(|| {
        quote! {
            #[doc = #async_doc]
            #[allow(dead_code)]
            #[derive(Clone, Debug)]
            #vis struct #async_client {
                stub: ::steadfast::__private::AsyncStub,
            }
        }
    });
    let nested = NODE.then(|| {
        quote! {
            #[doc = #nested_doc]
            #[allow(dead_code)]
            #[derive(Debug)]
            #vis struct #nested<'c> {
                stub: ::steadfast::__private::NestedStub<'c>,
            }
        }
    });
    quote! {
        #service

        #[doc = #client_doc]
        #[allow(dead_code)]
        #[derive(Clone, Debug)]
        #vis struct #client {
            stub: ::steadfast::__private::Stub,
        }

        #async_client
        #nested
    }
}

fn argument_type_name(method: &Method) -> Ident {
    format_ident!("__{}_arguments", method.name)
}

fn id_name(method: &Method) -> Ident {
    format_ident!("__{}_ID", method.name)
}

/// A struct, because serde reads it from postcard's plain sequence, from a JSON array and from a
/// JSON object alike.
fn argument_type(method: &Method) -> TokenStream {
    let name = argument_type_name(method);
    let expecting = format!("the arguments of {}", method.signature());
    let fields = method.arguments.iter().map(|argument| {
        let (ident, ty) = (&argument.ident, &argument.ty);
        quote! { #ident: #ty }
    });
    quote! {
        #[derive(
            ::steadfast::__private::serde::Serialize,
            ::steadfast::__private::serde::Deserialize,
        )]
        #[serde(
            crate = "::steadfast::__private::serde",
            deny_unknown_fields,
            expecting = #expecting
        )]
        struct #name { #(#fields),* }
    }
}

fn id(method: &Method) -> TokenStream {
    let (id, name) = (id_name(method), &method.name);
    quote! {
        const #id: ::steadfast::MethodId = ::steadfast::MethodId::of(#name);
    }
}

/// Two names with one hash would be one method: refused at compile time, at the second name.
fn collisions(item: &ItemTrait, methods: &[Method]) -> TokenStream {
    let mut all = TokenStream::new();
    for (i, method) in methods.iter().enumerate() {
        for earlier in &methods[..i] {
            let message = format!(
                "the methods `{}` and `{}` of {} hash to the same id: rename one of them",
                earlier.name, method.name, item.ident
            );
            let (one, other) = (id_name(earlier), id_name(method));
            all.extend(quote_spanned! { method.ident.span() =>
                const _: () = assert!(#one.0 != #other.0, #message);
            });
        }
        let message = format!(
            "the method `{}` of {} hashes to the id of a method of the system: rename it",
            method.name, item.ident
        );
        let id = id_name(method);
        all.extend(quote_spanned! { method.ident.span() =>
            const _: () = assert!(#id.0 != ::steadfast::DESCRIBE.0, #message);
            const _: () = assert!(#id.0 != ::steadfast::MethodId::of("steadfast.merge").0, #message);
        });
    }
    all
}

fn adapter(item: &ItemTrait, methods: &[Method], options: &Options) -> TokenStream {
    let (name, vis) = (&item.ident, &item.vis);
    let service = format_ident!("{name}Service");
    let arms = methods.iter().map(|method| arm(name, method, false));
    let reads = methods.iter().map(|method| arm(name, method, true));
    let known: Vec<String> = methods.iter().map(Method::signature).collect();
    let known = format!("{name} has {}", known.join(", "));
    let state = state();
    let merge = options.merge.then(|| {
        quote! {
            fn merges(&self) -> bool {
                true
            }

            fn merge(
                &mut self,
                other: ::std::boxed::Box<dyn ::steadfast::Service>,
            ) -> ::core::result::Result<(), ::steadfast::BoxError> {
                let other = ::steadfast::__private::same_service::<Self>(other)?;
                #name::merge(&mut self.implementation, other.implementation);
                ::core::result::Result::Ok(())
            }
        }
    });
    let view = options.views.then(|| {
        quote! {
            fn view(&mut self, view: &::steadfast::View) {
                #name::view(&mut self.implementation, view);
            }
        }
    });
    quote! {
        impl<T> #service<T> {
            /// Serves this implementation.
            #vis fn new(implementation: T) -> Self {
                Self { implementation }
            }

            /// The methods and types of this service, as callers are told them.
            #vis fn contract() -> ::steadfast::Contract {
                __contract()
            }
        }

        impl<T> ::steadfast::Service for #service<T>
        where
            T: #name + ::steadfast::State + ::core::marker::Send + 'static,
        {
            fn call(
                &mut self,
                context: &::steadfast::Context,
                call: ::steadfast::Call<'_>,
            ) -> ::steadfast::ServiceOutcome {
                let _ = context;
                match call.method {
                    #(#arms)*
                    ::steadfast::DESCRIBE => ::steadfast::contract::tell(&call, __contract),
                    _ => ::steadfast::__private::no_such_method(#known),
                }
            }

            fn read(
                &self,
                context: &::steadfast::Context,
                call: ::steadfast::Call<'_>,
            ) -> ::steadfast::ServiceOutcome {
                let _ = context;
                match call.method {
                    #(#reads)*
                    ::steadfast::DESCRIBE => ::steadfast::contract::tell(&call, __contract),
                    _ => ::steadfast::__private::no_such_method(#known),
                }
            }

            #state

            #view

            #merge
        }
    }
}

/// The functions by which a node takes and gives the state.
fn state() -> TokenStream {
    quote! {
        fn snapshot(
            &self,
        ) -> ::core::result::Result<::std::vec::Vec<u8>, ::steadfast::BoxError> {
            ::steadfast::State::snapshot(&self.implementation)
        }

        fn snapshot_within(
            &self,
            bytes: usize,
        ) -> ::core::result::Result<
            ::core::option::Option<::std::vec::Vec<u8>>,
            ::steadfast::BoxError,
        > {
            ::steadfast::State::snapshot_within(&self.implementation, bytes)
        }

        fn restore(
            &mut self,
            state: &[u8],
        ) -> ::core::result::Result<(), ::steadfast::BoxError> {
            ::steadfast::State::restore(&mut self.implementation, state)
        }

        fn restore_telling(
            &mut self,
            state: &[u8],
            dropped: &mut ::std::vec::Vec<::std::string::String>,
        ) -> ::core::result::Result<(), ::steadfast::BoxError> {
            ::steadfast::State::restore_telling(&mut self.implementation, state, dropped)
        }

        fn is_same_state(&self, one: &[u8], other: &[u8]) -> bool {
            ::steadfast::State::is_same(&self.implementation, one, other)
        }

        fn digest(&self, state: &[u8]) -> u64 {
            ::steadfast::State::digest(&self.implementation, state)
        }

        fn delta(
            &mut self,
        ) -> ::core::result::Result<
            ::core::option::Option<::std::vec::Vec<u8>>,
            ::steadfast::BoxError,
        > {
            ::steadfast::State::delta(&mut self.implementation)
        }

        fn apply(
            &mut self,
            delta: &[u8],
        ) -> ::core::result::Result<(), ::steadfast::BoxError> {
            ::steadfast::State::apply(&mut self.implementation, delta)
        }
    }
}

/// The match arm for a call of the method, or for a read.
fn arm(service: &Ident, method: &Method, reads: bool) -> TokenStream {
    let (id, arguments, ident) = (id_name(method), argument_type_name(method), &method.ident);
    let signature = method.signature();
    if reads && !method.reads {
        return quote! { #id => ::steadfast::__private::not_read_only(#signature), };
    }
    let implementation = match reads {
        true => quote! { &self.implementation },
        false => quote! { &mut self.implementation },
    };
    let context = method.context.then(|| quote! { context, });
    let fields = method.arguments.iter().map(|argument| &argument.ident);
    let answer = match method.output.error {
        None if method.output.may_be_result => {
            let (name, ty) = (at_result(method, "answer_returned"), &method.output.ok);
            let is_result = is_result(ty);
            quote! { #name::<#arguments, #ty, #is_result> }
        }
        None => at_result(method, "answer").to_token_stream(),
        Some(_) => at_result(method, "answer_fallible").to_token_stream(),
    };
    quote! {
        #id => ::steadfast::__private::#answer(&call, #signature, |arguments: #arguments| {
            let _ = &arguments;
            <T as #service>::#ident(#implementation, #context #(arguments.#fields),*)
        }),
    }
}

/// A name of ours that stands where the result's type does: there the compiler says that serde
/// cannot send it.
fn at_result(method: &Method, name: &str) -> Ident {
    Ident::new(name, method.output.ok.span())
}

fn client(item: &ItemTrait, methods: &[Method], client: &Ident, kind: Kind) -> TokenStream {
    let vis = &item.vis;
    let methods = methods.iter().map(|method| client_method(item, method, kind));
    if kind == Kind::Nested {
        return quote! {
            impl<'c> #client<'c> {
                /// Calls the group of this name. A call has as much time as the handler itself: see
                /// [`within`](Self::within).
                #vis fn new(
                    context: &'c ::steadfast::Context,
                    group: impl ::core::convert::Into<::std::string::String>,
                ) -> Self {
                    Self { stub: ::steadfast::__private::NestedStub::new(context, group.into()) }
                }

                /// The same with less time for each call.
                #[must_use = "this keeps its time: call through what this returns"]
                #vis fn within(&self, timeout: ::core::time::Duration) -> Self {
                    Self { stub: self.stub.within(timeout) }
                }

                /// The same in JSON: for replicas in other languages.
                #[must_use = "this keeps its encoding: call through what this returns"]
                #vis fn in_json(&self) -> Self {
                    Self { stub: self.stub.in_json() }
                }

                #(#methods)*
            }
        };
    }
    let (connection, stub) = if kind == Kind::Async {
        (quote! { ::steadfast::AsyncClient }, quote! { ::steadfast::__private::AsyncStub })
    } else {
        (quote! { ::steadfast::Client }, quote! { ::steadfast::__private::Stub })
    };
    quote! {
        impl #client {
            /// A client of the group of this name. Each call has a deadline of
            /// [`DEFAULT_DEADLINE`](::steadfast::DEFAULT_DEADLINE): see [`within`](Self::within).
            #vis fn new(
                client: &#connection,
                group: impl ::core::convert::Into<::std::string::String>,
            ) -> Self {
                Self { stub: #stub::new(client, group.into()) }
            }

            /// The same client with another deadline for each call.
            #[must_use = "the client itself keeps its deadline: call through what this returns"]
            #vis fn within(&self, deadline: ::core::time::Duration) -> Self {
                Self { stub: self.stub.within(deadline) }
            }

            /// The same client with another way to answer methods that take `&self`, such as
            /// [`Reading::Stale`](::steadfast::Reading::Stale).
            #[must_use = "the client itself reads as before: call through what this returns"]
            #vis fn reading(&self, reading: ::steadfast::Reading) -> Self {
                Self { stub: self.stub.reading(reading) }
            }

            /// The same client with arguments by name and results in JSON: for replicas in other
            /// languages, which need not read postcard.
            #[must_use = "the client itself keeps its encoding: call through what this returns"]
            #vis fn in_json(&self) -> Self {
                Self { stub: self.stub.in_json() }
            }

            #(#methods)*
        }
    }
}

fn client_method(item: &ItemTrait, method: &Method, kind: Kind) -> TokenStream {
    let vis = &item.vis;
    let (ident, docs, deprecated) = (&method.ident, &method.docs, &method.deprecated);
    let (id, arguments) = (id_name(method), argument_type_name(method));
    let fields: Vec<_> = method.arguments.iter().map(|argument| &argument.ident).collect();
    let types = method.arguments.iter().map(|argument| &argument.ty);
    let (ok, error) = returned(method);
    // A nested call has a place in the order, even if it changes nothing.
    let reads = method.reads && kind != Kind::Nested;
    let verb = if reads { "read" } else { "call" };
    let call = match &method.output {
        Output { error: Some(_), .. } => {
            at_result(method, &format!("{verb}_fallible")).to_token_stream()
        }
        Output { ok, may_be_result: true, .. } => {
            let (name, is_result) = (at_result(method, &format!("{verb}_returned")), is_result(ok));
            quote! { #name::<#arguments, #ok, #is_result> }
        }
        _ => at_result(method, verb).to_token_stream(),
    };
    let (keyword, wait) = if kind == Kind::Async {
        (quote! { async }, quote! { .await })
    } else {
        Default::default()
    };
    let lead = docs.is_empty().then(|| {
        let text = format!("Calls [`{}::{}`].", item.ident, ident.unraw());
        quote! { #[doc = #text] }
    });
    let errors = (!method.documents("# Errors")).then(|| {
        quote! {
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = "[`CallError`](::steadfast::CallError) says what became of the call, and what to do."]
        }
    });
    quote! {
        #(#docs)*
        #lead
        #errors
        #deprecated
        #[allow(clippy::too_many_arguments)]
        #vis #keyword fn #ident(
            &self,
            #(#fields: #types),*
        ) -> ::core::result::Result<#ok, ::steadfast::CallError<#error>> {
            self.stub.#call(#id, &#arguments { #(#fields),* })#wait
        }
    }
}

#[cfg(test)]
mod tests;
