//! One client's stream of xDS, as a pure machine: requests and knowledge in, responses out.
//!
//! State of the world (SotW): each response has all resources of its kind that the client has asked
//! for. A response waits until something is known of each of them. A client waits 15 s for it.

use std::collections::{BTreeMap, BTreeSet};

use client::Followed;

use super::proto::{Any, DiscoveryRequest, DiscoveryResponse};
use super::resources::{Kind, Knowledge};

/// Groups that one client may ask for.
pub(crate) const MAX_GROUPS_ASKED: usize = 64;

/// The stream of one client.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    asked: BTreeMap<Kind, Subscription>,
    groups: BTreeMap<String, Knowledge>,
    responses: u64,
}

#[derive(Debug, Default)]
struct Subscription {
    names: BTreeSet<String>,
    /// The names were asked for and have no answer yet.
    due: bool,
    nonce: String,
    sent: Vec<Any>,
}

/// A client's objection to a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Objection {
    pub(crate) kind: Kind,
    pub(crate) reason: String,
}

impl Feed {
    /// The client asks, agrees or objects.
    ///
    /// # Errors
    /// It asks for too much: the stream ends with this reason.
    pub(crate) fn handle_request(
        &mut self,
        request: DiscoveryRequest,
    ) -> Result<Option<Objection>, String> {
        let Some(kind) = Kind::of(&request.type_url) else {
            return Err(format!(
                "this gateway has no resources of type {}: it has listeners, clusters and \
                 endpoints, for gRPC clients",
                request.type_url
            ));
        };
        let subscription = self.asked.entry(kind).or_default();
        // An answer to an earlier response than the last one says nothing of now.
        if !request.response_nonce.is_empty() && request.response_nonce != subscription.nonce {
            return Ok(None);
        }
        let names: BTreeSet<String> = request.resource_names.into_iter().collect();
        if names.len() > MAX_GROUPS_ASKED {
            return Err(format!("{} groups: ask for at most {MAX_GROUPS_ASKED}", names.len()));
        }
        if names != subscription.names || request.response_nonce.is_empty() {
            (subscription.names, subscription.due) = (names, true);
        }
        let wanted: BTreeSet<&String> = self.asked.values().flat_map(|it| &it.names).collect();
        self.groups.retain(|group, _| wanted.contains(group));
        let objection = request.error_detail.map(|it| Objection { kind, reason: it.message });
        Ok(objection)
    }

    /// The groups that the client has asked for.
    pub(crate) fn wanted(&self) -> BTreeSet<&str> {
        self.asked.values().flat_map(|it| it.names.iter().map(String::as_str)).collect()
    }

    /// Something new is known of a group.
    pub(crate) fn learn(&mut self, knowledge: Knowledge) {
        self.groups.insert(knowledge.group.clone(), knowledge);
    }

    /// The next response, if one is due.
    pub(crate) fn poll_response(&mut self) -> Option<DiscoveryResponse> {
        let kinds: Vec<Kind> = self.asked.keys().copied().collect();
        kinds.into_iter().find_map(|kind| self.respond(kind))
    }

    fn respond(&mut self, kind: Kind) -> Option<DiscoveryResponse> {
        let subscription = self.asked.get_mut(&kind)?;
        if subscription.names.is_empty() {
            return None;
        }
        let known = |name: &String| {
            let of = self.groups.get(name)?;
            // Without a gateway nobody could be called: one is announced soon.
            (of.followed != Followed::Unknown && !of.peers.is_empty()).then_some(of)
        };
        let known: Option<Vec<&Knowledge>> = subscription.names.iter().map(known).collect();
        let there = known?.into_iter().filter(|of| of.followed != Followed::Absent);
        let there: Vec<&Knowledge> = there.collect();
        let resources: Vec<Any> = there.iter().map(|of| of.resource(kind)).collect();
        if !subscription.due && resources == subscription.sent {
            return None;
        }
        self.responses += 1;
        let view = there.iter().map(|of| of.view()).max().unwrap_or(0);
        subscription.due = false;
        subscription.nonce = self.responses.to_string();
        subscription.sent.clone_from(&resources);
        Some(DiscoveryResponse {
            version_info: format!("{view}.{}", self.responses),
            resources,
            type_url: kind.url(),
            nonce: subscription.nonce.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::{ClusterLoadAssignment, Refused};
    use super::super::resources::Peer;
    use super::*;
    use prost::Message;
    use wire::client::{Target, Targets};
    use wire::ordered::Style;
    use wire::{NodeId, ViewNumber};

    fn knowledge(view: u64, nodes: &[u32]) -> Knowledge {
        let address = |node: u32| std::net::SocketAddr::from(([10, 0, 0, node as u8], 7443));
        let target = |node: &u32| Target { node: NodeId(*node), address: address(*node) };
        let nodes = nodes.iter().map(target).collect();
        let peer =
            |node| Peer { node: NodeId(node), address: address(node), client: address(node) };
        let peers = [1, 2, 3].map(peer);
        Knowledge {
            group: "counter".into(),
            followed: Followed::Known(Targets {
                view: ViewNumber(view),
                style: Style::SemiActive,
                nodes,
            }),
            peers: peers.into(),
            reads: Vec::new(),
        }
    }

    fn request(kind: Kind, nonce: &str) -> DiscoveryRequest {
        DiscoveryRequest {
            type_url: kind.url(),
            resource_names: vec!["counter".into()],
            response_nonce: nonce.into(),
            ..DiscoveryRequest::default()
        }
    }

    /// The zones of a response's endpoints, in order of priority.
    fn zones(response: &DiscoveryResponse) -> Vec<String> {
        let any = &response.resources[0];
        let assignment = ClusterLoadAssignment::decode(&*any.value).expect("endpoints");
        assignment.endpoints.into_iter().map(|it| it.locality.expect("one").zone).collect()
    }

    #[test]
    fn an_answer_comes_when_the_group_is_known_and_once() {
        let mut feed = Feed::default();
        feed.handle_request(request(Kind::Endpoints, "")).unwrap();
        assert_eq!(feed.wanted().into_iter().collect::<Vec<_>>(), ["counter"]);
        assert_eq!(feed.poll_response(), None, "nothing is known");
        feed.learn(Knowledge { followed: Followed::Unknown, ..knowledge(1, &[]) });
        assert_eq!(feed.poll_response(), None, "no node has answered");
        feed.learn(Knowledge { peers: Vec::new(), ..knowledge(1, &[1, 2]) });
        assert_eq!(feed.poll_response(), None, "nobody could be called");
        feed.learn(knowledge(7, &[2, 1]));
        let response = feed.poll_response().expect("it is known");
        assert_eq!(zones(&response), ["node-2", "node-1", "node-3"]);
        assert_eq!(response.version_info, "7.1");
        assert_eq!(feed.poll_response(), None);
        feed.handle_request(request(Kind::Endpoints, &response.nonce)).unwrap();
        assert_eq!(feed.poll_response(), None, "the client agrees: that is no question");
    }

    #[test]
    fn a_change_is_pushed_to_the_kind_that_it_concerns() {
        let mut feed = Feed::default();
        feed.learn(knowledge(1, &[1, 2]));
        for kind in [Kind::Listener, Kind::Cluster, Kind::Endpoints] {
            feed.handle_request(request(kind, "")).unwrap();
            feed.learn(knowledge(1, &[1, 2]));
            assert_eq!(feed.poll_response().expect("an answer").type_url, kind.url());
        }
        feed.learn(knowledge(2, &[2, 1]));
        let pushed = feed.poll_response().expect("a new order");
        assert_eq!(pushed.type_url, Kind::Endpoints.url());
        assert_eq!(zones(&pushed), ["node-2", "node-1", "node-3"]);
        assert_eq!(feed.poll_response(), None, "the others are as they were");
    }

    #[test]
    fn a_group_that_does_not_exist_is_left_out() {
        let mut feed = Feed::default();
        feed.handle_request(request(Kind::Listener, "")).unwrap();
        feed.learn(Knowledge { followed: Followed::Absent, ..knowledge(0, &[]) });
        assert!(feed.poll_response().expect("an answer").resources.is_empty());
        feed.learn(knowledge(1, &[1]));
        assert_eq!(feed.poll_response().expect("it is there now").resources.len(), 1);
    }

    #[test]
    fn objections_are_told_and_late_answers_ignored() {
        let mut feed = Feed::default();
        feed.handle_request(request(Kind::Endpoints, "")).unwrap();
        feed.learn(knowledge(1, &[1]));
        let first = feed.poll_response().expect("an answer");
        let error_detail = Some(Refused { code: 3, message: "no".into() });
        let objects = DiscoveryRequest { error_detail, ..request(Kind::Endpoints, &first.nonce) };
        let objection = feed.handle_request(objects.clone()).unwrap().expect("it objects");
        assert_eq!((objection.kind, &*objection.reason), (Kind::Endpoints, "no"));
        feed.learn(knowledge(2, &[2]));
        feed.poll_response().expect("a newer one");
        assert_eq!(feed.handle_request(objects), Ok(None), "that was of the first");
    }

    #[test]
    fn other_kinds_and_too_many_groups_end_the_stream() {
        let mut feed = Feed::default();
        let other = DiscoveryRequest { type_url: "x".into(), ..DiscoveryRequest::default() };
        assert!(feed.handle_request(other).unwrap_err().contains("listeners"));
        let names = (0..65).map(|index| format!("g{index}")).collect();
        let many = DiscoveryRequest { resource_names: names, ..request(Kind::Cluster, "") };
        assert!(feed.handle_request(many).unwrap_err().contains("at most 64"));
    }
}
