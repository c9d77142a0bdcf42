//! The nodes' key files.

use steadfast_engine::KeyCommand;
use wire::keys::KeyName;

/// A node's key file, and what it still has to write there.
pub struct Vault {
    /// The last seals.
    pub keys: Vec<KeyName>,
    /// The disk takes its time.
    pub held: bool,
    pub waiting: Vec<KeyCommand>,
}

/// The key of this number that the tests use.
pub fn key_name(number: u8) -> KeyName {
    KeyName { number, fingerprint: [number; 8] }
}

impl Default for Vault {
    fn default() -> Self {
        Vault { keys: vec![key_name(1)], held: false, waiting: Vec::new() }
    }
}

impl Vault {
    /// Loses the keys that were not written.
    pub fn crash(&mut self) {
        self.held = false;
        self.waiting.clear();
    }

    pub fn sealing(&self) -> KeyName {
        *self.keys.last().expect("a vault is never empty")
    }

    /// Does it, and says what to tell the stack.
    pub fn carry_out(&mut self, command: KeyCommand) -> Option<(KeyName, bool)> {
        match command {
            KeyCommand::Store(key) => {
                assert_eq!(key.secret.expose(), &[key.name.number; 32], "the key itself travels");
                if !self.keys.contains(&key.name) {
                    self.keys.insert(self.keys.len() - 1, key.name);
                }
                Some((key.name, false))
            }
            KeyCommand::SealWith(name) => {
                let place = self.keys.iter().position(|key| *key == name)?;
                let key = self.keys.remove(place);
                self.keys.push(key);
                Some((name, true))
            }
            KeyCommand::Keep(name) => {
                self.keys.retain(|key| *key == name);
                None
            }
            KeyCommand::Forget(name) => {
                self.keys.retain(|key| *key != name);
                None
            }
        }
    }
}
