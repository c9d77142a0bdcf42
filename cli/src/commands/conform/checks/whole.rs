//! States and values arrive whole, or are refused.

use std::fmt::Display;

use serde_json::{Value, json};
use wire::attach::Outcome;
use wire::client::Refusal;

use super::super::check::{Check, Trial};
use super::super::link::{DROPPED, FAULT, Notice};
use super::super::odd;
use super::super::plan::Call;
use super::super::session::{How, Session, refused, told};
use super::super::verdict::{Flaw, same, same_state, shown};

pub const CHECKS: &[Check] = &[
    Check {
        name: "odd-arguments",
        promise: "text that is not Unicode, numbers that do not fit and deep nesting are refused",
        section: "States and values",
        run: odd_arguments,
    },
    Check {
        name: "odd-values",
        promise: "what a call leaves can be given, and another program takes it and answers alike",
        section: "States and values",
        run: odd_values,
    },
    Check {
        name: "state-form",
        promise: "a state is read by its fields' names, and what does not fit is told by name",
        section: "States and values",
        run: state_form,
    },
];

/// A field that no service has.
const STRANGER: &str = "added by conform";

/// An integer that a reader of 64-bit floats would round.
const EXACT: u64 = (1 << 53) + 1;

fn odd_arguments(trial: &Trial) -> Result<(), Flaw> {
    let mut session = trial.session()?;
    let before = session.snapshot()?;
    let mut tried = false;
    for call in trial.plan.one_of_each(true)?.into_iter().chain(trial.plan.one_of_each(false)?) {
        for odd in odd::refused(&trial.plan, call) {
            tried = true;
            let outcome = session.execute_bytes(call, odd.body)?;
            refused(&outcome, Refusal::BadArguments, format!("{} with {}", call.method, odd.why))?;
        }
    }
    if !tried {
        return Err(Flaw::not_tried("no method has arguments"));
    }
    same_state(&before, &session.snapshot()?, "the state after refused calls")
}

fn odd_values(trial: &Trial) -> Result<(), Flaw> {
    let mut calls = trial.plan.calls()?.to_vec();
    let reading: Vec<Call> = match trial.plan.contract() {
        Ok(_) => {
            for call in trial.plan.one_of_each(false)? {
                calls.extend(odd::taken(&trial.plan, call));
            }
            trial.plan.one_of_each(true)?.into_iter().cloned().collect()
        }
        Err(_) => Vec::new(),
    };
    let (mut first, mut second) = (trial.session()?, trial.session()?);
    for call in &calls {
        read_as_json(call, &first.execute(call, How::Ordered)?)?;
        let state = first.snapshot()?;
        second.restore_own(&state)?;
        let place = format!("the state after {call}, in another program");
        same_state(&state, &second.snapshot()?, &place)?;
        second.set_stamp(first.stamp());
        for read in &reading {
            let expected = first.execute(read, How::Read)?;
            let seen = second.execute(read, How::Read)?;
            same(&expected, &seen, told, &format!("{read} after {call}, in another program"))?;
        }
    }
    match first.notices().into_iter().chain(second.notices()).find(|it| it.code == FAULT) {
        Some(notice) => Err(Flaw::wrong("no Notice 1 of a state that can be given", notice.text)),
        None => Ok(()),
    }
}

/// Callers in every language read results: as JSON, which has no half a character and no NaN.
fn read_as_json(call: &Call, outcome: &Outcome) -> Result<(), Flaw> {
    let (Outcome::Ok(bytes) | Outcome::Error(bytes)) = outcome else { return Ok(()) };
    match serde_json::from_slice::<Value>(bytes) {
        Ok(_) => Ok(()),
        Err(error) => {
            let seen = format!("{}: {error}", shown(bytes));
            Err(Flaw::wrong(format!("{call}: JSON"), seen))
        }
    }
}

/// A program with its state, whose fields are known.
struct Form {
    session: Session,
    state: Vec<u8>,
    /// Each name with its JSON, digit by digit as the program wrote it.
    fields: Vec<(String, String)>,
}

fn state_form(trial: &Trial) -> Result<(), Flaw> {
    let mut session = trial.session()?;
    session.execute_all(&trial.plan.calls)?;
    let state = session.snapshot()?;
    let Some(fields) = fields(&state) else {
        return Err(Flaw::not_tried("the state is no JSON object with fields"));
    };
    let names: Vec<String> = fields.iter().map(|(name, _)| name.clone()).collect();
    let mut form = Form { session, state, fields };
    form.in_another_order()?;
    for name in &names {
        form.without(name)?;
        form.of_another_type(name)?;
        form.exact(name)?;
    }
    form.with_a_stranger()
}

/// The fields of a JSON object, if the state is one.
fn fields(state: &[u8]) -> Option<Vec<(String, String)>> {
    if !serde_json::from_slice::<Value>(state).ok()?.is_object() {
        return None;
    }
    let inner = str::from_utf8(state).ok()?.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut fields = Vec::new();
    for member in split(inner, ',') {
        let [name, value] = &split(member, ':')[..] else { return None };
        fields.push((serde_json::from_str(name).ok()?, value.trim().to_owned()));
    }
    Some(fields)
}

/// The parts of JSON between these letters, outside of texts, arrays and objects.
fn split(text: &str, between: char) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0);
    let (mut in_text, mut escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            letter if letter == between && depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

fn text(fields: &[(String, String)]) -> Vec<u8> {
    let members = fields.iter().map(|(name, value)| format!("{}:{value}", json!(name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(",")).into_bytes()
}

impl Form {
    /// The state with this value in a field; without the field for `None`.
    fn with(&self, name: &str, value: Option<&Value>) -> Vec<u8> {
        let mut fields = self.fields.clone();
        fields.retain(|(it, _)| it != name);
        fields.extend(value.map(|value| (name.to_owned(), value.to_string())));
        text(&fields)
    }

    fn value(&self, name: &str) -> Value {
        let found = self.fields.iter().find(|(it, _)| it == name);
        found.and_then(|(_, json)| serde_json::from_str(json).ok()).unwrap_or(Value::Null)
    }

    fn give_back(&mut self) -> Result<(), Flaw> {
        self.session.restore_own(&self.state)
    }

    fn in_another_order(&mut self) -> Result<(), Flaw> {
        let reversed: Vec<_> = self.fields.iter().rev().cloned().collect();
        self.session.restore(&text(&reversed))?.map_err(|reason| {
            let expected = "Restored: the state, with its fields in another order";
            Flaw::wrong(expected, format!("Failed: {reason}"))
        })?;
        let place = "the state, given with its fields in another order";
        same_state(&self.state, &self.session.snapshot()?, place)
    }

    /// A field may have a default; if not, it is named.
    fn without(&mut self, name: &str) -> Result<(), Flaw> {
        match self.session.restore(&self.with(name, None))? {
            Ok(()) => self.give_back(),
            Err(reason) => self.refused(name, format!("without field {name}"), &reason),
        }
    }

    fn of_another_type(&mut self, name: &str) -> Result<(), Flaw> {
        let other = match self.value(name) {
            Value::Null => return Ok(()),
            Value::Bool(_) | Value::Number(_) => json!({"another": "type"}),
            _ => json!(5),
        };
        let place = format!("with {other} in field {name}");
        match self.session.restore(&self.with(name, Some(&other)))? {
            Err(reason) => self.refused(name, &place, &reason),
            Ok(()) => self.has(name, &other, &place),
        }
    }

    fn exact(&mut self, name: &str) -> Result<(), Flaw> {
        if !self.value(name).is_u64() {
            return Ok(());
        }
        let place = format!("with {EXACT} in field {name}");
        match self.session.restore(&self.with(name, Some(&json!(EXACT))))? {
            // It may be one of fewer bits.
            Err(reason) => self.refused(name, &place, &reason),
            Ok(()) => self.has(name, &json!(EXACT), &place),
        }
    }

    fn with_a_stranger(&mut self) -> Result<(), Flaw> {
        let place = "with a field that the program does not know";
        let given = self.with(STRANGER, Some(&json!(1)));
        self.session.notices();
        if let Err(reason) = self.session.restore(&given)? {
            return self.refused(STRANGER, place, &reason);
        }
        let kept = self.session.snapshot()?;
        let kept = serde_json::from_slice::<Value>(&kept).is_ok_and(|it| it[STRANGER] == 1);
        let tells = |it: &Notice| it.code == DROPPED && it.text.contains(STRANGER);
        if !kept && !self.session.notices().iter().any(tells) {
            let expected = format!("the state {place}: Notice 3, or Failed, with the field's name");
            return Err(Flaw::wrong(expected, "Restored, and the field is gone"));
        }
        self.give_back()
    }

    /// A refused state is told by name, and the old one stays.
    fn refused(&mut self, name: &str, place: impl Display, reason: &str) -> Result<(), Flaw> {
        if !reason.contains(name) {
            let expected = format!("the state {place}: Failed, with the field's name");
            return Err(Flaw::wrong(expected, format!("Failed: {reason}")));
        }
        same_state(
            &self.state,
            &self.session.snapshot()?,
            &format!("the state after Failed {place}"),
        )
    }

    /// A value that was taken is there as it was given.
    fn has(&mut self, name: &str, value: &Value, place: impl Display) -> Result<(), Flaw> {
        let state = self.session.snapshot()?;
        let seen = serde_json::from_slice::<Value>(&state).map(|it| it[name].clone());
        if !seen.as_ref().is_ok_and(|seen| seen == value) {
            let expected = format!("the state {place}: Failed, or Restored and the same value");
            return Err(Flaw::wrong(expected, format!("Restored, and {}", shown(&state))));
        }
        self.give_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_as_they_were_written() {
        let state = br#" {"a": 13.783333333333333, "b,\"}": [{"c": ",:"}, "]"], "d":{}} "#;
        let seen = fields(state).expect("fields");
        let expected =
            [("a", "13.783333333333333"), ("b,\"}", r#"[{"c": ",:"}, "]"]"#), ("d", "{}")];
        assert!(seen.iter().map(|(a, b)| (a.as_str(), b.as_str())).eq(expected), "{seen:?}");
        assert_eq!(fields(&text(&seen)), Some(seen));
        for none in [&b"{}"[..], b"[1]", b"{\"a\": NaN}", b"\xff"] {
            assert_eq!(fields(none), None);
        }
    }
}
