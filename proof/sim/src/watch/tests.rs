//! A node's reports, beside the executions of its services.

use super::*;
use crate::draw::Draw;
use crate::options::World;
use wire::ordered::Poison;
use wire::{Incarnation, MethodId};

const GROUP: GroupId = GroupId(1);
const CLIENT: ClientId = ClientId(2);

/// A warm passive replica reports a poisonous call when it takes the call's update, however far
/// its service is.
#[test]
fn a_replica_may_report_a_poisonous_call_before_its_service_begins_anew() {
    let member = |node| Member { node: NodeId(node), incarnation: Incarnation(1) };
    let mut watch = Watch::new(&Options::draw(&mut Draw::new(1), World::Cluster));
    [1, 2].into_iter().for_each(|node| watch.poisons.died(member(node), Time(1)));
    let (by, method) = (member(3), MethodId(4));
    let executes = |watch: &mut Watch, number: u64, place: u64, position: u64| {
        let (client, group, time, came) = (CLIENT, GROUP, Time(number), 0);
        let entry = Entry { client, number, time, random: 0, method, body: 0, filling: 0, came };
        let (component, latest) = (RingId::default(), Time(9));
        let step = Step { component, place, before: place - 1, after: place, latest };
        watch.executed(by, GROUP, &entry, &step, false).unwrap();
        watch.event(Time(1), by, &Event::Executed { group, client, number, position })
    };
    let poison = Box::new(Poison {
        number: 2,
        client: CLIENT,
        call: 2,
        method,
        json: false,
        time: Time(2),
        nodes: [1, 2].map(NodeId).into(),
        size: 0,
        body: Vec::new(),
    });
    watch.given(by, GROUP, &Command::Reset).unwrap();
    watch.event(Time(1), by, &Event::Poisoned { group: GROUP, poison }).unwrap();
    watch.replaced(by, GROUP, &[]).unwrap();
    executes(&mut watch, 1, 1, 1).unwrap();
    executes(&mut watch, 3, 2, 3).unwrap();
    executes(&mut watch, 4, 3, 3).unwrap_err();
}
