//! The key file of each host, which outlives the lives there, and the key commands to a node.

use engine::KeyCommand;
use seal::ClusterKey;
use wire::keys::{KeyName, OfferedKey};

use super::Fabric;
use crate::draw::Draw;
use crate::process::Process;

fn name(key: &ClusterKey) -> KeyName {
    KeyName { number: key.number(), fingerprint: key.fingerprint().0 }
}

/// A key that follows this one.
pub fn next_key(last: KeyName, draw: &mut Draw) -> OfferedKey {
    let secret = super::sealing::secret(draw);
    let key = ClusterKey::new(last.number % 255 + 1, secret.clone());
    OfferedKey { name: name(&key), secret }
}

impl<P: Process, X> Fabric<P, X> {
    /// The key that seals, by the file of this host. `None`: nothing is sealed.
    pub fn key(&self, node: usize) -> Option<KeyName> {
        Some(name(self.sealing.as_ref()?.files[node].sealing()))
    }

    /// The file and the life that runs do as they are told. Tells what there is to confirm, and
    /// whether it seals.
    pub fn keep_key(&mut self, node: usize, command: KeyCommand) -> Option<(KeyName, bool)> {
        let file = &mut self.sealing.as_mut()?.files[node];
        let seal = &mut self.hosts[node].veil.as_mut()?.seal;
        match command {
            KeyCommand::Store(OfferedKey { name: offered, secret }) => {
                let key = ClusterKey::new(offered.number, secret);
                file.add(key.clone());
                seal.add_key(key);
                Some((offered, false))
            }
            KeyCommand::SealWith(wanted) => {
                let known = file.get(wanted.number).is_some_and(|key| name(key) == wanted);
                assert!(known, "the cluster seals with {wanted:?}, which this node does not have");
                file.seal_with(wanted.number).expect("it is there");
                seal.seal_with(wanted.number).expect("what the file has, the life has");
                Some((wanted, true))
            }
            KeyCommand::Keep(wanted) => {
                if name(file.sealing()) == wanted {
                    file.retire_others();
                    seal.retire_other_keys();
                }
                None
            }
            KeyCommand::Forget(unwanted) => {
                if name(file.sealing()) != unwanted {
                    file.remove(unwanted.number);
                    seal.remove_key(unwanted.number);
                }
                None
            }
        }
    }
}
