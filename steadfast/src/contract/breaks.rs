//! Which changes of a contract would break callers that were built from the older one.

use std::collections::{BTreeSet, VecDeque};

use super::{Contract, FieldContract, MethodContract, TypeContract, VariantContract, is_of_name};

/// A list of changes is for people: it ends here.
const MAX_BREAKS: usize = 256;

impl Contract {
    /// Lists the changes from this contract to a `newer` one that would break callers of this one:
    /// their calls would be refused, or misread. Empty: every caller can stay as it is.
    ///
    /// These are no break: a new method, encoding or documentation; a method that has become a read;
    /// an error that no longer happens; a variant that was added at the end of an enum that callers
    /// only send. Any other change of a type is one, even if some values would fit. In a file of
    /// protobuf, a name keeps its number and its type. The list ends after 256 changes.
    pub fn breaks(&self, newer: &Contract) -> Vec<String> {
        let mut changes = Changes {
            older: self,
            newer,
            // Places count if bytes have no names.
            by_place: self.encodings.iter().any(|encoding| encoding == "postcard"),
            found: Vec::new(),
            seen: BTreeSet::new(),
            waiting: VecDeque::new(),
        };
        for encoding in self.encodings.iter().filter(|it| !newer.encodings.contains(it)) {
            changes.add(format!("the encoding {encoding} is gone"));
        }
        for method in &self.methods {
            match newer.methods.iter().find(|other| other.name == method.name) {
                Some(other) => changes.method(method, other),
                None => changes.add(format!("{} is gone", method.name)),
            }
        }
        changes.definitions();
        changes.proto();
        changes.found
    }
}

/// The way of a value that may be misread: from a caller to the service, or back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Sent,
    Received,
}

/// A name in the older contract, and in the newer one at the same place.
type Pair<'a> = (&'a str, &'a str, Way);

/// The comparison of two contracts.
struct Changes<'a> {
    older: &'a Contract,
    newer: &'a Contract,
    by_place: bool,
    found: Vec<String>,
    /// Definitions that are compared, or wait for it: types may contain themselves.
    seen: BTreeSet<Pair<'a>>,
    waiting: VecDeque<Pair<'a>>,
}

impl<'a> Changes<'a> {
    fn add(&mut self, change: String) {
        if self.found.len() < MAX_BREAKS && !self.found.contains(&change) {
            self.found.push(change);
        }
    }

    fn method(&mut self, older: &'a MethodContract, newer: &'a MethodContract) {
        let name = &older.name;
        if older.reads && !newer.reads {
            self.add(format!("{name} was a read, and may change the state now"));
        }
        let arguments = |method: &'a MethodContract| -> Vec<Part<'a>> {
            method.arguments.iter().map(|it| (it.name.clone(), &*it.ty)).collect()
        };
        let (before, after) = (arguments(older), arguments(newer));
        self.parts(&format!("{name}: argument"), &before, &after, true, Way::Sent);
        self.types(&format!("{name}: the result"), &older.result, &newer.result, Way::Received);
        match (&older.error, &newer.error) {
            (Some(before), Some(after)) => {
                self.types(&format!("{name}: the error"), before, after, Way::Received);
            }
            (None, Some(after)) => {
                self.add(format!("{name} returned no error, and may return {after}"))
            }
            (_, None) => {}
        }
    }

    /// Compares arguments or fields, whose kind and place are `of`.
    fn parts(
        &mut self,
        of: &str,
        older: &[Part<'a>],
        newer: &[Part<'a>],
        in_order: bool,
        way: Way,
    ) {
        let find = |list: &[Part<'a>], name: &str| list.iter().position(|it| it.0 == name);
        let is_gone = |(name, _): &&Part<'a>| find(newer, name).is_none();
        let is_new = |(name, _): &&Part<'a>| find(older, name).is_none();
        for (place, (name, ty)) in older.iter().enumerate() {
            let renamed = newer.get(place).filter(|_| older.len() == newer.len()).filter(is_new);
            match (find(newer, name), renamed) {
                (Some(now), _) => {
                    if in_order && now != place && older.len() == newer.len() {
                        let (from, to) = (place + 1, now + 1);
                        self.add(format!("{of} {name} was number {from}, is number {to}"));
                    }
                    self.types(&format!("{of} {name}"), ty, newer[now].1, way);
                }
                (None, Some((other, other_type))) => {
                    self.add(format!("{of} {name} is named {other} now"));
                    self.types(&format!("{of} {name}"), ty, other_type, way);
                }
                (None, None) => self.add(format!("{of} {name} is gone")),
            }
        }
        let renamed = older.len() == newer.len();
        for (place, (name, _)) in newer.iter().enumerate().filter(|(_, it)| is_new(it)) {
            if !(renamed && is_gone(&&older[place])) {
                self.add(format!("{of} {name} was added"));
            }
        }
    }

    /// Compares two types' texts; definitions that they name have to wait.
    fn types(&mut self, place: &str, older: &'a str, newer: &'a str, way: Way) {
        let (before, after) = (words(older), words(newer));
        let mut pairs = Vec::new();
        let mut is_same = before.len() == after.len();
        for (before, after) in before.into_iter().zip(after) {
            let defined =
                self.older.types.contains_key(before) && self.newer.types.contains_key(after);
            match defined {
                true => pairs.push((before, after, way)),
                false => is_same &= before == after,
            }
        }
        if !is_same {
            self.add(format!("{place} was {older}, is {newer}"));
            return;
        }
        for pair in pairs {
            if self.seen.insert(pair) {
                self.waiting.push_back(pair);
            }
        }
    }

    /// Compares the definitions that wait, and those that they name.
    fn definitions(&mut self) {
        let (older, newer) = (self.older, self.newer);
        while let Some((name, newer_name, way)) = self.waiting.pop_front() {
            if self.found.len() >= MAX_BREAKS {
                return;
            }
            match (&older.types[name], &newer.types[newer_name]) {
                (
                    TypeContract::Struct { fields: before, .. },
                    TypeContract::Struct { fields: after, .. },
                ) => self.fields(&format!("{name}: field"), before, after, way),
                (
                    TypeContract::Enum { variants: before, .. },
                    TypeContract::Enum { variants: after, .. },
                ) => self.variants(name, before, after, way),
                (TypeContract::Struct { .. }, _) => {
                    self.add(format!("{name} was a struct, is an enum"));
                }
                (TypeContract::Enum { .. }, _) => {
                    self.add(format!("{name} was an enum, is a struct"));
                }
            }
        }
    }

    /// Compares the files of protobuf.
    fn proto(&mut self) {
        match (&self.older.proto, &self.newer.proto) {
            (None, None) => {}
            (Some(_), None) => self.add("the file of protobuf is gone".into()),
            (None, Some(_)) => self.add(
                "callers by protobuf had a file made of the contract, and need the service's own \
                 now"
                .into(),
            ),
            #[cfg(feature = "descriptors")]
            (Some(before), Some(after)) => {
                before.breaks(after).into_iter().for_each(|change| self.add(change));
            }
            #[cfg(not(feature = "descriptors"))]
            (Some(before), Some(after)) => {
                if (&before.service, &before.descriptors) != (&after.service, &after.descriptors) {
                    self.add(
                        "the file of protobuf has changed: build with the feature `descriptors` \
                         of steadfast to have it compared"
                            .into(),
                    );
                }
            }
        }
    }

    fn fields(
        &mut self,
        of: &str,
        older: &'a [FieldContract],
        newer: &'a [FieldContract],
        way: Way,
    ) {
        // A field without a name is called by its place.
        let parts = |fields: &'a [FieldContract]| -> Vec<Part<'a>> {
            let named = |(place, it): (usize, &'a FieldContract)| match it.name.is_empty() {
                true => (place.to_string(), &*it.ty),
                false => (it.name.clone(), &*it.ty),
            };
            fields.iter().enumerate().map(named).collect()
        };
        self.parts(of, &parts(older), &parts(newer), self.by_place, way);
    }

    fn variants(
        &mut self,
        name: &str,
        older: &'a [VariantContract],
        newer: &'a [VariantContract],
        way: Way,
    ) {
        for (place, variant) in older.iter().enumerate() {
            let now = newer.iter().position(|other| other.name == variant.name);
            let variant_name = &variant.name;
            match now {
                Some(now) => {
                    if self.by_place && now != place {
                        let (from, to) = (place + 1, now + 1);
                        self.add(format!(
                            "{name}: variant {variant_name} was number {from}, is number {to}"
                        ));
                    }
                    let of = format!("{name}::{variant_name}: field");
                    self.fields(&of, &variant.fields, &newer[now].fields, way);
                }
                None if way == Way::Sent => {
                    self.add(format!("{name}: variant {variant_name} is gone"));
                }
                None => {}
            }
        }
        let is_new = |it: &&VariantContract| older.iter().all(|other| other.name != it.name);
        for variant in newer.iter().filter(is_new).filter(|_| way == Way::Received) {
            let variant = &variant.name;
            self.add(format!("{name}: variant {variant} was added, and callers cannot read it"));
        }
    }
}

/// A name and its type.
type Part<'a> = (String, &'a str);

/// The words of a type's text: names, and each other character but blanks.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match is_of_name(first) {
            true => rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after.trim_start();
    }
    words
}
