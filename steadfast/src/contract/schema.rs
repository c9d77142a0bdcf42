//! How Rust's types become a contract's texts and definitions.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::{FieldContract, TypeContract};

/// A type that a contract can define. Derive it, beside serde's traits, on the structs and enums
/// that a service's methods take and return:
///
/// ```
/// use steadfast::Schema;
///
/// /// More was asked for than is there.
/// #[derive(Debug, serde::Serialize, serde::Deserialize, Schema)]
/// pub struct Overdrawn {
///     /// In cents.
///     balance: u64,
/// }
/// ```
///
/// It is optional: without it, a contract has the type by its name alone. The fields' types may do
/// without it, too. serde's `rename`, `rename_all`, `rename_all_fields` and a field's `skip` count;
/// attributes that change the form in other ways are refused.
pub trait Schema: 'static {
    /// The type's text; a struct or enum defines itself in `types`.
    fn schema(types: &mut Types) -> String;
}

/// The definitions of a contract in the making.
#[derive(Debug, Default)]
pub struct Types(BTreeMap<String, (TypeId, TypeContract)>);

impl Types {
    /// Defines `T`, unless that is done, and returns its name. If another type has the name, it
    /// is followed by a number.
    pub fn define<T: 'static>(
        &mut self,
        name: &str,
        definition: impl FnOnce(&mut Types) -> TypeContract,
    ) -> String {
        let ty = TypeId::of::<T>();
        let mut free = name.to_owned();
        let mut number = 2;
        while let Some((other, _)) = self.0.get(&free) {
            if *other == ty {
                return free;
            }
            free = format!("{name}{number}");
            number += 1;
        }
        // A type that contains itself finds its name taken by itself.
        let unfinished = TypeContract::Struct { docs: String::new(), fields: Vec::new() };
        self.0.insert(free.clone(), (ty, unfinished));
        let definition = definition(self);
        self.0.insert(free.clone(), (ty, definition));
        free
    }

    /// All definitions, by their names.
    pub fn finish(self) -> BTreeMap<String, TypeContract> {
        self.0.into_iter().map(|(name, (_, definition))| (name, definition)).collect()
    }
}

/// Joins the lines of a documentation: rustc gives each with its leading blank.
pub fn documented(lines: &[&str]) -> String {
    let lines = lines.iter().flat_map(|text| text.split('\n'));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    lines.join("\n").trim().to_owned()
}

/// Tells a type's text: by its [`Schema`] if it has one, else as it is written. The compiler
/// prefers the implementation that needs fewer references, and so chooses.
pub mod by_schema {
    use std::marker::PhantomData;

    use super::{Schema, Types};

    /// Stands for a type without a value of it.
    #[derive(Debug)]
    pub struct Probe<T: ?Sized>(pub PhantomData<T>);

    /// Chosen for a type with a [`Schema`].
    pub trait Told {
        /// The type's text.
        fn text(&self, types: &mut Types, written: &str) -> String;
    }

    impl<T: Schema> Told for Probe<T> {
        fn text(&self, types: &mut Types, _: &str) -> String {
            T::schema(types)
        }
    }

    /// Chosen for all others.
    pub trait Written {
        /// The type's text.
        fn text(&self, types: &mut Types, written: &str) -> String;
    }

    impl<T: ?Sized> Written for &Probe<T> {
        fn text(&self, _: &mut Types, written: &str) -> String {
            written.to_owned()
        }
    }
}

macro_rules! plain {
    ($($text:literal: $($ty:ty),+;)*) => {$($(
        impl Schema for $ty {
            fn schema(_: &mut Types) -> String {
                $text.to_owned()
            }
        }
    )+)*};
}

// A usize travels as a u64.
plain! {
    "bool": bool;
    "u8": u8; "u16": u16; "u32": u32; "u64": u64, usize; "u128": u128;
    "i8": i8; "i16": i16; "i32": i32; "i64": i64, isize; "i128": i128;
    "f32": f32; "f64": f64;
    "char": char;
    "String": String, Box<str>, Arc<str>;
    "Bytes": bytes::Bytes;
    "()": ();
}

impl Schema for Duration {
    fn schema(types: &mut Types) -> String {
        let field = |(name, ty): (&str, &str)| FieldContract {
            name: name.to_owned(),
            ty: ty.to_owned(),
            docs: String::new(),
        };
        types.define::<Duration>("Duration", |_| TypeContract::Struct {
            docs: String::new(),
            fields: [("secs", "u64"), ("nanos", "u32")].map(field).into(),
        })
    }
}

macro_rules! wrapped {
    ($($text:literal: $($ty:ident $(+ $more:ident)?),+;)*) => {$($(
        impl<T: Schema $(, $more: 'static)?> Schema for $ty<T $(, $more)?> {
            fn schema(types: &mut Types) -> String {
                format!($text, T::schema(types))
            }
        }
    )+)*};
}

wrapped! {
    "Vec<{}>": Vec, VecDeque, LinkedList, BinaryHeap, BTreeSet, HashSet + S;
    "Option<{}>": Option;
    "{}": Box, Arc;
}

impl<K: Schema, V: Schema> Schema for BTreeMap<K, V> {
    fn schema(types: &mut Types) -> String {
        format!("Map<{}, {}>", K::schema(types), V::schema(types))
    }
}

impl<K: Schema, V: Schema, S: 'static> Schema for HashMap<K, V, S> {
    fn schema(types: &mut Types) -> String {
        format!("Map<{}, {}>", K::schema(types), V::schema(types))
    }
}

impl<T: Schema, const N: usize> Schema for [T; N] {
    fn schema(types: &mut Types) -> String {
        format!("[{}; {N}]", T::schema(types))
    }
}

macro_rules! tuples {
    ($(($($ty:ident),+))*) => {$(
        impl<$($ty: Schema),+> Schema for ($($ty,)+) {
            fn schema(types: &mut Types) -> String {
                let parts = [$($ty::schema(types)),+];
                match &parts[..] {
                    [only] => format!("({only},)"),
                    all => format!("({})", all.join(", ")),
                }
            }
        }
    )*};
}

tuples! {
    (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F)
    (A, B, C, D, E, F, G) (A, B, C, D, E, F, G, H)
}
