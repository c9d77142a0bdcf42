//! The things that all callers share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cells::{Name, Path, Scope};
use tls::Server;
use tokio::sync::watch;
use wire::client::Targets;
use wire::{GroupId, NodeId};

use crate::inbound::Tell;

/// Names that are remembered, whoever has asked for them.
const MAX_NAMES: usize = 4_096;

/// A caller shakes hands, and says who it is, within this time.
pub(super) const GREETING: Duration = Duration::from_secs(5);

/// The things that all callers share.
#[derive(Debug)]
pub(crate) struct Inside {
    pub node: NodeId,
    pub cell: Path,
    pub tls: Option<Arc<Server>>,
    /// The nodes at which this door is, the best first.
    pub doors: watch::Receiver<Targets>,
    names: Mutex<BTreeMap<GroupId, Name>>,
    pub tell: Tell,
}

impl Inside {
    pub fn new(
        (node, cell): (NodeId, Path),
        tls: Option<Arc<Server>>,
        doors: watch::Receiver<Targets>,
        tell: Tell,
    ) -> Inside {
        Inside { node, cell, tls, doors, names: Mutex::default(), tell }
    }

    /// Remembers the name of a group of another cell. `None`: it is not the full name of one.
    pub fn bind(&self, text: &str) -> Option<GroupId> {
        let name: Name = text.parse().ok()?;
        let Scope::Cell(path) = &name.scope else { return None };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let group = GroupId::of(text);
        let has_room = names.len() < MAX_NAMES || names.contains_key(&group);
        if !path.is_of_system(&self.cell) || !has_room {
            return None;
        }
        names.insert(group, name);
        Some(group)
    }

    /// The cell and the group that somebody has asked for by this id.
    pub fn name(&self, group: GroupId) -> Option<(Path, String)> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match names.get(&group)? {
            Name { scope: Scope::Cell(path), group } => Some((path.clone(), group.clone())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[test]
    fn full_names_of_the_system_are_known_and_no_others() {
        let (tell, _inbound) = mpsc::channel(1);
        let doors = watch::channel(Targets::default()).1;
        let cell: Path = "line-a.porto".parse().unwrap();
        let inside = Inside::new((NodeId(1), cell.clone()), None, doors, tell);
        let text = "line-a.porto:boards";
        assert_eq!(inside.name(GroupId::of(text)), None, "nobody has asked for it");
        assert_eq!(inside.bind(text), Some(GroupId::of(text)));
        assert_eq!(inside.name(GroupId::of(text)), Some((cell, "boards".into())));
        for other in ["boards", "lisboa:boards", ":", "x.porto:", "A:b"] {
            assert_eq!(inside.bind(other), None, "{other}");
        }
        (0..MAX_NAMES).for_each(|it| _ = inside.bind(&format!("porto:g{it}")));
        assert_eq!(inside.bind("porto:one-more"), None);
        assert!(inside.bind(text).is_some(), "it is known already");
    }
}
