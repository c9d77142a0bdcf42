//! Other nodes' connections to this one. Most only have to exist; one that speaks asks for a state.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};

use wire::Time;
use wire::limits::MAX_MEMBERS;

use crate::poller::{EventFlags, Poller, Source};
use crate::sockets::Listener;

/// Connections from one address of a node, for each node there. A restarting node may hold two
/// for a moment, and one that fetches states has two more that have not spoken yet.
const MAX_WATCHERS_OF_A_NODE: usize = 4;

/// Connections from addresses of no node: other ways of nodes with several addresses, or strangers.
const MAX_STRANGERS: usize = MAX_MEMBERS;

#[derive(Debug)]
pub(super) struct Watchers {
    /// One for each link.
    listeners: Vec<Listener>,
    /// The addresses of the other nodes, one for each link of each.
    nodes: Vec<IpAddr>,
    kept: BTreeMap<u64, Watcher>,
    next: u64,
}

#[derive(Debug)]
struct Watcher {
    stream: TcpStream,
    from: IpAddr,
}

impl Watchers {
    /// Listens at these addresses, one for each link.
    ///
    /// # Errors
    /// With the address that cannot be had.
    pub fn listen(mine: &[SocketAddr]) -> Result<Watchers, (SocketAddr, io::Error)> {
        let listen = |(link, &address): (usize, &SocketAddr)| {
            Listener::bind(address, Source::Watchers(link)).map_err(|error| (address, error))
        };
        Ok(Watchers {
            listeners: mine.iter().enumerate().map(listen).collect::<Result<_, _>>()?,
            nodes: Vec::new(),
            kept: BTreeMap::new(),
            next: 1,
        })
    }

    /// These are the addresses of nodes from now on.
    pub fn know(&mut self, nodes: impl Iterator<Item = IpAddr>) {
        self.nodes = nodes.map(|address| address.to_canonical()).collect();
    }

    pub fn register(&self, poller: &Poller) -> io::Result<()> {
        self.listeners.iter().try_for_each(|listener| Ok(listener.register(poller)?))
    }

    /// Takes other nodes' connections by this link.
    pub fn accept(&mut self, link: usize, now: Time, poller: &Poller) {
        // Bounded: a peer that connects without end must not keep the loop here.
        for _ in 0..MAX_MEMBERS {
            match self.listeners[link].accept(now, poller) {
                Ok(Some((stream, from))) => self.keep(stream, from.ip().to_canonical(), poller),
                Ok(None) => return,
                Err(_) => {
                    // The process is out of descriptors: a stranger's serves nobody. Nodes that
                    // connect meanwhile are connected by the kernel, which is all they want.
                    self.drop_stranger();
                    return;
                }
            }
        }
    }

    fn keep(&mut self, stream: TcpStream, from: IpAddr, poller: &Poller) {
        self.make_room(from);
        let source = Source::Watcher(self.next);
        if poller.add(&stream, source, EventFlags::IN | EventFlags::RDHUP).is_ok() {
            self.kept.insert(self.next, Watcher { stream, from });
            self.next += 1;
        }
    }

    fn nodes_at(&self, address: IpAddr) -> usize {
        self.nodes.iter().filter(|node| **node == address).count()
    }

    /// The oldest goes when the room of its address is full: a dead host's connection never ends.
    /// All strangers share one room.
    fn make_room(&mut self, from: IpAddr) {
        let nodes = self.nodes_at(from);
        let room = if nodes == 0 { MAX_STRANGERS } else { nodes * MAX_WATCHERS_OF_A_NODE };
        let shares = |watcher: &Watcher| match nodes {
            0 => self.nodes_at(watcher.from) == 0,
            _ => watcher.from == from,
        };
        let numbers = self.kept.iter().filter(|(_, watcher)| shares(watcher));
        let sharing: Vec<u64> = numbers.map(|(number, _)| *number).collect();
        if sharing.len() >= room {
            self.kept.remove(&sharing[0]);
        }
    }

    fn drop_stranger(&mut self) {
        let mut strangers =
            self.kept.iter().filter(|(_, watcher)| self.nodes_at(watcher.from) == 0);
        if let Some(number) = strangers.next().map(|(number, _)| *number) {
            self.kept.remove(&number);
        }
    }

    /// Another's connection has ended, or it has sent something. One that a node has begun to speak
    /// on is returned, and is not watched any more.
    pub fn end(&mut self, number: u64, poller: &Poller) -> Option<TcpStream> {
        let Watcher { stream, from } = self.kept.remove(&number)?;
        let speaks = stream.peek(&mut [0]).is_ok_and(|count| count > 0);
        if !speaks || self.nodes_at(from) == 0 {
            return None;
        }
        poller.remove(&stream);
        Some(stream)
    }

    pub fn next_timeout(&self) -> Time {
        self.listeners.iter().map(Listener::next_timeout).min().unwrap_or(Time::FAR)
    }

    pub fn handle_timeout(&mut self, now: Time, poller: &Poller) {
        self.listeners.iter_mut().for_each(|listener| listener.resume(now, poller));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::Ipv4Addr;

    use socket2::{Domain, Socket, Type};

    use super::*;

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0))
    }

    /// Those of 127.0.0.1, where the other node is 127.0.0.2.
    fn watchers() -> (Watchers, Poller) {
        let mut watchers = Watchers::listen(&[at(1)]).unwrap();
        watchers.know([at(2).ip()].into_iter());
        (watchers, Poller::new().unwrap())
    }

    fn connect(watchers: &mut Watchers, poller: &Poller, from: SocketAddr) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&from.into()).unwrap();
        socket.connect(&watchers.listeners[0].address().unwrap().into()).unwrap();
        let before = watchers.next;
        while watchers.next == before {
            watchers.accept(0, Time::ZERO, poller);
        }
        socket.into()
    }

    fn from(watchers: &Watchers) -> Vec<String> {
        watchers.kept.values().map(|watcher| watcher.from.to_string()).collect()
    }

    #[test]
    fn strangers_never_push_out_a_node() {
        let (mut watchers, poller) = watchers();
        let _node = connect(&mut watchers, &poller, at(2));
        let mut kept = Vec::new();
        for stranger in 0..2 * MAX_STRANGERS {
            kept.push(connect(&mut watchers, &poller, at(3 + (stranger % 2) as u8)));
        }
        let now = from(&watchers);
        assert_eq!(now.len(), 1 + MAX_STRANGERS, "and are limited");
        assert_eq!(now[0], "127.0.0.2");
        for _ in 0..2 * MAX_STRANGERS {
            watchers.drop_stranger();
        }
        assert_eq!(from(&watchers), ["127.0.0.2"], "nor when descriptors run out");
    }

    #[test]
    fn who_speaks_is_taken_out_and_heard_only_if_a_node_does() {
        let (mut watchers, poller) = watchers();
        for (last, heard) in [(2, true), (3, false)] {
            let mut stream = connect(&mut watchers, &poller, at(last));
            let number = watchers.next - 1;
            stream.write_all(b"?").unwrap();
            let mut ready = Vec::new();
            poller.wait(Time::ZERO, Time::FAR, &mut ready).unwrap();
            assert_eq!(watchers.end(number, &poller).is_some(), heard, "127.0.0.{last}");
            assert!(watchers.kept.is_empty());
            let mut ready = Vec::new();
            poller.look(&mut ready).unwrap();
            assert!(ready.is_empty(), "it is not looked at any more");
        }
        let silent = connect(&mut watchers, &poller, at(2));
        drop(silent);
        let mut ready = Vec::new();
        poller.wait(Time::ZERO, Time::FAR, &mut ready).unwrap();
        assert!(watchers.end(watchers.next - 1, &poller).is_none(), "it has ended");
    }

    #[test]
    fn of_one_node_the_newest_connections_are_kept() {
        let (mut watchers, poller) = watchers();
        let kept: Vec<_> = (0..7).map(|_| connect(&mut watchers, &poller, at(2))).collect();
        let numbers: Vec<u64> = watchers.kept.keys().copied().collect();
        assert_eq!((numbers, kept.len()), (vec![4, 5, 6, 7], 7));
    }
}
