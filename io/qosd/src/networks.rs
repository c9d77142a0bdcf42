//! Classes of the host's network interfaces: at each of them the packets of a reserve have a rate
//! (HTB, by the program `tc`).
//!
//! ```text
//! qdisc 5fd: at the root of the interface
//!   class 5fd:1          95 % of its rate: packets wait here, and not in the card
//!     class 5fd:2        all other packets: what is left
//!     class 5fd:N        a reserve: its rate, and what is left before the others
//! filters N, N + 0x8000  packets of its ports, of IPv4 and IPv6
//! ```
//!
//! The classes stay when the daemon ends. The next one finds them, and removes those that nobody
//! has asked for after some seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

use qos::host::Traffic;
use wire::fnv1a;

/// The handle of this daemon's qdisc, in hexadecimal digits.
const HANDLE: &str = "5fd";

/// The numbers of reserves' classes.
const FIRST: u16 = 0x10;
const AFTER: u16 = 0x8000;

/// Numbers of protocols.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// How long `tc` may take. It takes some milliseconds; a request waits for it.
const TC_WITHIN: &str = "2";

/// Bytes that a class may send in its turn: ten packets of the usual size.
const QUANTUM: u32 = 15_000;

const NONE: &str = "the daemon shares out no interface: start it with --network eth0=1000, the megabits a second of the \
    interface";

/// The interfaces that the daemon shares out.
#[derive(Debug, Default)]
pub struct Networks {
    /// Each with the bytes a second that it can send.
    interfaces: BTreeMap<String, u64>,
    /// The number of each reserve's class.
    classes: BTreeMap<String, u16>,
    /// Classes that an earlier daemon has left, and nobody has asked for.
    unclaimed: BTreeSet<u16>,
    /// Interfaces that were to be shared out, and cannot be: the reasons, with remedies.
    refused: Vec<String>,
}

impl Networks {
    /// Shares out these interfaces, each with the bytes a second that it can send.
    pub fn open(interfaces: BTreeMap<String, u64>) -> Networks {
        let mut networks = Networks::default();
        for (interface, rate) in interfaces {
            match take(&interface, rate) {
                Ok(left) => {
                    networks.unclaimed.extend(left);
                    networks.interfaces.insert(interface, rate);
                }
                Err(why) => networks.refused.push(format!("{interface}: {why}")),
            }
        }
        networks
    }

    /// The interfaces that are shared out, each with the bytes a second that it can send.
    pub fn interfaces(&self) -> &BTreeMap<String, u64> {
        &self.interfaces
    }

    /// Why others, which were to be, are not: the reasons, with remedies.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Makes or changes the classes of a reserve. What is not in force is listed.
    pub fn apply(&mut self, path: &str, traffic: &Traffic) -> Vec<String> {
        if traffic.rate == 0 {
            return Vec::new();
        }
        let mut degraded: Vec<String> =
            self.refused.iter().map(|why| format!("network: {why}")).collect();
        if self.interfaces.is_empty() {
            if degraded.is_empty() {
                degraded.push(format!("network: {NONE}"));
            }
            return degraded;
        }
        let number = self.claim(path);
        // An earlier daemon may have left some.
        let _ = tc(&["-force", "-batch", "-"], Some(&self.each(|it| unfilter(it, number))));
        let made = self.interfaces.iter().map(|(it, rate)| class((it, *rate), number, traffic));
        let failed = tc(&["-batch", "-"], Some(&made.collect::<String>())).err();
        degraded.extend(failed.map(|why| format!("network: {why}")));
        degraded
    }

    /// Removes the classes of a reserve.
    pub fn remove(&mut self, path: &str) {
        if let Some(number) = self.classes.remove(path) {
            self.remove_class(number);
        }
    }

    /// Removes classes of an earlier daemon that nobody has asked for.
    pub fn sweep(&mut self) {
        for number in std::mem::take(&mut self.unclaimed) {
            self.remove_class(number);
        }
    }

    fn remove_class(&self, number: u16) {
        // The interface may be gone.
        let lines = self.each(|it| {
            unfilter(it, number) + &format!("class del dev {it} classid {HANDLE}:{number:x}\n")
        });
        let _ = tc(&["-force", "-batch", "-"], Some(&lines));
    }

    fn each(&self, lines: impl Fn(&str) -> String) -> String {
        self.interfaces.keys().map(|interface| lines(interface)).collect()
    }

    /// The number of a reserve's class: the same as an earlier daemon's, unless two paths have the
    /// same and come in another order.
    fn claim(&mut self, path: &str) -> u16 {
        if let Some(number) = self.classes.get(path) {
            return *number;
        }
        let room = u64::from(AFTER - FIRST);
        let mut number = FIRST + u16::try_from(fnv1a(path.as_bytes()) % room).unwrap_or(0);
        // There are fewer reserves than numbers.
        while self.classes.values().any(|taken| *taken == number) {
            number = if number + 1 == AFTER { FIRST } else { number + 1 };
        }
        self.unclaimed.remove(&number);
        self.classes.insert(path.into(), number);
        number
    }
}

/// Has an interface queue by classes. Returns those that an earlier daemon has left there.
fn take(interface: &str, rate: u64) -> Result<Vec<u16>, String> {
    let shown = tc(&["qdisc", "show", "dev", interface, "root"], None)?;
    let is_ours = match root(&shown) {
        Root::Ours => true,
        Root::Default => false,
        Root::Other(what) => {
            return Err(format!(
                "it has queues of its own ({what}): remove them (tc qdisc del dev {interface} root), \
                 or do not name the interface"
            ));
        }
    };
    tc(&["-batch", "-"], Some(&setup(interface, rate, is_ours)))?;
    Ok(classes(&tc(&["class", "show", "dev", interface], None)?))
}

/// The queues of an interface.
#[derive(Debug, PartialEq, Eq)]
enum Root {
    /// Those that the system gives to each.
    Default,
    /// Those of this daemon.
    Ours,
    /// Somebody else's.
    Other(String),
}

/// Reads the words of `tc qdisc show dev IF root`: `qdisc htb 5fd: root refcnt 2 ...`.
fn root(shown: &str) -> Root {
    for line in shown.lines().filter(|line| line.contains(" root ")) {
        let mut words = line.split(' ').skip(1);
        let (kind, handle) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match handle.trim_end_matches(':') {
            "0" => {}
            HANDLE if kind == "htb" => return Root::Ours,
            _ => return Root::Other(format!("{kind} {handle}")),
        }
    }
    Root::Default
}

/// The reserves' classes of what `tc class show dev IF` tells: `class htb 5fd:1a2 parent ...`.
fn classes(shown: &str) -> Vec<u16> {
    let number = |line: &str| {
        let id = line.strip_prefix("class htb ")?.split(' ').next()?;
        let number = u16::from_str_radix(id.strip_prefix(HANDLE)?.strip_prefix(':')?, 16).ok()?;
        (FIRST..AFTER).contains(&number).then_some(number)
    };
    shown.lines().filter_map(number).collect()
}

/// The queue of an interface, and the class of those without a reserve. `tc` calls bytes a second
/// `bps`.
fn setup(interface: &str, rate: u64, is_there: bool) -> String {
    let mut lines = String::new();
    if !is_there {
        let root = format!("root handle {HANDLE}: htb default 2");
        lines += &format!("qdisc replace dev {interface} {root}\n");
    }
    let all = all(rate);
    let class = |id: u16, parent: &str, least: u64, order: u8| {
        format!(
            "class replace dev {interface} parent {HANDLE}:{parent} classid {HANDLE}:{id:x} htb \
             rate {least}bps ceil {all}bps prio {order} quantum {QUANTUM}\n"
        )
    };
    lines + &class(1, "", all, 0) + &class(2, "1", (rate / 20).max(1), 7)
}

/// Bytes a second that an interface is given: less than it can send, so that packets wait in their
/// classes.
fn all(rate: u64) -> u64 {
    rate / 100 * 95
}

/// A reserve's class and filters.
fn class((interface, rate): (&str, u64), number: u16, traffic: &Traffic) -> String {
    let all = all(rate);
    let mut lines = format!(
        "class replace dev {interface} parent {HANDLE}:1 classid {HANDLE}:{number:x} htb rate {}bps \
         ceil {all}bps prio 0 quantum {QUANTUM}\n",
        traffic.rate
    );
    for port in &traffic.ports {
        for (protocol, selector, order) in [("ip", "ip", number), ("ipv6", "ip6", number + AFTER)] {
            for (transport, end) in [(UDP, "sport"), (UDP, "dport"), (TCP, "sport"), (TCP, "dport")]
            {
                lines += &format!(
                    "filter add dev {interface} parent {HANDLE}: protocol {protocol} prio {order} \
                     u32 match {selector} protocol {transport} 0xff match {selector} {end} {port} \
                     0xffff flowid {HANDLE}:{number:x}\n"
                );
            }
        }
    }
    lines
}

fn unfilter(interface: &str, number: u16) -> String {
    let line = |protocol, order| {
        format!("filter del dev {interface} parent {HANDLE}: protocol {protocol} prio {order}\n")
    };
    line("ip", number) + &line("ipv6", number + AFTER)
}

/// Runs `tc`, with these lines as its input; what it prints.
fn tc(arguments: &[&str], lines: Option<&str>) -> Result<String, String> {
    let failed = |error: std::io::Error| {
        format!("the program timeout cannot be run ({error}): install the package coreutils")
    };
    let mut child = Command::new("timeout")
        .args(["--kill-after=1", TC_WITHIN, "tc"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let (Some(mut input), Some(lines)) = (child.stdin.take(), lines) {
        // If it has ended, it says why.
        let _ = input.write_all(lines.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.lines().find(|line| !line.starts_with("Warning")).unwrap_or_default();
    Err(match output.status.code() {
        Some(124) => format!("tc has not ended in {TC_WITHIN} s: the kernel's network is held up"),
        Some(126 | 127) => format!("tc cannot be run ({why}): install the package iproute2"),
        _ if why.contains("not permitted") => {
            format!("tc says: {why}; run the daemon with CAP_NET_ADMIN")
        }
        _ => format!("tc says: {why}"),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_interface_has_a_class_for_each_reserve_and_one_for_all_others() {
        let traffic = Traffic { rate: 1_000, ports: vec![7_201] };
        expect![[r#"
            qdisc replace dev eth0 root handle 5fd: htb default 2
            class replace dev eth0 parent 5fd: classid 5fd:1 htb rate 95000bps ceil 95000bps prio 0 quantum 15000
            class replace dev eth0 parent 5fd:1 classid 5fd:2 htb rate 5000bps ceil 95000bps prio 7 quantum 15000
            class replace dev eth0 parent 5fd:1 classid 5fd:1a htb rate 1000bps ceil 95000bps prio 0 quantum 15000
            filter add dev eth0 parent 5fd: protocol ip prio 26 u32 match ip protocol 17 0xff match ip sport 7201 0xffff flowid 5fd:1a
            filter add dev eth0 parent 5fd: protocol ip prio 26 u32 match ip protocol 17 0xff match ip dport 7201 0xffff flowid 5fd:1a
            filter add dev eth0 parent 5fd: protocol ip prio 26 u32 match ip protocol 6 0xff match ip sport 7201 0xffff flowid 5fd:1a
            filter add dev eth0 parent 5fd: protocol ip prio 26 u32 match ip protocol 6 0xff match ip dport 7201 0xffff flowid 5fd:1a
            filter add dev eth0 parent 5fd: protocol ipv6 prio 32794 u32 match ip6 protocol 17 0xff match ip6 sport 7201 0xffff flowid 5fd:1a
            filter add dev eth0 parent 5fd: protocol ipv6 prio 32794 u32 match ip6 protocol 17 0xff match ip6 dport 7201 0xffff flowid 5fd:1a
            filter add dev eth0 parent 5fd: protocol ipv6 prio 32794 u32 match ip6 protocol 6 0xff match ip6 sport 7201 0xffff flowid 5fd:1a
            filter add dev eth0 parent 5fd: protocol ipv6 prio 32794 u32 match ip6 protocol 6 0xff match ip6 dport 7201 0xffff flowid 5fd:1a
        "#]]
        .assert_eq(&(setup("eth0", 100_000, false) + &class(("eth0", 100_000), 0x1a, &traffic)));
    }

    #[test]
    fn somebody_elses_queues_are_left_alone_and_an_earlier_daemons_are_kept() {
        let of = |kind: &str| root(&format!("qdisc {kind} root refcnt 2 limit 10240p\n"));
        assert_eq!(of("fq_codel 0:"), Root::Default);
        assert_eq!(of("htb 5fd:"), Root::Ours);
        assert_eq!(of("htb 1:"), Root::Other("htb 1:".into()));
        let shown = "class htb 5fd:1 root rate 1Gbit\nclass htb 5fd:1a parent 5fd:1 prio 0 rate 8Kbit\n\
                     class htb 5fd:2 parent 5fd:1 prio 7 rate 8Kbit\n";
        assert_eq!(classes(shown), [0x1a]);
    }

    #[test]
    fn a_path_has_the_same_class_at_the_next_daemon() {
        let (mut one, mut next) = (Networks::default(), Networks::default());
        let numbers = ["n1/plane", "n2/plane"].map(|path| one.claim(path));
        next.unclaimed = BTreeSet::from(numbers);
        assert_eq!(next.claim("n2/plane"), numbers[1]);
        assert_eq!(next.unclaimed, BTreeSet::from([numbers[0]]));
        assert_ne!(numbers[0], numbers[1]);
        assert_eq!(next.claim("n2/plane"), numbers[1]);
    }

    #[test]
    fn without_an_interface_a_rate_is_not_in_force() {
        let traffic = Traffic { rate: 1, ports: vec![1] };
        let degraded = Networks::default().apply("n1/plane", &traffic);
        assert!(degraded[0].contains("--network"), "{degraded:?}");
        assert!(Networks::default().apply("n1/plane", &Traffic::default()).is_empty());
    }
}
