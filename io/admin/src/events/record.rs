//! The JSON form of an event: one object with `time`, `node` and `event`, then the event's own
//! fields.

use engine::Event;
use serde::{Deserialize, Serialize};
use wire::NodeId;

use super::table::EventKind;

/// An event, for tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// When the event left the stack: nanoseconds since the Unix epoch.
    pub time: u64,
    /// The node that reports it.
    pub node: NodeId,
    /// The event.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl EventRecord {
    /// The record of an event that `node` reports.
    pub fn new(time: u64, node: NodeId, event: &Event) -> EventRecord {
        EventRecord { time, node, kind: EventKind::from(event) }
    }
}

#[cfg(test)]
mod tests {
    use engine::DeploymentNews;
    use wire::ordered::{Poison, Style};
    use wire::{ClientId, GroupId, Incarnation, Member, MethodId, ViewNumber};

    use super::*;

    #[test]
    fn the_json_form_is_flat_and_is_read_back() {
        let member = Member { node: NodeId(3), incarnation: Incarnation(7) };
        let event = Event::View {
            group: GroupId::of("counter"),
            name: "counter".into(),
            style: Style::SemiActive,
            view: ViewNumber(4),
            replicas: vec![(member, true)],
            primary: Some(member),
        };
        let record = EventRecord::new(12, NodeId(1), &event);
        let json = serde_json::to_string(&record).unwrap();
        assert!(
            json.starts_with(r#"{"time":12,"node":1,"event":"view","group":"counter""#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<EventRecord>(&json).unwrap(), record);
    }

    #[test]
    fn a_poisonous_call_is_told_without_its_arguments() {
        let poison = Poison {
            number: 5,
            client: ClientId(7),
            call: 9,
            method: MethodId(3),
            json: false,
            time: wire::Time(1),
            nodes: vec![NodeId(1), NodeId(3)],
            size: 6,
            body: b"secret".to_vec(),
        };
        let poison = Box::new(poison);
        let event = Event::Poisoned { group: GroupId::of("counter"), poison };
        let record = EventRecord::new(12, NodeId(2), &event);
        let json = serde_json::to_string(&record).unwrap();
        assert!(json.contains(r#""event":"poisoned""#), "{json}");
        assert!(
            json.ends_with(r#""number":5,"client":7,"call":9,"method":3,"nodes":[1,3]}"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<EventRecord>(&json).unwrap(), record);
    }

    #[test]
    fn what_is_told_of_another_node_is_not_taken_for_who_tells_it() {
        let node = NodeId(3);
        let group = || String::from("own");
        for event in [
            Event::Shedding { node, level: 4, refused: 9 },
            Event::Drained { node, begins: true },
            Event::Deployment {
                group: group(),
                news: DeploymentNews::Changing { node, program: "./own".into() },
            },
            Event::Deployment { group: group(), news: DeploymentNews::Failing { node } },
        ] {
            let record = EventRecord::new(12, NodeId(1), &event);
            let json = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<EventRecord>(&json).unwrap(), record, "{json}");
        }
    }
}
