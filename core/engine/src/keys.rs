//! The change of the key that seals the cluster's datagrams. Its state is replicated, and changes
//! only at places in the total order (`docs/protocol/seal.md`, "Changing the key").
//!
//! No node leads a change. Each stage ends at the place of the last confirmation that it waits for.
//! That place is the same everywhere, even if the node that began the change is dead.

use alloc::vec::Vec;

use wire::keys::{KeyChange, KeyName, KeyStep, KeyTable, OfferedKey};
use wire::{Member, NodeId};

use crate::api::{KeyChangeStatus, KeyCommand, KeyError, KeyStatus};

/// The effect of a step at this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Something to do with the keys.
    Command(KeyCommand),
    /// A stage has begun or ended, for people.
    Told(Stage),
}

/// A stage of a change that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Offered(KeyName),
    Switched(KeyName),
    Retired(KeyName),
    Aborted(KeyName),
}

/// The nodes that count, and those that are here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes<'a> {
    pub(crate) all: &'a [NodeId],
    pub(crate) present: &'a [NodeId],
}

/// The room.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    me: NodeId,
    /// `None`: datagrams are not sealed here.
    table: Option<KeyTable>,
    /// The last step that this node has confirmed, so that it does so once.
    said: Option<KeyStep>,
}

impl Keys {
    pub(crate) fn new(me: NodeId, sealing: Option<KeyName>) -> Keys {
        let table = sealing.map(|sealing| KeyTable { sealing, change: None });
        Keys { me, table, said: None }
    }

    /// The table of keys for the installation of a component.
    pub(crate) fn table(&self) -> Option<KeyTable> {
        self.table.clone()
    }

    /// A component is installed: its table is everybody's. A node that was away learns the changes.
    pub(crate) fn install(
        &mut self,
        table: Option<&KeyTable>,
        nodes: Nodes<'_>,
        effects: &mut Vec<Effect>,
    ) {
        // A node that does not seal takes no part in changes of keys.
        let (Some(_), Some(table)) = (&self.table, table) else { return };
        self.table = Some(table.clone());
        self.said = None;
        match &table.change {
            None => effects.push(Effect::Command(KeyCommand::SealWith(table.sealing))),
            Some(change) => {
                effects.push(Effect::Command(KeyCommand::Store(change.key.clone())));
                let sealing = if change.switched { change.key.name } else { table.sealing };
                effects.push(Effect::Command(KeyCommand::SealWith(sealing)));
            }
        }
        self.advance(nodes, effects);
    }

    /// A step is delivered at its place.
    pub(crate) fn act(
        &mut self,
        sender: Member,
        step: KeyStep,
        nodes: Nodes<'_>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(table) = &mut self.table else { return };
        match (step, &mut table.change) {
            (KeyStep::Offer(key), None) if key.name.number != table.sealing.number => {
                let name = key.name;
                // The same key may have been offered and given up before.
                self.said = None;
                effects.push(Effect::Command(KeyCommand::Store(key.clone())));
                effects.push(Effect::Told(Stage::Offered(name)));
                let (switched, forced, confirmed) = (false, false, Vec::new());
                table.change = Some(KeyChange { key, switched, forced, confirmed });
            }
            (KeyStep::Stored(name), Some(change)) if change.is(name) && !change.switched => {
                confirm(change, sender.node);
            }
            (KeyStep::Sealing(name), Some(change)) if change.is(name) && change.switched => {
                confirm(change, sender.node);
            }
            (KeyStep::Force(name), Some(change)) if change.is(name) => change.forced = true,
            (KeyStep::Abort(name), Some(change)) if change.is(name) && !change.switched => {
                table.change = None;
                effects.push(Effect::Command(KeyCommand::Forget(name)));
                effects.push(Effect::Told(Stage::Aborted(name)));
            }
            // Too late, or of a change that is over: the node that asked sees it in the status.
            _ => {}
        }
        self.advance(nodes, effects);
    }

    /// Ends the stage if no confirmation is missing.
    fn advance(&mut self, nodes: Nodes<'_>, effects: &mut Vec<Effect>) {
        let Some(table) = &mut self.table else { return };
        let Some(change) = &mut table.change else { return };
        if !change.lacking(nodes).is_empty() {
            return;
        }
        let name = change.key.name;
        if change.switched {
            table.sealing = name;
            table.change = None;
            effects.push(Effect::Command(KeyCommand::Keep(name)));
            effects.push(Effect::Told(Stage::Retired(name)));
        } else {
            change.switched = true;
            change.confirmed.clear();
            effects.push(Effect::Command(KeyCommand::SealWith(name)));
            effects.push(Effect::Told(Stage::Switched(name)));
        }
    }

    /// This node's file and seal are as commanded. Returns the confirmation, if it is due.
    pub(crate) fn kept(&mut self, name: KeyName, sealing: bool) -> Option<KeyStep> {
        let change = self.table.as_ref()?.change.as_ref()?;
        if !change.is(name) || change.switched != sealing || change.confirmed.contains(&self.me) {
            return None;
        }
        let step = if sealing { KeyStep::Sealing(name) } else { KeyStep::Stored(name) };
        if self.said.as_ref() == Some(&step) {
            return None;
        }
        self.said = Some(step.clone());
        Some(step)
    }

    /// Begins a change.
    pub(crate) fn offer(&self, key: OfferedKey) -> Result<KeyStep, KeyError> {
        let table = self.table.as_ref().ok_or(KeyError::NotSealed)?;
        match &table.change {
            Some(change) => Err(KeyError::UnderWay(change.key.name.number)),
            None if key.name.number == table.sealing.number => {
                Err(KeyError::NumberTaken(key.name.number))
            }
            None => Ok(KeyStep::Offer(key)),
        }
    }

    /// Goes on without those that are away.
    pub(crate) fn force(&self) -> Result<KeyStep, KeyError> {
        Ok(KeyStep::Force(self.change()?.key.name))
    }

    /// Gives the change up.
    pub(crate) fn abort(&self) -> Result<KeyStep, KeyError> {
        match self.change()? {
            change if change.switched => Err(KeyError::TooLate(change.key.name.number)),
            change => Ok(KeyStep::Abort(change.key.name)),
        }
    }

    fn change(&self) -> Result<&KeyChange, KeyError> {
        let table = self.table.as_ref().ok_or(KeyError::NotSealed)?;
        table.change.as_ref().ok_or(KeyError::NoChange)
    }

    pub(crate) fn status(&self, nodes: Nodes<'_>) -> Option<KeyStatus> {
        let table = self.table.as_ref()?;
        let change = table.change.as_ref().map(|change| KeyChangeStatus {
            key: change.key.name,
            switched: change.switched,
            forced: change.forced,
            lacking: change.lacking(nodes),
        });
        Some(KeyStatus { sealing: table.sealing, change })
    }
}

/// Questions of the room about a change.
trait Waiting {
    fn is(&self, name: KeyName) -> bool;
    fn lacking(&self, nodes: Nodes<'_>) -> Vec<NodeId>;
}

impl Waiting for KeyChange {
    fn is(&self, name: KeyName) -> bool {
        self.key.name == name
    }

    /// Nodes whose confirmation this stage waits for.
    fn lacking(&self, nodes: Nodes<'_>) -> Vec<NodeId> {
        let waited = if self.forced { nodes.present } else { nodes.all };
        waited.iter().filter(|node| !self.confirmed.contains(node)).copied().collect()
    }
}

fn confirm(change: &mut KeyChange, node: NodeId) {
    if let Err(place) = change.confirmed.binary_search(&node) {
        change.confirmed.insert(place, node);
    }
}
