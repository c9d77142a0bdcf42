//! Waiting datagrams in the ring's sockets, by the kernel's tables.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;

use steadfast::NodeId;

/// For each node the most bytes that waited in one of its sockets, and the datagrams that they had
/// no room for.
#[derive(Default)]
pub struct Waiting(BTreeMap<NodeId, (u64, u64)>);

impl Waiting {
    /// Looks at the sockets that this node has at its address of the ring.
    pub fn look(&mut self, node: NodeId, process: u32, ring: SocketAddr) {
        // The table of the process's network namespace. A process that has just ended has none.
        let table = fs::read_to_string(format!("/proc/{process}/net/udp")).unwrap_or_default();
        let mut dropped = 0;
        let most = self.0.entry(node).or_default();
        for (port, waits, lost) in table.lines().skip(1).filter_map(socket) {
            if port == ring.port() {
                most.0 = most.0.max(waits);
                dropped += lost;
            }
        }
        most.1 = most.1.max(dropped);
    }

    /// The most bytes in one socket, and all that were dropped.
    pub fn of(&self, node: NodeId) -> (u64, u64) {
        self.0.get(&node).copied().unwrap_or_default()
    }
}

/// One line of the kernel's table: local port, bytes that wait to be read, datagrams dropped.
fn socket(line: &str) -> Option<(u16, u64, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, port) = fields.get(1)?.split_once(':')?;
    let (_, waits) = fields.get(4)?.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((port, u64::from_str_radix(waits, 16).ok()?, fields.last()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernels_table_is_read() {
        let line = "  402: 0100007F:1C21 0100007F:1C22 01 00000000:0001E240 00:00000000 00000000  \
                0        0 77 2 ffff 12";
        assert_eq!(socket(line), Some((0x1c21, 123_456, 12)));
        assert_eq!(socket("nothing"), None);
    }
}
