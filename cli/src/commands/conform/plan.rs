//! The calls that the checks make, from the program's contract and the command line.

use std::fmt;

use serde_json::{Map, Value};
use steadfast::Contract;
use steadfast::contract::MethodContract;
use wire::limits::MAX_BODY;
use wire::{MethodId, Random};

use super::types::{Type, Types};
use super::verdict::{Flaw, shown};

/// The method that tells the contract ([`steadfast::DESCRIBE`]).
const DESCRIBE: &str = "steadfast.describe";

const NO_VALUE: &str = "no value is known for an argument; give one by --call 'METHOD=[ARGUMENTS]'";
const LEFT_OUT: &str = "left out by --except";

/// Calls of each method.
const ROUNDS: usize = 4;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub method: String,
    /// The arguments in JSON.
    pub body: String,
    /// Whether the method changes nothing, if the contract tells it.
    pub reads: Option<bool>,
}

impl Call {
    pub fn new(method: &str, body: impl Into<String>) -> Call {
        Call { method: method.into(), body: body.into(), reads: None }
    }

    /// The call that asks for the contract.
    pub fn describe() -> Call {
        Call::new(DESCRIBE, "[]")
    }

    /// Reads `add=[5]`.
    pub fn parse(text: &str) -> Result<Call, String> {
        let wrong = "write METHOD=[ARGUMENTS] in JSON, such as 'add=[5]' or 'get=[]'";
        let (method, body) = text.split_once('=').ok_or(wrong)?;
        match serde_json::from_str(body) {
            Ok(Value::Array(_) | Value::Object(_)) if !method.is_empty() => {
                Ok(Call::new(method, body))
            }
            _ => Err(wrong.into()),
        }
    }

    pub fn id(&self) -> MethodId {
        MethodId::of(&self.method)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, shown(self.body.as_bytes()))
    }
}

/// All that the checks call.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub contract: Option<Contract>,
    /// In the order in which they are made.
    pub calls: Vec<Call>,
    /// Methods that are never called, each with the reason.
    pub untried: Vec<(String, &'static str)>,
}

impl Plan {
    /// The seed chooses the arguments and the order.
    pub fn new(contract: Option<Contract>, given: &[Call], except: &[String], seed: u64) -> Plan {
        let mut random = Random::new(seed);
        let mut plan = Plan::default();
        let methods = contract.iter().flat_map(|contract| &contract.methods);
        let (left_out, methods): (Vec<_>, Vec<_>) =
            methods.partition(|method| except.contains(&method.name));
        for _ in 0..ROUNDS {
            let mut round = Vec::new();
            for method in &methods {
                let types = &contract.as_ref().expect("it has this method").types;
                match arguments(types, method, &mut random) {
                    Some(values) => round.push(Call {
                        reads: Some(method.reads),
                        ..Call::new(&method.name, Value::Array(values).to_string())
                    }),
                    None if given.iter().any(|call| call.method == method.name) => {}
                    None if plan.untried.iter().any(|(name, _)| *name == method.name) => {}
                    None => plan.untried.push((method.name.clone(), NO_VALUE)),
                }
            }
            round.extend(given.iter().map(|call| Call {
                reads: contract.as_ref().and_then(|it| reads(it, &call.method)),
                ..call.clone()
            }));
            while !round.is_empty() {
                let index = random.below(round.len() as u64);
                plan.calls.push(round.swap_remove(usize::try_from(index).unwrap_or(0)));
            }
        }
        // A value of an argument's type may exist in one round, and not in the next.
        plan.untried.retain(|(name, _)| plan.calls.iter().all(|call| call.method != *name));
        plan.untried.extend(left_out.iter().map(|method| (method.name.clone(), LEFT_OUT)));
        plan.contract = contract;
        plan
    }

    /// The calls, if there are any.
    pub fn calls(&self) -> Result<&[Call], Flaw> {
        if self.calls.is_empty() {
            return Err(Flaw::not_tried("no call is known: give --call 'METHOD=[ARGUMENTS]'"));
        }
        Ok(&self.calls)
    }

    pub fn contract(&self) -> Result<&Contract, Flaw> {
        let why = "the program does not tell its contract (method steadfast.describe)";
        self.contract.as_ref().ok_or_else(|| Flaw::not_tried(why))
    }

    /// A call of each method that reads, or of each that may change the state.
    pub fn one_of_each(&self, reads: bool) -> Result<Vec<&Call>, Flaw> {
        self.contract()?;
        let mut calls: Vec<&Call> = Vec::new();
        for call in self.calls()?.iter().filter(|call| call.reads == Some(reads)) {
            if calls.iter().all(|other| other.method != call.method) {
                calls.push(call);
            }
        }
        Ok(calls)
    }

    /// The method of a call in the contract.
    pub fn method(&self, call: &Call) -> Option<&MethodContract> {
        let methods = &self.contract.as_ref()?.methods;
        methods.iter().find(|method| method.name == call.method)
    }

    /// The same call with its arguments by name; `None` if it has none, or they stand for nothing.
    pub fn by_name(&self, call: &Call) -> Option<Call> {
        let method = self.method(call)?;
        let Ok(Value::Array(values)) = serde_json::from_str(&call.body) else { return None };
        if values.is_empty() || values.len() != method.arguments.len() {
            return None;
        }
        let names = method.arguments.iter().map(|argument| argument.name.clone());
        let object: Map<_, _> = names.zip(values).collect();
        Some(Call { body: Value::Object(object).to_string(), ..call.clone() })
    }

    /// The same call with texts of so many bytes; `None` if it has no text.
    pub fn with_long_texts(&self, call: &Call, length: usize) -> Option<Call> {
        let method = self.method(call)?;
        let Ok(Value::Array(mut values)) = serde_json::from_str(&call.body) else { return None };
        let mut texts = 0;
        for (argument, value) in method.arguments.iter().zip(&mut values) {
            if Type::of(&argument.ty) == Type::Text {
                *value = Value::String("long ".repeat(length / 5 + 1));
                texts += 1;
            }
        }
        let body = Value::Array(values).to_string();
        (texts > 0 && body.len() <= MAX_BODY).then(|| Call { body, ..call.clone() })
    }

    /// Arguments that the method of this call must refuse, each with the reason.
    pub fn wrong_arguments(&self, call: &Call) -> Vec<(Call, &'static str)> {
        let with = |body: String| Call { body, ..call.clone() };
        let mut wrong = vec![(with("[".into()), "half an array"), (with("5".into()), "no array")];
        let Some(method) = self.method(call) else { return wrong };
        let Ok(Value::Array(values)) = serde_json::from_str(&call.body) else { return wrong };
        let more = [&values[..], &[Value::Bool(true)]].concat();
        wrong.push((with(Value::Array(more).to_string()), "an argument too many"));
        let stranger = r#"{"no such argument": 1}"#;
        wrong.push((with(stranger.into()), "a name that no argument has"));
        for (index, argument) in method.arguments.iter().enumerate().take(values.len()) {
            if let Some(value) = Type::of(&argument.ty).wrong_value() {
                let mut values = values.clone();
                values[index] = value;
                wrong.push((with(Value::Array(values).to_string()), "an argument of another type"));
            }
        }
        let needed = method.arguments.last().map(|last| Type::of(&last.ty));
        if needed.is_some_and(|last| !matches!(last, Type::Optional(_) | Type::Named(_))) {
            let fewer = Value::Array(values[..values.len().saturating_sub(1)].to_vec());
            wrong.push((with(fewer.to_string()), "an argument too few"));
        }
        wrong
    }
}

fn reads(contract: &Contract, method: &str) -> Option<bool> {
    contract.methods.iter().find(|it| it.name == method).map(|method| method.reads)
}

fn arguments(types: &Types, method: &MethodContract, random: &mut Random) -> Option<Vec<Value>> {
    let arguments = method.arguments.iter();
    arguments.map(|argument| Type::of(&argument.ty).value(types, random)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract() -> Contract {
        let text = br#"{"service": "S", "encodings": ["json"], "methods": [
            {"name": "add", "reads": false, "result": "u64",
             "arguments": [{"name": "n", "type": "u64"}, {"name": "note", "type": "Option<String>"}]},
            {"name": "get", "reads": true, "result": "u64", "arguments": []},
            {"name": "put", "reads": false, "result": "()",
             "arguments": [{"name": "x", "type": "dyn X"}]}]}"#;
        Contract::from_json(text).expect("a contract")
    }

    #[test]
    fn the_seed_decides_the_calls_and_opaque_arguments_need_a_given_one() {
        let plan = |seed| Plan::new(Some(contract()), &[], &[], seed);
        assert_eq!(plan(7).calls, plan(7).calls);
        assert_ne!(plan(7).calls, plan(8).calls);
        assert_eq!(plan(7).untried, [("put".into(), NO_VALUE)]);
        let given = [Call::parse("put=[{}]").expect("a call")];
        let plan = Plan::new(Some(contract()), &given, &[], 7);
        assert!(plan.untried.is_empty());
        assert_eq!(plan.one_of_each(false).expect("calls").len(), 2);
        assert_eq!(plan.one_of_each(true).expect("calls").len(), 1);
        assert!(Plan::new(None, &[], &[], 7).calls().is_err());
    }

    #[test]
    fn a_method_that_is_left_out_is_never_called() {
        let plan = Plan::new(Some(contract()), &[], &["add".into()], 7);
        assert!(plan.calls.iter().all(|call| call.method == "get"), "{:?}", plan.calls);
        assert!(plan.untried.contains(&("add".into(), LEFT_OUT)));
    }

    #[test]
    fn arguments_go_by_name_and_wrong_ones_are_made() {
        let plan = Plan::new(Some(contract()), &[], &[], 7);
        let add = Call::new("add", "[5, null]");
        assert_eq!(plan.by_name(&add).expect("by name").body, r#"{"n":5,"note":null}"#);
        assert_eq!(plan.by_name(&Call::new("get", "[]")), None);
        let bodies: Vec<_> =
            plan.wrong_arguments(&add).into_iter().map(|(call, _)| call.body).collect();
        assert!(bodies.contains(&r#"["no number",null]"#.into()), "{bodies:?}");
        assert!(bodies.contains(&"[5,null,true]".into()), "{bodies:?}");
        // The last argument is optional: fewer may be enough.
        assert!(!bodies.contains(&"[5]".into()), "{bodies:?}");
    }

    #[test]
    fn a_call_is_written_as_its_method_and_arguments() {
        assert_eq!(Call::parse("add=[5]"), Ok(Call::new("add", "[5]")));
        for wrong in ["add", "add=5", "=[5]", "add=[5"] {
            assert!(Call::parse(wrong).is_err(), "{wrong}");
        }
    }
}
