//! Hosts on one machine: each a network namespace, joined by bridges in one more, which can be cut.
//!
//! Nothing outside these namespaces is touched, and they are gone when the process is, however it
//! ended: a child that outlives it takes them away.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

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

/// Namespaces of so many hosts. While it lives, the thread that made it, and those that this one
/// starts, are on the clients' host.
pub struct Hosts {
    prefix: String,
    nodes: usize,
    /// The nodes' links; clients come by one more.
    links: usize,
    faults: Vec<Fault>,
    home: File,
    /// Waits for the end of its input, then takes the namespaces away.
    sweeper: Child,
}

/// Why this process may not make hosts, if so.
pub fn missing() -> Option<String> {
    let runs = |program: &str, argument: &str| {
        let quiet = Command::new(program)
            .arg(argument)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        quiet.is_ok_and(|status| status.success())
    };
    if !runs("ip", "-V") {
        return Some("the program `ip` (package iproute2)".into());
    }
    if !runs("nft", "--version") {
        return Some("the program `nft` (package nftables)".into());
    }
    let probe = format!("sft{}", process::id());
    let made = run("ip", &["netns", "add", &probe]);
    let bridge = made.and_then(|()| {
        run("ip", &["-n", &probe, "link", "add", "name", "probe", "type", "bridge"])
    });
    // If it was not made, there is nothing to take away.
    let _ = run("ip", &["netns", "del", &probe]);
    bridge.err().map(|error| format!("root, or CAP_NET_ADMIN and CAP_SYS_ADMIN ({error})"))
}

fn run(program: &str, arguments: &[&str]) -> Outcome<()> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{program} {}: {why}", arguments.join(" ")).into())
}

impl Hosts {
    /// So many nodes' hosts, each with so many links, and one for clients.
    pub fn new(nodes: usize, links: usize) -> Outcome<Hosts> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        if let Some(missing) = missing() {
            bail!("hosts in network namespaces need {missing}");
        }
        let prefix = format!("sf{}x{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let mut names = vec![format!("{prefix}-switch")];
        names.extend((1..=nodes + 1).map(|place| format!("{prefix}-{place}")));
        // In a process group of its own: an interrupt from the keyboard must not end it.
        let sweeper = Command::new("sh")
            .args([
                "-c",
                "cat >/dev/null; for n in \"$@\"; do ip netns del \"$n\"; done",
                "sweeper",
            ])
            .args(&names)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let home = File::open("/proc/thread-self/ns/net")?;
        let hosts = Hosts { prefix, nodes, links, faults: Vec::new(), home, sweeper };
        for name in &names {
            run("ip", &["netns", "add", name])?;
            run("ip", &["-n", name, "link", "set", "lo", "up"])?;
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
        hosts.enter(hosts.clients())?;
        Ok(hosts)
    }

    /// A command of `ip` in the namespace of the bridges.
    fn switch(&self, arguments: &[&str]) -> Outcome<()> {
        let name = format!("{}-switch", self.prefix);
        run("ip", &[&["-n", &name], arguments].concat())
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
        format!("{}-{place}", self.prefix)
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

    fn enter(&self, place: Place) -> Outcome<()> {
        let file = File::open(format!("/run/netns/{}", self.name(place)))?;
        Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Does something on a host: processes started by it run there.
    pub fn within<T>(&self, place: Place, what: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        self.enter(place)?;
        let result = what();
        self.enter(self.clients())?;
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
        let switch = format!("{}-switch", self.prefix);
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

impl Drop for Hosts {
    fn drop(&mut self) {
        // If this fails the thread stays in a namespace that nobody else uses.
        let _ = move_into_link_name_space(self.home.as_fd(), Some(LinkNameSpaceType::Network));
        drop(self.sweeper.stdin.take());
        let _ = self.sweeper.wait();
    }
}
