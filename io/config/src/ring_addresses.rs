//! A node's addresses on the ring: as they are, or as names of hosts that are looked up.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::Deref;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A node's address on each link. In the file: a string for one link, an array of strings for
/// several; each `ADDRESS:PORT` or `HOST:PORT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingAddresses {
    /// Empty as long as a name was not looked up.
    found: Vec<SocketAddr>,
    /// As they are written, if one of them is a name.
    written: Vec<String>,
}

impl RingAddresses {
    /// How many links there are.
    pub fn links(&self) -> usize {
        self.found.len().max(self.written.len())
    }

    /// One of them is a name, which may have another address later.
    pub fn is_named(&self) -> bool {
        !self.written.is_empty()
    }

    /// Looks the names up. Addresses of the same kind as `like` are taken. It may take some seconds.
    ///
    /// # Errors
    /// A name is not known now; then the addresses are as before.
    pub fn look_up(&mut self, like: Option<SocketAddr>) -> io::Result<()> {
        let one = |text: &String| {
            let found: Vec<SocketAddr> = text.to_socket_addrs()?.collect();
            let fits = |at: &&SocketAddr| like.is_none_or(|like| like.is_ipv4() == at.is_ipv4());
            // Many systems have their own name at a loopback address, too.
            let outside = found.iter().filter(fits).find(|at| !at.ip().is_loopback());
            let first = outside.or_else(|| found.iter().find(fits)).copied();
            first.ok_or_else(|| io::Error::other("it has no address of the kind of this node's"))
        };
        let found: io::Result<Vec<SocketAddr>> = self.written.iter().map(one).collect();
        if self.is_named() {
            self.found = found?;
        }
        Ok(())
    }
}

impl Deref for RingAddresses {
    type Target = [SocketAddr];

    fn deref(&self) -> &[SocketAddr] {
        &self.found
    }
}

impl From<Vec<SocketAddr>> for RingAddresses {
    fn from(found: Vec<SocketAddr>) -> RingAddresses {
        RingAddresses { found, written: Vec::new() }
    }
}

impl fmt::Display for RingAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.written[..] {
            [] => write!(f, "{:?}", self.found),
            written => f.write_str(&written.join(", ")),
        }
    }
}

impl Serialize for RingAddresses {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match (&self.written[..], &self.found[..]) {
            ([only], _) => only.serialize(to),
            ([], [only]) => only.serialize(to),
            ([], found) => found.serialize(to),
            (written, _) => written.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for RingAddresses {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RingAddresses, D::Error> {
        from.deserialize_any(Written)
    }
}

struct Written;

impl Written {
    fn take<E: Error>(written: Vec<String>) -> Result<RingAddresses, E> {
        let found: Option<Vec<SocketAddr>> = written.iter().map(|text| text.parse().ok()).collect();
        match found {
            Some(found) => Ok(found.into()),
            None if written
                .iter()
                .all(|text| text.parse::<SocketAddr>().is_ok() || is_name(text)) =>
            {
                Ok(RingAddresses { found: Vec::new(), written })
            }
            None => Err(E::custom(
                "no address of a ring: write ADDRESS:PORT or HOST:PORT, such as 10.0.0.1:7201",
            )),
        }
    }
}

/// A host's name with a port.
fn is_name(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    // Numbers alone are an address that is wrong.
    let is_number = host.split('.').all(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    !is_number
        && host.len() <= 253
        && host.trim_end_matches('.').split('.').all(label)
        && port.parse::<u16>().is_ok()
}

impl<'de> Visitor<'de> for Written {
    type Value = RingAddresses;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a socket address or HOST:PORT, or an array of them, one for each link")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RingAddresses, E> {
        Written::take(vec![text.to_owned()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<RingAddresses, A::Error> {
        Written::take(Vec::deserialize(SeqAccessDeserializer::new(list))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Listed {
        ring: RingAddresses,
    }

    fn read(ring: &str) -> Result<RingAddresses, toml::de::Error> {
        toml::from_str(&format!("ring = {ring}")).map(|Listed { ring }| ring)
    }

    #[test]
    fn addresses_are_there_at_once_and_names_when_they_are_looked_up() {
        let plain = read("\"10.0.0.1:7201\"").unwrap();
        assert_eq!((plain.links(), plain.is_named()), (1, false));
        assert_eq!(plain[0], "10.0.0.1:7201".parse().unwrap());
        let mut named = read("[\"localhost:7201\", \"127.0.0.2:7201\"]").unwrap();
        assert_eq!((named.links(), named.is_named(), named.len()), (2, true, 0));
        let like = Some("127.0.0.1:1".parse().unwrap());
        named.look_up(like).unwrap();
        let found: Vec<String> = named.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["127.0.0.1:7201", "127.0.0.2:7201"]);
        let text = toml::to_string(&Listed { ring: named }).unwrap();
        assert_eq!(text, "ring = [\"localhost:7201\", \"127.0.0.2:7201\"]\n");
        let mut unknown = read("\"no-such-host.invalid:7201\"").unwrap();
        assert!(unknown.look_up(like).is_err());
        assert_eq!(unknown.len(), 0);
    }

    #[test]
    fn what_is_neither_an_address_nor_a_name_is_refused() {
        let wrong =
            ["10.0.0.1", "10.0.0.256:7201", "host", "host:x", ":7201", "a b:1", "-", "a..b:1"];
        for wrong in wrong.into_iter().chain(["host:70000"]) {
            let error = read(&format!("{wrong:?}")).expect_err(wrong).to_string();
            assert!(error.contains("HOST:PORT"), "{error}");
        }
    }
}
