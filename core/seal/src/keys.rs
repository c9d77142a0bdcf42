//! The cluster keys that a node has, and the file that keeps them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use base64ct::{Base64UrlUnpadded, Encoding};
use wire::Secret;
use zeroize::{Zeroize, Zeroizing};

use crate::derive::ClusterKey;

/// Keys that a file may hold. A key change needs two.
pub const MAX_KEYS: usize = 8;

/// The cluster keys of a node. Datagrams sealed with any of them are opened; the last seals.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Never empty.
    keys: Vec<ClusterKey>,
}

/// A key number that is not among a node's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no key {0} here")]
pub struct NoSuchKey(pub u8);

/// A key file that cannot be used. The key's own digits are never part of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// Not a line of the format.
    #[error(
        "line {line}: write `key NUMBER DIGITS`: a number from 1 to 255 and 43 digits of base64url \
         (32 random bytes), or a comment behind #"
    )]
    Line {
        /// Which line.
        line: usize,
    },
    /// Two keys with one number.
    #[error("line {line}: key {number} stands here twice: give each key its own number")]
    Twice {
        /// Which line.
        line: usize,
        /// The number.
        number: u8,
    },
    /// No key at all.
    #[error("holds no key: `steadfast init` makes one, or `steadfast key new`")]
    Empty,
    /// More keys than any change of keys needs.
    #[error("holds more than {MAX_KEYS} keys: remove those that no node seals with any more")]
    TooMany,
}

impl Keys {
    /// One key alone.
    pub fn single(key: ClusterKey) -> Keys {
        Keys { keys: [key].into() }
    }

    /// The key that seals.
    pub fn sealing(&self) -> &ClusterKey {
        self.keys.last().expect("a node has at least one key")
    }

    /// The key of this number.
    pub fn get(&self, number: u8) -> Option<&ClusterKey> {
        self.keys.iter().find(|key| key.number() == number)
    }

    /// All, the one that seals last.
    pub fn iter(&self) -> impl Iterator<Item = &ClusterKey> + '_ {
        self.keys.iter()
    }

    /// Adds a key that opens, and does not seal yet. It takes the place of another of its number;
    /// when there is no room the oldest that does not seal goes.
    ///
    /// # Panics
    /// If the key that seals has this number and is another one.
    pub fn add(&mut self, key: ClusterKey) {
        if self.sealing().number() == key.number() {
            assert_eq!(self.sealing().secret(), key.secret(), "the key that seals is kept");
            return;
        }
        self.keys.retain(|known| known.number() != key.number());
        if self.keys.len() == MAX_KEYS {
            self.keys.remove(0);
        }
        self.keys.insert(self.keys.len() - 1, key);
    }

    /// Seals with this key from now on.
    ///
    /// # Errors
    /// It is not here.
    pub fn seal_with(&mut self, number: u8) -> Result<(), NoSuchKey> {
        let place = self.keys.iter().position(|key| key.number() == number);
        let key = self.keys.remove(place.ok_or(NoSuchKey(number))?);
        self.keys.push(key);
        Ok(())
    }

    /// Forgets every key but the one that seals.
    pub fn retire_others(&mut self) {
        self.keys.drain(..self.keys.len() - 1);
    }

    /// Forgets a key that does not seal.
    pub fn remove(&mut self, number: u8) {
        let last = self.keys.len() - 1;
        let mut place = 0;
        self.keys.retain(|key| {
            place += 1;
            place > last || key.number() != number
        });
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// The faulty line and its error, with the remedy.
    pub fn parse(text: &str) -> Result<Keys, KeyFileError> {
        let mut keys: Vec<ClusterKey> = Vec::new();
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let key = parse_line(text).ok_or(KeyFileError::Line { line })?;
            let number = key.number();
            if keys.iter().any(|known| known.number() == number) {
                return Err(KeyFileError::Twice { line, number });
            }
            if keys.len() == MAX_KEYS {
                return Err(KeyFileError::TooMany);
            }
            keys.push(key);
        }
        if keys.is_empty() { Err(KeyFileError::Empty) } else { Ok(Keys { keys }) }
    }

    /// The file's text, wiped when it is dropped.
    pub fn print(&self) -> Zeroizing<String> {
        // All room at once: a text that grows leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(256 + 64 * self.keys.len()));
        text.push_str(
            "# Cluster keys: whoever has the last one is a node of this cluster. Mode 0600.\n\
             # The last key seals, all open. `steadfast key rotate` changes it while all goes on.\n",
        );
        for key in &self.keys {
            let digits = Zeroizing::new(Base64UrlUnpadded::encode_string(key.secret().expose()));
            // Writing to a string cannot fail.
            let _ = writeln!(*text, "key {} {}", key.number(), *digits);
        }
        text
    }
}

fn parse_line(text: &str) -> Option<ClusterKey> {
    let mut words = text.split_whitespace();
    let ("key", number, digits, None) = (words.next()?, words.next()?, words.next()?, words.next())
    else {
        return None;
    };
    let number = number.parse().ok().filter(|&number: &u8| number > 0)?;
    let mut bytes = [0; Secret::LENGTH];
    let length = Base64UrlUnpadded::decode(digits, &mut bytes).ok()?.len();
    let secret = Secret::new(bytes);
    bytes.zeroize();
    (length == Secret::LENGTH).then(|| ClusterKey::new(number, secret))
}
