//! The model of a service's trait, or why it cannot be a service.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::visit::Visit;
use syn::{
    Attribute, Error, Expr, FnArg, GenericArgument, Ident, ItemTrait, Lit, Meta, Pat,
    PathArguments, ReturnType, Signature, TraitItem, TraitItemFn, Type, parse_quote,
};

/// Names that the generated clients use for themselves.
const CLIENTS_OWN: [&str; 4] = ["new", "within", "reading", "in_json"];

/// A method of the service.
pub struct Method {
    /// As it is written.
    pub ident: Ident,
    /// The name that is hashed into its id: the identifier without `r#`.
    pub name: String,
    /// Its documentation, carried to the clients.
    pub docs: Vec<Attribute>,
    /// `#[deprecated]`, carried to the clients.
    pub deprecated: Option<Attribute>,
    /// It takes `&self`: it changes nothing, and is answered without ordering.
    pub reads: bool,
    /// The first argument is the call's context: not sent.
    pub context: bool,
    /// The arguments that are sent.
    pub arguments: Vec<Argument>,
    /// The type that comes back.
    pub output: Output,
}

/// An argument that is sent.
pub struct Argument {
    pub ident: Ident,
    pub ty: Type,
}

/// The type that a method returns: `ok` itself, or `Result<ok, error>`.
pub struct Output {
    pub ok: Type,
    pub error: Option<Type>,
    /// `ok` is a name that may stand for a `Result`: the compiler finds out.
    pub may_be_result: bool,
}

/// Types that no `Result` hides behind.
const PLAIN: &str = "bool char u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 String \
                     Vec VecDeque Option Box Arc BTreeMap BTreeSet HashMap HashSet Duration Bytes";

fn may_be_result(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let last = path.path.segments.last().map(|last| last.ident.to_string());
    last.is_some_and(|last| !PLAIN.split(' ').any(|plain| plain == last))
}

impl Method {
    /// The signature in a refusal, for people, such as `add(n: u64) -> u64`.
    pub fn signature(&self) -> String {
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .map(|argument| format!("{}: {}", argument.ident.unraw(), written(&argument.ty)))
            .collect();
        let ok = written(&self.output.ok);
        let output = match &self.output.error {
            None if ok == "()" => String::new(),
            None => format!(" -> {ok}"),
            Some(error) => format!(" -> Result<{ok}, {}>", written(error)),
        };
        format!("{}({}){output}", self.name, arguments.join(", "))
    }

    /// The documentation has this heading already.
    pub fn documents(&self, heading: &str) -> bool {
        self.docs.iter().any(|doc| {
            let Meta::NameValue(value) = &doc.meta else { return false };
            let Expr::Lit(literal) = &value.value else { return false };
            matches!(&literal.lit, Lit::Str(text) if text.value().trim() == heading)
        })
    }
}

/// A type as a person writes it: tokens print with a space between any two.
pub fn written(ty: &Type) -> String {
    let tokens = ty.to_token_stream().to_string();
    tokens.replace(' ', "").replace(',', ", ").replace(';', "; ")
}

/// Collects everything that is wrong, so that one compilation shows it all.
#[derive(Default)]
struct Faults(Option<Error>);

impl Faults {
    fn add(&mut self, at: impl ToTokens, message: impl std::fmt::Display) {
        let fault = Error::new_spanned(at, message);
        match &mut self.0 {
            Some(all) => all.combine(fault),
            None => self.0 = Some(fault),
        }
    }
}

/// Reads the methods of a service's trait.
///
/// # Errors
/// All that keeps the trait from being a service, each at its place and with the remedy.
pub fn methods(item: &ItemTrait) -> Result<Vec<Method>, Error> {
    let mut faults = Faults::default();
    check_trait(item, &mut faults);
    let mut methods = Vec::new();
    for member in &item.items {
        match member {
            TraitItem::Fn(function) => methods.extend(method(function, &mut faults)),
            TraitItem::Type(ty) => faults.add(
                ty,
                "a service has no associated types: clients do not know who implements the trait; \
                 name the type in the methods",
            ),
            TraitItem::Const(constant) => faults.add(
                constant,
                "a service has no associated constants: put the constant beside the trait",
            ),
            other => faults.add(other, "a service's trait consists of methods only"),
        }
    }
    match faults.0 {
        Some(error) => Err(error),
        None => Ok(methods),
    }
}

fn check_trait(item: &ItemTrait, faults: &mut Faults) {
    if !item.generics.params.is_empty() {
        faults.add(
            &item.generics.params,
            "a service's trait has no generic parameters: its messages must have one form; \
             write the types out, or one trait for each",
        );
    }
    if let Some(clause) = &item.generics.where_clause {
        faults.add(clause, "a service's trait has no where clause: write a supertrait instead");
    }
    if let Some(token) = &item.unsafety {
        faults.add(token, "a service's trait cannot be unsafe: its callers are on other machines");
    }
    if item.items.is_empty() {
        faults.add(&item.ident, "a service needs at least one method: `fn get(&self) -> u64;`");
    }
}

fn method(function: &TraitItemFn, faults: &mut Faults) -> Option<Method> {
    let signature = &function.sig;
    check_signature(signature, faults);
    let name = signature.ident.unraw().to_string();
    if CLIENTS_OWN.contains(&name.as_str()) {
        faults.add(
            &signature.ident,
            format!(
                "`{name}` is a function of the generated clients: give the method another name"
            ),
        );
    }
    for attribute in &function.attrs {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            faults.add(
                attribute,
                "a service's method cannot be conditional: clients and all replicas must agree \
                 on the methods; put the cfg on the whole trait",
            );
        }
    }
    let mut inputs = signature.inputs.iter().peekable();
    check_receiver(signature, inputs.next(), faults);
    let context = inputs.next_if(|input| is_context(input)).is_some();
    let arguments = inputs.filter_map(|input| argument(input, faults)).collect();
    Some(Method {
        ident: signature.ident.clone(),
        name,
        docs: attributes(&function.attrs, "doc"),
        deprecated: attributes(&function.attrs, "deprecated").pop(),
        reads: matches!(signature.receiver(), Some(receiver) if receiver.mutability.is_none()),
        context,
        arguments,
        output: output(&signature.output, faults)?,
    })
}

/// The attributes of this name.
pub fn attributes(all: &[Attribute], name: &str) -> Vec<Attribute> {
    all.iter().filter(|attribute| attribute.path().is_ident(name)).cloned().collect()
}

fn check_signature(signature: &Signature, faults: &mut Faults) {
    if let Some(token) = &signature.asyncness {
        faults.add(
            token,
            "a service's method is not async: replicas execute one request after the other, in \
             the same order; the generated async client is async all the same",
        );
    }
    if let Some(token) = &signature.constness {
        faults.add(token, "a service's method cannot be const");
    }
    if let Some(token) = &signature.unsafety {
        faults.add(token, "a service's method cannot be unsafe: its callers are on other machines");
    }
    if let Some(abi) = &signature.abi {
        faults.add(abi, "a service's method has no ABI: its callers are on other machines");
    }
    if !signature.generics.params.is_empty() {
        faults.add(
            &signature.generics.params,
            "a service's method has no generic parameters: its messages must have one form; write \
             the types out",
        );
    }
    if let Some(clause) = &signature.generics.where_clause {
        faults.add(clause, "a service's method has no where clause");
    }
    if let Some(dots) = &signature.variadic {
        faults.add(dots, "a service's method takes a fixed number of arguments");
    }
}

fn check_receiver(signature: &Signature, first: Option<&FnArg>, faults: &mut Faults) {
    const REMEDY: &str = "a service's method is called on a replica: its first parameter is \
                          `&mut self`, or `&self` when it changes nothing";
    match first {
        Some(FnArg::Receiver(receiver))
            if receiver.colon_token.is_none() && receiver.reference.is_some() => {}
        Some(first) => faults.add(first, REMEDY),
        None => faults.add(&signature.ident, REMEDY),
    }
}

/// `&Context`, by whatever path.
fn is_context(input: &FnArg) -> bool {
    matches!(input, FnArg::Typed(input) if refers_to_context(&input.ty, false))
}

fn refers_to_context(ty: &Type, or_mutably: bool) -> bool {
    let Type::Reference(reference) = ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    (or_mutably || reference.mutability.is_none())
        && path.path.segments.last().is_some_and(|last| last.ident == "Context")
}

fn argument(input: &FnArg, faults: &mut Faults) -> Option<Argument> {
    let FnArg::Typed(input) = input else { return None };
    if refers_to_context(&input.ty, true) {
        faults.add(input, "the context is `&Context`, and the first argument after `self`");
        return None;
    }
    check_type(&input.ty, "an argument", faults);
    match &*input.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Some(Argument { ident: name.ident.clone(), ty: (*input.ty).clone() })
        }
        pattern => {
            faults.add(
                pattern,
                "an argument needs a name, not a pattern: JSON calls give arguments by name",
            );
            None
        }
    }
}

fn output(output: &ReturnType, faults: &mut Faults) -> Option<Output> {
    let ReturnType::Type(_, ty) = output else {
        return Some(Output { ok: parse_quote!(()), error: None, may_be_result: false });
    };
    check_type(ty, "a result", faults);
    let result = match &**ty {
        Type::Path(path) => path.path.segments.last().filter(|last| last.ident == "Result"),
        _ => None,
    };
    let Some(result) = result else {
        let may_be_result = may_be_result(ty);
        return Some(Output { ok: (**ty).clone(), error: None, may_be_result });
    };
    let types: Vec<&Type> = match &result.arguments {
        PathArguments::AngleBracketed(arguments) => arguments
            .args
            .iter()
            .filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    match types[..] {
        [ok, error] => {
            let (ok, error) = (ok.clone(), Some(error.clone()));
            Some(Output { ok, error, may_be_result: false })
        }
        _ => {
            faults.add(
                ty,
                "write the error out, as in `Result<T, E>`: it is sent to the client, which gets \
                 it as `CallError::Service(E)`",
            );
            None
        }
    }
}

/// Finds what cannot cross a process boundary in a type.
struct Unowned<'a> {
    what: &'static str,
    faults: &'a mut Faults,
}

fn check_type(ty: &Type, what: &'static str, faults: &mut Faults) {
    Unowned { what, faults }.visit_type(ty);
}

impl<'ast> Visit<'ast> for Unowned<'_> {
    fn visit_type(&mut self, ty: &'ast Type) {
        let what = self.what;
        match ty {
            Type::Reference(reference) => {
                let owned = owned_form(&reference.elem);
                self.faults.add(
                    ty,
                    format!(
                        "{what} crosses the network, so its type must be owned: write `{owned}`"
                    ),
                );
            }
            Type::Ptr(_) | Type::BareFn(_) | Type::TraitObject(_) | Type::ImplTrait(_) => {
                self.faults.add(
                    ty,
                    format!("{what} crosses the network: its type must be one that serde can send"),
                );
            }
            Type::Infer(_) | Type::Never(_) | Type::Macro(_) => {
                self.faults.add(ty, format!("the type of {what} must be written out"));
            }
            _ => syn::visit::visit_type(self, ty),
        }
    }

    fn visit_lifetime(&mut self, lifetime: &'ast syn::Lifetime) {
        let what = self.what;
        self.faults.add(
            lifetime,
            format!("{what} crosses the network, so its type must be owned: it cannot borrow"),
        );
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.first().is_some_and(|first| first.ident == "Self") {
            self.faults.add(
                path,
                "clients do not know who implements the trait: name the type instead of `Self`",
            );
        } else {
            syn::visit::visit_path(self, path);
        }
    }
}

fn owned_form(borrowed: &Type) -> String {
    match borrowed {
        Type::Slice(slice) => format!("Vec<{}>", written(&slice.elem)),
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        other => written(other),
    }
}

#[cfg(test)]
mod tests;
