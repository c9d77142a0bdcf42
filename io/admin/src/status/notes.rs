//! Things that replicas cannot do with the states of their groups, in words for people.

use serde::{Deserialize, Serialize};
use wire::NodeId;
use wire::ordered::About;

/// A thing that one replica cannot do with its group's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteStatus {
    /// Its node.
    pub node: NodeId,
    /// The thing: `give`, `read`, `read-back`, `dropped`, `apart` or `discarded`.
    pub about: About,
    /// The reason, in the words of its service; or the fields.
    pub text: String,
}

impl From<engine::StateNote> for NoteStatus {
    fn from(note: engine::StateNote) -> NoteStatus {
        NoteStatus { node: note.member.node, about: note.about, text: note.text }
    }
}

impl NoteStatus {
    /// Says it without the group's name, and without a remedy.
    pub fn fact(&self) -> String {
        let NoteStatus { node, about, text } = self;
        format!("{node} {about}: {text}")
    }

    /// While it is so, the group has fewer copies of its state than it should. `lacking`: the group's
    /// replicas without the state.
    pub fn trouble(&self, group: &str, lacking: &[NodeId]) -> Option<String> {
        let NoteStatus { node, about, text } = self;
        let names: Vec<String> = lacking.iter().map(NodeId::to_string).collect();
        match about {
            About::Give if lacking.is_empty() => Some(format!(
                "{group}: {node} cannot give its state: {text}. No other replica can receive it: take what cannot be written out of \
                 the state by a call, or deploy a program that writes it"
            )),
            About::Give => Some(format!(
                "{group}: its state cannot be given to {}: {text} ({node} says so). Keep {node} running, and take what cannot be \
                 written out of the state by a call",
                names.join(", ")
            )),
            About::Read => Some(format!(
                "{group}: {node} cannot read the state: {text}. Deploy a program that reads it, or the former one (`steadfast deploy`)"
            )),
            About::ReadBack => Some(format!(
                "{group}: its state cannot be read back at {node}: {text}. Whoever receives it would have another one, or none: keep \
                 {node} running, and take what is said out of the state by a call, or deploy a program that writes it"
            )),
            About::Apart => Some(format!(
                "{group}: {node} has another state than the others: {text}. The service is not deterministic: deploy one that uses \
                 its context's clock and random numbers alone. {node} gets the others' state when its replica leaves and comes \
                 again (`steadfast programs stop {group}` there)"
            )),
            About::Discarded => Some(format!(
                "{group}: {node} {about} of {text} when two histories met (`quorum = \"off\"`, or two clusters that were founded \
                 alike). Have their callers make them again; restarting {node} ends this line"
            )),
            About::Dropped => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trouble_has_its_reason_and_a_remedy() {
        let note = |about| NoteStatus { node: NodeId(2), about, text: "NaN is no number".into() };
        for about in About::ALL.into_iter().filter(|about| about.is_trouble()) {
            for lacking in [&[][..], &[NodeId(1), NodeId(3)]] {
                let told = note(about).trouble("notes", lacking).expect("a trouble");
                assert!(told.starts_with("notes: ") && told.contains("NaN is no number"), "{told}");
                assert!(told.contains("eploy") || told.contains("by a call"), "{told}");
            }
        }
        let told = note(About::Give).trouble("notes", &[NodeId(1), NodeId(3)]);
        assert!(
            told.is_some_and(|told| told.contains("cannot be given to n1, n3: NaN is no number"))
        );
        assert_eq!(note(About::Dropped).trouble("notes", &[]), None);
        assert_eq!(note(About::Dropped).fact(), "n2 dropped fields of the state: NaN is no number");
    }
}
