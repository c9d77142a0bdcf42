use serde_json::{Value, json};

use wire::limits::MAX_NAME;

use super::*;

/// A contract of these methods and types.
fn contract(methods: Value, types: Value) -> Contract {
    let encodings = ["postcard", "json"];
    let all = json!({
        "service": "Bank", "encodings": encodings, "methods": methods, "types": types
    });
    Contract::from_json(all.to_string().as_bytes()).expect("the test's contract")
}

/// A method `m` of these arguments, written `name: type`.
fn method(arguments: &[&str], result: &str) -> Value {
    let arguments: Vec<Value> = arguments
        .iter()
        .map(|it| it.split_once(": ").expect("name: type"))
        .map(|(name, ty)| json!({"name": name, "type": ty}))
        .collect();
    json!({"name": "m", "reads": false, "arguments": arguments, "result": result})
}

fn breaks(older: Value, newer: Value) -> Vec<String> {
    contract(json!([older]), json!({})).breaks(&contract(json!([newer]), json!({})))
}

/// The changes that break when this type changes, which callers send or receive.
fn type_breaks(sent: bool, older: Value, newer: Value) -> Vec<String> {
    let method = if sent { method(&["it: Vec<T>"], "()") } else { method(&[], "Option<T>") };
    let of = |ty: Value| contract(json!([method]), json!({ "T": ty }));
    of(older).breaks(&of(newer))
}

fn fields(fields: &[&str]) -> Value {
    let field = |it: &&str| match it.split_once(": ") {
        Some((name, ty)) => json!({"name": name, "type": ty}),
        None => json!({"type": it}),
    };
    fields.iter().map(field).collect()
}

fn structure(of: &[&str]) -> Value {
    json!({"kind": "struct", "fields": fields(of)})
}

/// An enum of variants without fields.
fn plain(variants: &[&str]) -> Value {
    let variants: Vec<Value> = variants.iter().map(|name| json!({"name": name})).collect();
    json!({"kind": "enum", "variants": variants})
}

const NONE: [&str; 0] = [];

#[test]
fn what_only_adds_breaks_nothing() {
    let older = contract(json!([method(&["n: u64"], "u64")]), json!({}));
    let mut newer = older.clone();
    newer.service = "Bank2".to_owned();
    newer.docs = "More of it.".to_owned();
    newer.encodings.push("protobuf".to_owned());
    newer.methods[0].reads = true;
    newer.methods.insert(0, MethodContract { name: "first".into(), ..older.methods[0].clone() });
    assert_eq!(older.breaks(&newer), NONE);
    assert_eq!(newer.breaks(&older)[..2], ["the encoding protobuf is gone", "first is gone"]);
}

#[test]
fn a_method_that_is_gone_or_no_read_breaks_its_callers() {
    let mut older = method(&[], "u64");
    older["reads"] = json!(true);
    assert_eq!(
        breaks(older.clone(), method(&[], "u64")),
        ["m was a read, and may change the state now"]
    );
    let gone = contract(json!([older]), json!({})).breaks(&contract(json!([]), json!({})));
    assert_eq!(gone, ["m is gone"]);
}

#[test]
fn every_change_of_arguments_breaks() {
    let before = method(&["a: u64", "b: String"], "()");
    let cases: [(&[&str], &[&str]); 6] = [
        (&["a: u64"], &["m: argument b is gone"]),
        (&["a: u64", "b: String", "c: u8"], &["m: argument c was added"]),
        (&["a: u64", "d: String"], &["m: argument b is named d now"]),
        (
            &["b: String", "a: u64"],
            &["m: argument a was number 1, is number 2", "m: argument b was number 2, is number 1"],
        ),
        (&["a: u32", "b: String"], &["m: argument a was u64, is u32"]),
        (&["a: u64", "b:  String"], &[]),
    ];
    for (after, expected) in cases {
        assert_eq!(breaks(before.clone(), method(after, "()")), expected, "{after:?}");
    }
}

#[test]
fn a_result_and_an_error_are_read_by_callers() {
    assert_eq!(
        breaks(method(&[], "Vec<u8>"), method(&[], "Vec<u16>")),
        ["m: the result was Vec<u8>, is Vec<u16>"]
    );
    let (mut one, mut other) = (method(&[], "()"), method(&[], "()"));
    one["error"] = json!("Full");
    other["error"] = json!("Empty");
    assert_eq!(breaks(one.clone(), other), ["m: the error was Full, is Empty"]);
    let without = method(&[], "()");
    assert_eq!(breaks(without.clone(), one.clone()), ["m returned no error, and may return Full"]);
    assert_eq!(breaks(one, without), NONE, "callers still understand all that they get");
}

#[test]
fn a_changed_struct_breaks_wherever_it_is_used() {
    let before = structure(&["a: u64", "b: Option<T>"]);
    for sent in [true, false] {
        let changed = |after: &[&str]| type_breaks(sent, before.clone(), structure(after));
        assert_eq!(changed(&["a: u64", "b: Option<T>"]), NONE);
        assert_eq!(changed(&["a: u64"]), ["T: field b is gone"]);
        assert_eq!(changed(&["a: i64", "b: Option<T>"]), ["T: field a was u64, is i64"]);
        assert_eq!(changed(&["a: u64", "c: Option<T>"]), ["T: field b is named c now"]);
        assert_eq!(changed(&["b: Option<T>", "a: u64"]).len(), 2, "postcard has no names");
        let other = type_breaks(sent, before.clone(), plain(&["A"]));
        assert_eq!(other, ["T was a struct, is an enum"]);
    }
    let tuple = type_breaks(true, structure(&["u8", "u8"]), structure(&["u8", "u16"]));
    assert_eq!(tuple, ["T: field 1 was u8, is u16"]);
}

#[test]
fn order_of_fields_means_nothing_in_json_alone() {
    let of = |fields: &[&str]| {
        let ty = json!({"T": structure(fields)});
        let mut contract = contract(json!([method(&["it: T"], "T")]), ty);
        contract.encodings = vec!["json".to_owned()];
        contract
    };
    assert_eq!(of(&["a: u8", "b: u8"]).breaks(&of(&["b: u8", "a: u8"])), NONE);
}

#[test]
fn variants_break_on_the_way_on_which_they_are_not_understood() {
    let before = plain(&["A", "B"]);
    let more = plain(&["A", "B", "C"]);
    assert_eq!(type_breaks(true, before.clone(), more.clone()), NONE);
    assert_eq!(
        type_breaks(false, before.clone(), more.clone()),
        ["T: variant C was added, and callers cannot read it"]
    );
    assert_eq!(type_breaks(true, more.clone(), before.clone()), ["T: variant C is gone"]);
    assert_eq!(type_breaks(false, more, before.clone()), NONE);
    assert_eq!(
        type_breaks(true, before.clone(), plain(&["Z", "A", "B"])),
        ["T: variant A was number 1, is number 2", "T: variant B was number 2, is number 3"]
    );
    let with = |ty: &str| {
        let fields = fields(&[ty]);
        json!({"kind": "enum", "variants": [{"name": "A", "fields": fields}]})
    };
    assert_eq!(type_breaks(false, with("u8"), with("u64")), ["T::A: field 0 was u8, is u64"]);
}

#[test]
fn a_type_may_get_another_name_with_the_same_form() {
    let older = contract(json!([method(&["it: Old"], "()")]), json!({"Old": structure(&["u8"])}));
    let newer = contract(json!([method(&["it: New"], "()")]), json!({"New": structure(&["u8"])}));
    assert_eq!(older.breaks(&newer), NONE);
    let unknown = contract(json!([method(&["it: New"], "()")]), json!({}));
    assert_eq!(older.breaks(&unknown), ["m: argument it was Old, is New"]);
}

#[test]
fn circles_of_types_end() {
    // Circles of 7 and 8 types: 56 pairs, before both circles begin anew.
    let circle = |length: usize| {
        let types: serde_json::Map<String, Value> = (0..length)
            .map(|it| (format!("T{it}"), structure(&[&format!("next: T{}", (it + 1) % length)])))
            .collect();
        contract(json!([method(&["it: T0"], "T0")]), types.into())
    };
    assert_eq!(circle(7).breaks(&circle(8)), NONE);
}

#[test]
fn a_list_of_changes_ends() {
    let many: Vec<Value> = (0..MAX_METHODS)
        .map(|it| json!({"name": format!("m{it}"), "reads": true, "arguments": [], "result": "()"}))
        .collect();
    let gone = contract(many.into(), json!({})).breaks(&contract(json!([]), json!({})));
    assert_eq!(gone.len(), 256);
}

/// Why these bytes are no contract.
fn refused(json: &[u8]) -> String {
    Contract::from_json(json).expect_err("it is no contract").to_string()
}

#[test]
fn hostile_answers_are_refused_with_the_reason() {
    let with = |key: &str, value: Value| {
        let mut all = json!({"service": "S", "encodings": ["json"], "methods": []});
        all[key] = value;
        refused(all.to_string().as_bytes())
    };
    let named =
        |name: &str| json!([{"name": name, "reads": true, "arguments": [], "result": "()"}]);
    for (reason, expected) in [
        (refused(b""), "EOF"),
        (refused(b"[]"), "struct Contract"),
        (refused(&[b' '; MAX_CONTRACT + 1]), "at most 262144"),
        (refused(&[b'['; 10_000]), "this is not a contract"),
        (with("service", json!("")), "the service has 0 bytes"),
        (with("service", json!("\u{1b}[2J")), "control character"),
        (with("methods", named(&"a".repeat(MAX_NAME + 1))), "a method has 129 bytes"),
        (with("methods", vec![named("a")[0].clone(); 1_025].into()), "a method 1025 times"),
        (with("methods", vec![named("a")[0].clone(); 2].into()), "a method twice"),
        (with("types", json!({"A": structure(&["a: u8", "a: u8"])})), "a field twice"),
        (with("types", json!({"A": structure(&["a: u8", "u8"])})), "a field has 0 bytes"),
        (with("types", json!({"A": structure(&["u8"; 257])})), "a field 257 times"),
        (with("types", json!({"a b": {"kind": "struct", "fields": []}})), "not named like one"),
        (with("types", json!({"A": {"kind": "union", "fields": []}})), "unknown variant `union`"),
        (with("types", json!({"A": structure(&["\n"])})), "control character"),
        (with("types", json!({"A": plain(&[""])})), "a variant has 0 bytes"),
    ] {
        assert!(reason.contains(expected), "{expected}: {reason}");
    }
    let types: serde_json::Map<String, Value> =
        (0..=MAX_TYPES).map(|it| (format!("T{it}"), structure(&[]))).collect();
    assert!(with("types", types.into()).contains("a type 257 times"));
}

#[test]
fn what_a_newer_program_tells_besides_is_ignored() {
    let json = br#"{"service": "S", "encodings": [], "methods": [], "version": 7}"#;
    let contract = Contract::from_json(json).expect("it is a contract");
    assert_eq!(Contract::from_json(contract.to_json().as_bytes()), Ok(contract));
}

#[test]
fn a_program_without_the_method_does_not_tell() {
    let refuse = |refusal| Err(CallError::Refused { refusal, reason: "no".to_owned() });
    for refusal in [Refusal::NoSuchMethod, Refusal::NotReadOnly] {
        assert_eq!(Contract::read(refuse(refusal)), Err(ContractError::Untold));
    }
    let busy = Contract::read(refuse(Refusal::Failed));
    assert!(matches!(busy, Err(ContractError::Call(_))));
}
