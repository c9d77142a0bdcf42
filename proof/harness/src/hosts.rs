//! Hosts on one machine: each a network namespace, joined by bridges in one more, which can be cut.
//!
//! Nothing outside these namespaces is touched.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};

use crate::namespaces::{self, Namespaces, run, runs};
use crate::{Outcome, bail};

/// A place on the network: the nodes' hosts from 1 on, the clients' host after them.
pub type Place = usize;

/// Which datagrams of a host's link are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The cable is cut.
    Both,
    /// Datagrams to it are lost: it is deaf.
    In,
    /// Datagrams from it are lost: it is mute.
    Out,
}

/// A fault of one host's link.
#[derive(Clone, Copy, Debug)]
struct Fault {
    place: Place,
    link: usize,
    way: Way,
    /// Lost datagrams in 1,000.
    permille: u32,
}

/// The number of the namespace with the bridges.
const SWITCH: usize = 0;

/// Namespaces of so many hosts. While it lives, the thread that made it, and those that this one
/// starts, are on the clients' host.
pub struct Hosts {
    nodes: usize,
    /// The nodes' links; clients come by one more.
    links: usize,
    faults: Vec<Fault>,
    spaces: Namespaces,
}

/// Why this process may not make hosts, if so.
pub fn missing() -> Option<String> {
    if !runs("nft", "--version") {
        return Some("the program `nft` (package nftables)".into());
    }
    namespaces::missing()
}

impl Hosts {
    /// So many nodes' hosts, each with so many links, and one for clients.
    pub fn new(nodes: usize, links: usize) -> Outcome<Hosts> {
        if let Some(missing) = missing() {
            bail!("hosts in network namespaces need {missing}");
        }
        let spaces = Namespaces::new(SWITCH..=nodes + 1)?;
        let hosts = Hosts { nodes, links, faults: Vec::new(), spaces };
        for place in SWITCH..=nodes + 1 {
            run("ip", &["-n", &hosts.name(place), "link", "set", "lo", "up"])?;
        }
        for link in 0..=links {
            let bridge = format!("br{link}");
            let kind = ["type", "bridge", "forward_delay", "0"];
            hosts.switch(&[&["link", "add", "name", &bridge], &kind[..]].concat())?;
            hosts.switch(&["link", "set", &bridge, "up"])?;
            for place in 1..=nodes {
                hosts.plug(place, link)?;
            }
        }
        hosts.plug(hosts.clients(), links)?;
        hosts.spaces.enter(hosts.clients())?;
        Ok(hosts)
    }

    /// A command of `ip` in the namespace of the bridges.
    fn switch(&self, arguments: &[&str]) -> Outcome<()> {
        run("ip", &[&["-n", &self.name(SWITCH)], arguments].concat())
    }

    /// A cable from a host to the link's bridge.
    fn plug(&self, place: Place, link: usize) -> Outcome<()> {
        let (host, port, wire) = (self.name(place), port(place, link), format!("eth{link}"));
        let far = ["type", "veth", "peer", "name", &wire, "netns", &host];
        self.switch(&[&["link", "add", "name", &port], &far[..]].concat())?;
        self.switch(&["link", "set", &port, "master", &format!("br{link}"), "up"])?;
        let address = format!("{}/24", self.address(place, link));
        run("ip", &["-n", &host, "address", "add", &address, "dev", &wire])?;
        run("ip", &["-n", &host, "link", "set", &wire, "up"])
    }

    fn name(&self, place: Place) -> String {
        self.spaces.name(place)
    }

    /// The place of the clients.
    pub fn clients(&self) -> Place {
        self.nodes + 1
    }

    /// The number of the link by which clients come.
    pub fn clients_link(&self) -> usize {
        self.links
    }

    /// The address of a host on a link.
    pub fn address(&self, place: Place, link: usize) -> IpAddr {
        // Both are small: a lab has tens of hosts.
        Ipv4Addr::new(10, 77, link as u8, place as u8).into()
    }

    /// Does something on a host: processes started by it run there.
    pub fn within<T>(&self, place: Place, what: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        self.spaces.enter(place)?;
        let result = what();
        self.spaces.enter(self.clients())?;
        result
    }

    /// From now on, of 1,000 datagrams of a host's link so many are lost.
    pub fn lose(&mut self, place: Place, link: usize, way: Way, permille: u32) -> Outcome<()> {
        self.faults.push(Fault { place, link, way, permille });
        self.apply()
    }

    /// Cuts all links of a host, its clients' too: as if its power were gone, or its switch.
    pub fn isolate(&mut self, place: Place, way: Way) -> Outcome<()> {
        for link in 0..=self.links {
            self.faults.push(Fault { place, link, way, permille: 1_000 });
        }
        self.apply()
    }

    /// All is well again.
    pub fn heal(&mut self) -> Outcome<()> {
        self.faults.clear();
        self.apply()
    }

    /// Makes the bridges' rules those of the faults, in one step.
    fn apply(&self) -> Outcome<()> {
        let mut rules = String::from(
            "table bridge faults {\n}\ndelete table bridge faults\ntable bridge faults {\n\
             chain forward {\ntype filter hook forward priority 0;\n",
        );
        for Fault { place, link, way, permille } in &self.faults {
            let port = port(*place, *link);
            let chance = match permille {
                1_000.. => String::new(),
                _ => format!("numgen random mod 1000 < {permille} "),
            };
            // Writing to a string cannot fail.
            if *way != Way::In {
                let _ = writeln!(rules, "iifname \"{port}\" {chance}drop");
            }
            if *way != Way::Out {
                let _ = writeln!(rules, "oifname \"{port}\" {chance}drop");
            }
        }
        rules.push_str("}\n}\n");
        let switch = self.name(SWITCH);
        let mut nft = Command::new("ip")
            .args(["netns", "exec", &switch, "nft", "-f", "-"])
            .stdin(Stdio::piped())
            .spawn()?;
        nft.stdin.take().ok_or("no pipe to nft")?.write_all(rules.as_bytes())?;
        match nft.wait()?.success() {
            true => Ok(()),
            false => Err(format!("nft does not take these rules:\n{rules}").into()),
        }
    }
}

fn port(place: Place, link: usize) -> String {
    format!("p{place}l{link}")
}
