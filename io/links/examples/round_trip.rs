//! Round trips between two threads of links on loopback, beside a bare TCP socket's.
//!
//! ```sh
//! cargo run --release -p steadfast-links --example round_trip
//! ```

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use steadfast_links::{Class, Event, LinkId, Links, Options, Security, Transports};
use tls::issue::Authority;
use tls::{Credentials, Identity};
use wire::NodeId;

const WARM_UP: usize = 2_000;
const ROUNDS: usize = 20_000;
const SIZES: [usize; 2] = [64, 1_024];
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

type Trouble = Box<dyn std::error::Error>;

/// A handle that its own thread has.
type Own = Arc<OnceLock<Links>>;

fn main() -> Result<(), Trouble> {
    println!("{}", machine());
    println!("{ROUNDS} round trips one after the other, in microseconds");
    println!("{:<22} {:>6} {:>8} {:>8}", "over", "bytes", "p50", "p99");
    for size in SIZES {
        report("TCP socket, no links", size, bare(size)?);
        for (name, transports) in [
            ("links: QUIC", Some(Transports::Quic)),
            ("links: TLS over TCP", Some(Transports::Tcp)),
            ("links: bare TCP", None),
        ] {
            report(name, size, linked(size, transports)?);
        }
    }
    Ok(())
}

fn report(name: &str, size: usize, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |percent: usize| took[took.len() * percent / 100].as_secs_f64() * 1e6;
    println!("{name:<22} {size:>6} {:>8.1} {:>8.1}", at(50), at(99));
}

/// The processor, the kernel, and how busy the host is.
fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, name)| name);
    let count = thread::available_parallelism().map_or(0, usize::from);
    let (kernel, load) = (read("/proc/sys/kernel/osrelease"), read("/proc/loadavg"));
    let load = load.split(' ').next().unwrap_or("?");
    format!("{count} x {model}, Linux {}, load {load}", kernel.trim())
}

fn security(number: u32) -> Result<Security, Trouble> {
    static AUTHORITY: OnceLock<(Authority, String)> = OnceLock::new();
    let (authority, pem) = AUTHORITY.get_or_init(|| {
        let (authority, own) = Authority::new("plant").expect("a plain name");
        (authority, own.certificate)
    });
    let issued = authority.issue(&Identity::node("plant", NodeId(number))?, &[])?;
    let [pem, certificate, key] = [pem, &issued.certificate, &issued.key].map(|it| it.as_bytes());
    Ok(Security::new(Credentials::from_pem(pem, certificate, key)?))
}

fn options(number: u32, transports: Option<Transports>) -> Result<Options, Trouble> {
    let security = transports.map(|_| security(number)).transpose()?;
    let insecure = security.is_none();
    let transports = transports.unwrap_or_default();
    Ok(Options { listen: Some(ANY), security, insecure, transports, ..Options::default() })
}

/// One side sends back what comes, the other one sends again. Both do so on their threads.
fn linked(size: usize, transports: Option<Transports>) -> Result<Vec<Duration>, Trouble> {
    let (echo, near) = <(Own, Own)>::default();
    let own = echo.clone();
    let far = Links::start(options(1, transports)?, move |event| {
        if let (Event::Message { link, class, bytes }, Some(links)) = (event, own.get()) {
            links.send(link, class, bytes).expect("one message waits at a time");
        }
    })?;
    let address = far.address().ok_or("it listens")?;
    echo.set(far).map_err(|_| "set once")?;
    let (done, took) = channel();
    let mut pinger = Pinger { own: near.clone(), size, sent: Instant::now(), took: vec![], done };
    let links = Links::start(options(2, transports)?, move |event| pinger.handle(event))?;
    near.set(links.clone()).map_err(|_| "set once")?;
    links.dial(vec![address], None);
    Ok(took.recv_timeout(Duration::from_secs(60))?)
}

struct Pinger {
    own: Own,
    size: usize,
    sent: Instant,
    took: Vec<Duration>,
    done: Sender<Vec<Duration>>,
}

impl Pinger {
    fn handle(&mut self, event: Event) {
        match event {
            Event::Up { link, .. } => self.send(link),
            Event::Message { link, .. } => {
                self.took.push(self.sent.elapsed());
                if self.took.len() < WARM_UP + ROUNDS {
                    self.send(link);
                } else {
                    let _ = self.done.send(self.took.split_off(WARM_UP));
                }
            }
            Event::Down { reason, .. } => eprintln!("the link is down: {reason}"),
        }
    }

    fn send(&mut self, link: LinkId) {
        let message = Bytes::from(vec![7; self.size]);
        self.sent = Instant::now();
        if let Some(links) = self.own.get() {
            links.send(link, Class::Critical, message).expect("one message waits at a time");
        }
    }
}

/// The same with two threads that block on a socket.
fn bare(size: usize) -> Result<Vec<Duration>, Trouble> {
    let listener = TcpListener::bind(ANY)?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    thread::spawn(move || {
        let mut bytes = vec![0; size];
        while far.read_exact(&mut bytes).is_ok() && far.write_all(&bytes).is_ok() {}
    });
    let (mut bytes, mut took) = (vec![7; size], Vec::new());
    for _ in 0..WARM_UP + ROUNDS {
        let sent = Instant::now();
        near.write_all(&bytes)?;
        near.read_exact(&mut bytes)?;
        took.push(sent.elapsed());
    }
    Ok(took.split_off(WARM_UP))
}
