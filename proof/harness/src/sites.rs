//! Hosts at several sites on one machine. A site is a network without delay, of hosts that are
//! network namespaces. Between sites all packets go through a thread of ours, which delays them,
//! and loses them where a cable is cut.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::Outcome;
use crate::bail;
use crate::namespaces::{Namespaces, missing};

mod rules;
mod shaper;
mod tun;

pub use rules::site;
use shaper::Shaper;

/// A host of a site: its nodes' from 1 on, that of its callers after them.
pub type Host = usize;

/// A site, counted from 0.
pub type Site = usize;

/// Where hosts find the way out of their site.
const GATEWAY: u8 = 254;

/// Numbers of namespaces are those of sites, times this.
const OF_SITE: usize = 256;

/// The sites. Threads are at home, but within [`Sites::within`].
pub struct Sites {
    /// Ends before the namespaces do.
    shaper: Shaper,
    sizes: Vec<usize>,
    spaces: Namespaces,
}

/// Why this process may not make sites, if so.
pub fn impossible() -> Option<String> {
    let tun = std::path::Path::new("/dev/net/tun");
    let why = missing().or_else(|| (!tun.exists()).then(|| "the device /dev/net/tun".into()))?;
    Some(format!("hosts at several sites need {why}"))
}

impl Sites {
    /// Sites with so many nodes' hosts each, and one for callers. Packets from one to another take
    /// so long.
    pub fn new(sizes: &[usize], delay: Duration) -> Outcome<Sites> {
        if let Some(why) = impossible() {
            bail!("{why}");
        }
        let numbers = sizes
            .iter()
            .enumerate()
            .flat_map(|(site, size)| (0..=size + 1).map(move |host| number(site, host)));
        let spaces = Namespaces::new(numbers)?;
        let ways_out: Vec<_> = (0..sizes.len())
            .map(|site| build(&spaces, site, sizes[site]))
            .collect::<Outcome<_>>()?;
        let shaper = Shaper::start(ways_out, delay)?;
        Ok(Sites { shaper, sizes: sizes.to_vec(), spaces })
    }

    /// The host of a site's callers.
    pub fn callers(&self, site: Site) -> Host {
        self.sizes[site] + 1
    }

    /// Does something on a host: threads and processes started by it run there.
    pub fn within<T>(
        &self,
        (site, host): (Site, Host),
        what: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<T> {
        self.spaces.enter(number(site, host))?;
        let result = what();
        self.spaces.leave()?;
        result
    }

    /// From now on packets between sites take so long.
    pub fn delay(&self, delay: Duration) {
        self.shaper.rules().delay = delay;
    }

    /// Nothing passes between two sites any more, or everything does.
    pub fn cut(&self, a: Site, b: Site, is_cut: bool) {
        let pair = (a.min(b), a.max(b));
        let mut rules = self.shaper.rules();
        match is_cut {
            true => rules.cut.insert(pair),
            false => rules.cut.remove(&pair),
        };
    }

    /// Nothing passes between two hosts any more, or everything does.
    pub fn cut_link(&self, a: Ipv4Addr, b: Ipv4Addr, is_cut: bool) {
        let mut rules = self.shaper.rules();
        match is_cut {
            true => rules.links.insert((a.min(b), a.max(b))),
            false => rules.links.remove(&(a.min(b), a.max(b))),
        };
    }

    /// A host loses its way to other sites, or has it back.
    pub fn part(&self, site: Site, host: Host, is_away: bool) {
        let mut rules = self.shaper.rules();
        match is_away {
            true => rules.away.insert(address(site, host)),
            false => rules.away.remove(&address(site, host)),
        };
    }

    /// All cables are whole.
    pub fn heal(&self) {
        let mut rules = self.shaper.rules();
        rules.cut.clear();
        rules.links.clear();
        rules.away.clear();
    }

    /// Packets that have passed from one host to another, by their addresses.
    pub fn passed(&self) -> Vec<(Ipv4Addr, Ipv4Addr, u64)> {
        let rules = self.shaper.rules();
        rules.passed.iter().map(|((from, to), count)| (*from, *to, *count)).collect()
    }
}

/// The address of a host.
pub fn address(site: Site, host: Host) -> Ipv4Addr {
    // Both are small: a lab has tens of hosts.
    Ipv4Addr::new(10, 78, site as u8 + 1, host as u8)
}

fn number(site: Site, host: Host) -> usize {
    site * OF_SITE + host
}

/// A site's network: a bridge, the cables of its hosts, and the way out, whose file this is.
fn build(spaces: &Namespaces, site: Site, size: usize) -> Outcome<std::fs::File> {
    let hub = number(site, 0);
    let gateway = Ipv4Addr::new(10, 78, site as u8 + 1, GATEWAY);
    let mut commands = format!(
        "link set lo up\n\
         link add name lan type bridge forward_delay 0\n\
         address add {gateway}/24 dev lan\n\
         link set lan up\n"
    );
    for host in 1..=size + 1 {
        let space = spaces.name(number(site, host));
        commands += &format!(
            "link add name h{host} type veth peer name eth0 netns {space}\n\
             link set h{host} master lan up\n"
        );
    }
    spaces.ip(hub, &commands)?;
    for host in 1..=size + 1 {
        let address = address(site, host);
        let commands = format!(
            "link set lo up\n\
             address add {address}/24 dev eth0\n\
             link set eth0 up\n\
             route add default via {gateway}\n"
        );
        spaces.ip(number(site, host), &commands)?;
    }
    spaces.enter(hub)?;
    let way_out = tun::open("out").and_then(|file| {
        // That of the namespace that the thread is in.
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        Ok(file)
    });
    spaces.leave()?;
    spaces.ip(hub, "link set out up txqueuelen 10000\nroute add 10.78.0.0/16 dev out\n")?;
    way_out
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Instant;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[test]
    fn packets_between_sites_take_the_delay_and_are_lost_where_it_is_cut() {
        if let Some(why) = impossible() {
            eprintln!("skipped: {why}");
            return;
        }
        let delay = Duration::from_millis(30);
        let sites = Sites::new(&[1, 1], delay).unwrap();
        let socket = |site: Site| {
            sites.within((site, 1), || {
                let socket = UdpSocket::bind((address(site, 1), 7000))?;
                socket.set_read_timeout(Some(TIMEOUT))?;
                Ok(socket)
            })
        };
        let (here, there) = (socket(0).unwrap(), socket(1).unwrap());
        let mut word = [0; 1];
        let start = Instant::now();
        here.send_to(b"1", there.local_addr().unwrap()).unwrap();
        there.recv(&mut word).unwrap();
        assert!(word == *b"1" && start.elapsed() >= delay, "{:?}", start.elapsed());
        sites.cut(1, 0, true);
        here.send_to(b"2", there.local_addr().unwrap()).unwrap();
        there.set_read_timeout(Some(delay * 3)).unwrap();
        assert!(there.recv(&mut word).is_err(), "the cable is cut");
        sites.heal();
        here.send_to(b"3", there.local_addr().unwrap()).unwrap();
        there.set_read_timeout(Some(TIMEOUT)).unwrap();
        there.recv(&mut word).unwrap();
        assert_eq!(word, *b"3");
        assert_eq!(sites.passed(), [(address(0, 1), address(1, 1), 2)]);
    }
}
