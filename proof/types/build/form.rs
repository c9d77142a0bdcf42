//! Random types: their definitions in Rust, and expressions of their values.

use std::fmt::Write;

use super::draw::Draw;

/// A type that was made.
pub struct Made {
    pub name: String,
    pub definition: String,
    /// Expressions.
    pub values: Vec<String>,
    /// All its values must arrive: it has nothing that serde itself cannot carry.
    pub is_sure: bool,
}

/// A type that others may contain.
#[derive(Clone)]
struct Known {
    name: String,
    /// It is a struct with names, so that it may be flattened.
    is_struct: bool,
    /// Its fields, as they are written: two of one name must not meet by `flatten`.
    fields: Vec<String>,
    values: Vec<String>,
    is_sure: bool,
    /// serde cannot buffer a part of it.
    is_unbuffered: bool,
}

/// A field's type, with values.
struct Form {
    ty: String,
    values: Vec<String>,
    is_sure: bool,
    is_unbuffered: bool,
}

pub struct World {
    draw: Draw,
    known: Vec<Known>,
    next: usize,
}

/// A struct's field, or a variant's.
struct Field {
    definition: String,
    /// Its name when it is written; none if it is flattened or skipped.
    names: Vec<String>,
    ident: String,
    form: Form,
}

const PLAIN: &[(&str, &[&str])] = &[
    ("u8", &["0", "1", "255"]),
    ("u16", &["0", "1", "65535"]),
    ("u32", &["0", "1", "4294967295"]),
    ("u64", &["0", "1", "18446744073709551615"]),
    ("i8", &["0", "-1", "-128"]),
    ("i16", &["0", "-1", "-32768"]),
    ("i32", &["0", "1", "-2147483648"]),
    ("i64", &["0", "-9223372036854775808", "9223372036854775807"]),
    ("f32", &["0.1", "f32::NAN", "-0.0"]),
    ("f64", &["0.1", "f64::INFINITY", "1e300"]),
    ("bool", &["true", "false", "true"]),
    ("char", &["'a'", "'\\u{1f600}'", "'\\0'"]),
    ("String", &["String::new()", "\"tex\\u{0}t\".to_owned()", "\"\\u{6f22} \\\"\".to_owned()"]),
    ("()", &["()", "()", "()"]),
    (
        "std::time::Duration",
        &[
            "std::time::Duration::ZERO",
            "std::time::Duration::new(1, 2)",
            "std::time::Duration::from_micros(7)",
        ],
    ),
    ("std::net::IpAddr", &["[10, 0, 0, 1].into()", "[0u16; 8].into()", "[255, 0, 0, 0].into()"]),
];

const WIDE: &[(&str, &[&str])] = &[
    ("u128", &["0", "1", "340282366920938463463374607431768211455"]),
    ("i128", &["0", "-1", "170141183460469231731687303715884105727"]),
];

const VALUES: usize = 3;

impl World {
    pub fn new(draw: Draw) -> World {
        World { draw, known: Vec::new(), next: 0 }
    }

    pub fn make(&mut self) -> Made {
        let name = format!("T{}", self.next);
        self.next += 1;
        let (mut definition, known) =
            if self.draw.one_in(2) { self.structure(name) } else { self.enumeration(name) };
        definition.insert_str(
            0,
            "\n#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]\n#[allow(dead_code)]\n",
        );
        let made = Made {
            name: known.name.clone(),
            definition,
            values: known.values.clone(),
            is_sure: known.is_sure,
        };
        self.known.push(known);
        if self.known.len() > 40 {
            self.known.remove(0);
        }
        made
    }

    fn pick(&mut self, values: &[String]) -> String {
        self.draw.of(values).clone()
    }

    fn form(&mut self, depth: u32) -> Form {
        let kinds = if depth > 2 { 3 } else { 10 };
        match self.draw.below(kinds) {
            0..2 => {
                let all = if self.draw.one_in(8) { WIDE } else { PLAIN };
                let (ty, values) = *self.draw.of(all);
                let values = values.iter().map(|it| format!("({it})")).collect();
                let is_unbuffered = WIDE.iter().any(|wide| wide.0 == ty);
                Form { ty: ty.to_owned(), values, is_sure: true, is_unbuffered }
            }
            2..5 if !self.known.is_empty() => {
                let known = self.draw.of(&self.known).clone();
                let Known { name, values, is_sure, is_unbuffered, .. } = known;
                Form { ty: name, values, is_sure, is_unbuffered }
            }
            kind => self.composed(kind, depth),
        }
    }

    fn composed(&mut self, kind: u64, depth: u32) -> Form {
        let inner = self.form(depth + 1);
        let mut values = Vec::new();
        let ty = match kind {
            5 | 6 => format!("Option<{}>", inner.ty),
            7 => format!("Vec<{}>", inner.ty),
            8 => format!("std::collections::BTreeMap<String, {}>", inner.ty),
            9 => format!("({}, u8)", inner.ty),
            _ => format!("Box<{}>", inner.ty),
        };
        for i in 0..VALUES {
            let (a, b) = (self.pick(&inner.values), self.pick(&inner.values));
            values.push(match kind {
                5 | 6 if i == 0 => "None".to_owned(),
                5 | 6 => format!("Some({a})"),
                7 if i == 0 => "vec![]".to_owned(),
                7 => format!("vec![{a}, {b}]"),
                8 if i == 0 => "Default::default()".to_owned(),
                8 => format!("[(\"a\".to_owned(), {a}), (String::new(), {b})].into()"),
                9 => format!("({a}, {i})"),
                _ => format!("Box::new({a})"),
            });
        }
        Form { ty, values, ..inner }
    }

    /// A field with random attributes. `may_flatten`: serde permits it here.
    fn field(&mut self, ident: String, may_flatten: bool) -> Field {
        if may_flatten && self.draw.one_in(6) {
            let structs: Vec<Known> =
                self.known.iter().filter(|it| it.is_struct).cloned().collect();
            if !structs.is_empty() {
                let Known { name, values, is_sure, is_unbuffered, fields, .. } =
                    self.draw.of(&structs).clone();
                let definition = format!("#[serde(flatten)] {ident}: {name}");
                let is_sure = is_sure && !is_unbuffered;
                let form = Form { ty: name, values, is_sure, is_unbuffered };
                return Field { definition, names: fields, ident, form };
            }
        }
        let mut form = self.form(0);
        let mut attributes = Vec::new();
        let mut name = ident.clone();
        if self.draw.one_in(4) {
            name = format!("{ident}-renamed");
            attributes.push(format!("rename = \"{name}\""));
        }
        if self.draw.one_in(5) {
            attributes.push(format!("alias = \"{ident}_once\""));
        }
        let option = form.ty.starts_with("Option<");
        if option && self.draw.one_in(2) {
            attributes.push("skip_serializing_if = \"Option::is_none\"".to_owned());
            if self.draw.one_in(2) {
                attributes.push("default".to_owned());
            }
        } else if form.ty.starts_with("Vec<") && self.draw.one_in(2) {
            attributes.push("default, skip_serializing_if = \"Vec::is_empty\"".to_owned());
        } else if option && self.draw.one_in(8) {
            attributes = vec!["skip".to_owned()];
            form.values = vec!["None".to_owned()];
            (form.is_sure, form.is_unbuffered) = (true, false);
        } else if option && self.draw.one_in(8) {
            attributes.push("default".to_owned());
        }
        let serde = match attributes[..] {
            [] => String::new(),
            _ => format!("#[serde({})] ", attributes.join(", ")),
        };
        let definition = format!("{serde}{ident}: {}", form.ty);
        Field { definition, names: vec![name], ident, form }
    }

    fn fields(&mut self, may_flatten: bool) -> Vec<Field> {
        let count = 1 + self.draw.below(4);
        (0..count).map(|i| self.field(format!("f{i}"), may_flatten)).collect()
    }

    fn structure(&mut self, name: String) -> (String, Known) {
        if self.draw.one_in(8) {
            let form = self.form(0);
            let definition = format!("struct {name}({});\n", form.ty);
            let values = form.values.iter().map(|it| format!("{name}({it})")).collect();
            let Form { is_sure, is_unbuffered, .. } = form;
            let fields = Vec::new();
            return (
                definition,
                Known { name, is_struct: false, fields, values, is_sure, is_unbuffered },
            );
        }
        let fields = self.fields(true);
        let is_flat = fields.iter().any(|it| it.definition.starts_with("#[serde(flatten"));
        let mut container = String::new();
        if self.draw.one_in(5) {
            container = "#[serde(rename_all = \"camelCase\")]\n".to_owned();
        } else if !is_flat && self.draw.one_in(5) {
            container = "#[serde(deny_unknown_fields)]\n".to_owned();
        }
        let (body, values) = self.named(&fields);
        let definition = format!("{container}struct {name} {{ {body} }}\n");
        let values = values.iter().map(|it| format!("{name} {it}")).collect();
        let names: Vec<String> = fields.iter().flat_map(|it| it.names.clone()).collect();
        let mut once = names.clone();
        once.sort();
        once.dedup();
        let is_unbuffered = fields.iter().any(|it| it.form.is_unbuffered);
        // A struct with `flatten` is written as a map, whose fields serde buffers; a field of the
        // same name twice is one value for both.
        let is_sure = fields.iter().all(|it| it.form.is_sure) && once.len() == names.len();
        let denies = container.contains("deny");
        (
            definition,
            Known { name, is_struct: !denies, fields: names, values, is_sure, is_unbuffered },
        )
    }

    /// The fields of a struct or variant in braces, and values in braces.
    fn named(&mut self, fields: &[Field]) -> (String, Vec<String>) {
        let body: Vec<&str> = fields.iter().map(|it| &*it.definition).collect();
        let values = (0..VALUES).map(|_| {
            let mut value = "{ ".to_owned();
            for field in fields {
                let it = self.draw.of(&field.form.values).clone();
                let _ = write!(value, "{}: {it}, ", field.ident);
            }
            value + "}"
        });
        let values = values.collect();
        (body.join(", "), values)
    }

    fn enumeration(&mut self, name: String) -> (String, Known) {
        let kind =
            *self.draw.of(&["", "", "untagged", "tag = \"type\"", "tag = \"t\", content = \"c\""]);
        let mut code = match kind {
            "" => String::new(),
            kind => format!("#[serde({kind})]\n"),
        };
        let _ = writeln!(code, "enum {name} {{");
        let (mut values, mut is_sure, mut is_unbuffered) = (Vec::new(), true, false);
        for i in 0..1 + self.draw.below(4) {
            let mut variant = format!("V{i}");
            if self.draw.one_in(8) {
                let _ = writeln!(code, "    #[serde(skip)] Skipped{i},");
            }
            if self.draw.one_in(5) {
                let _ = writeln!(code, "    #[serde(rename = \"{variant} named\")]");
            }
            match self.draw.below(4) {
                0 => {
                    let _ = writeln!(code, "    {variant},");
                    values.push(format!("{name}::{variant}"));
                }
                1 | 2 => {
                    let form = self.form(1);
                    let _ = writeln!(code, "    {variant}({}),", form.ty);
                    let of_form = form.values.iter().map(|it| format!("{name}::{variant}({it})"));
                    values.extend(of_form);
                    is_sure &= form.is_sure && kind != "tag = \"type\"";
                    is_unbuffered |= form.is_unbuffered;
                }
                _ => {
                    let fields = self.fields(false);
                    let (body, of_fields) = self.named(&fields);
                    let _ = writeln!(code, "    {variant} {{ {body} }},");
                    variant.insert_str(0, &format!("{name}::"));
                    values.extend(of_fields.iter().map(|it| format!("{variant} {it}")));
                    is_sure &= fields.iter().all(|it| it.form.is_sure);
                    is_unbuffered |= fields.iter().any(|it| it.form.is_unbuffered);
                }
            }
        }
        code += "}\n";
        // The first variant that fits takes the value; what serde buffers has no 128 bits.
        is_sure &= kind != "untagged" && (kind.is_empty() || !is_unbuffered);
        (code, Known { name, is_struct: false, fields: Vec::new(), values, is_sure, is_unbuffered })
    }
}
