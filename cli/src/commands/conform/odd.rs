//! Arguments that services of one language take and those of another do not: texts, numbers and
//! nesting at the borders of JSON.

use serde_json::{Value, json};

use super::plan::{Call, Plan};
use super::types::Type;

/// Arrays within arrays: more than any program takes, and few enough for every reader of JSON.
const DEEP: usize = 500;

/// Arguments of a call, not all of which are JSON.
pub struct Odd {
    pub body: Vec<u8>,
    pub why: &'static str,
}

/// The values of a call, each of which may be replaced by other bytes.
struct Frame {
    values: Vec<Value>,
}

impl Frame {
    fn with(&self, index: usize, other: &[u8]) -> Vec<u8> {
        let texts = self.values.iter().enumerate().map(|(at, value)| {
            if at == index { other.to_vec() } else { value.to_string().into_bytes() }
        });
        [&b"["[..], &texts.collect::<Vec<_>>().join(&b','), b"]"].concat()
    }
}

/// Arguments that no program may take, whatever its language.
pub fn refused(plan: &Plan, call: &Call) -> Vec<Odd> {
    let Some((types, frame)) = parts(plan, call) else { return Vec::new() };
    let mut odd = Vec::new();
    for (index, ty) in types.iter().enumerate() {
        let mut put = |other: &[u8], why| odd.push(Odd { body: frame.with(index, other), why });
        for (text, why) in wrong_parts(ty) {
            put(text.as_slice(), why);
        }
        put(&nested(DEEP), "arrays that are nested 500 deep");
    }
    let stranger = |name: &[u8]| [&b"{\""[..], name, b"\": 1}"].concat();
    for (name, why) in [(&b"\\ud83d"[..], HALF), (b"\xff", NO_TEXT)] {
        odd.push(Odd { body: stranger(name), why });
    }
    odd
}

const HALF: &str = "half a pair of surrogates";
const NO_TEXT: &str = "bytes that are not UTF-8";

fn wrong_parts(ty: &Type) -> Vec<(Vec<u8>, &'static str)> {
    match ty {
        Type::Text => vec![
            (br#""half \ud83d""#.to_vec(), HALF),
            (br#""\uDC00 half""#.to_vec(), HALF),
            (b"\"\xff\"".to_vec(), NO_TEXT),
            (b"\"cut \xc3\"".to_vec(), "a cut character"),
        ],
        Type::Int { least, greatest } => vec![
            ((greatest + 1).to_string().into_bytes(), "a number that is too large"),
            ((least - 1).to_string().into_bytes(), "a number that is too small"),
        ],
        Type::Float => vec![
            (b"1e999".to_vec(), "a number that is too large"),
            (b"NaN".to_vec(), "NaN, which JSON has not"),
        ],
        Type::Optional(of) => wrong_parts(of),
        Type::List(of) => {
            let within = |(text, why): (Vec<u8>, _)| ([&b"["[..], &text, b"]"].concat(), why);
            wrong_parts(of).into_iter().map(within).collect()
        }
        _ => Vec::new(),
    }
}

/// Arguments that every program takes, and that states often do not give back. No number is large:
/// a handler may count up to it.
pub fn taken(plan: &Plan, call: &Call) -> Vec<Call> {
    let Some((types, frame)) = parts(plan, call) else { return Vec::new() };
    let mut calls = Vec::new();
    for (index, ty) in types.iter().enumerate() {
        for value in rare(ty) {
            let mut values = frame.values.clone();
            values[index] = value;
            calls.push(Call { body: Value::Array(values).to_string(), ..call.clone() });
        }
    }
    calls
}

fn rare(ty: &Type) -> Vec<Value> {
    match ty {
        // A handler that cuts texts by bytes cuts one of the first two within a character.
        Type::Text => vec![
            json!("東".repeat(60)),
            json!(format!("a{}", "東".repeat(60))),
            json!("\0\u{1}\u{7f}\"\\/\u{2028}\u{fffd}\u{ffff}"),
            json!("😀e\u{301}\u{202e}"),
            json!("\r\n\t "),
        ],
        Type::Float => vec![json!(-0.0), json!(0.1), json!(1e-300), json!(1e21)],
        Type::Optional(of) => [vec![Value::Null], rare(of)].concat(),
        Type::List(of) => {
            let rare = rare(of).into_iter().map(|value| json!([value]));
            [vec![json!([])], rare.collect()].concat()
        }
        Type::Map(key, _) if **key == Type::Text => vec![json!({})],
        _ => Vec::new(),
    }
}

/// The types and the values of a call's arguments, if the contract tells them.
fn parts(plan: &Plan, call: &Call) -> Option<(Vec<Type>, Frame)> {
    let arguments = &plan.method(call)?.arguments;
    let Ok(Value::Array(values)) = serde_json::from_str(&call.body) else { return None };
    let types: Vec<_> = arguments.iter().map(|argument| Type::of(&argument.ty)).collect();
    (types.len() == values.len() && !types.is_empty()).then_some((types, Frame { values }))
}

fn nested(depth: usize) -> Vec<u8> {
    [vec![b'['; depth], vec![b']'; depth]].concat()
}

#[cfg(test)]
mod tests {
    use steadfast::Contract;

    use super::*;

    fn plan() -> Plan {
        let text = br#"{"service": "S", "encodings": ["json"], "methods": [
            {"name": "put", "reads": false, "result": "()", "arguments": [
                {"name": "n", "type": "i8"}, {"name": "notes", "type": "Vec<Option<String>>"}]}]}"#;
        Plan::new(Some(Contract::from_json(text).expect("a contract")), &[], &[], 1)
    }

    #[test]
    fn arguments_at_the_borders_are_made_for_each_argument() {
        let call = Call::new("put", r#"[5, ["x"]]"#);
        let odd = refused(&plan(), &call);
        let has = |body: &[u8]| odd.iter().any(|odd| odd.body == body);
        assert!(has(br#"[128,["x"]]"#) && has(br#"[-129,["x"]]"#));
        assert!(has(br#"[5,["half \ud83d"]]"#) && has(b"[5,[\"\xff\"]]"));
        assert!(odd.iter().all(|odd| odd.body.len() < 2_000));
        let taken: Vec<_> = taken(&plan(), &call).into_iter().map(|call| call.body).collect();
        assert!(taken.contains(&"[5,[]]".into()) && taken.contains(&"[5,[null]]".into()));
        assert!(refused(&plan(), &Call::new("other", "[5]")).is_empty());
    }
}
