//! Systems of cells: real nodes, each with the process beside it that has its links.

mod daemon;
mod initiated;

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use admin::cell::CellStatus;
use cells::{Cell, Command, Picture};
use client::{CallError, Event, Invocation};
use daemon::{Daemon, program};
use initiated::{config, free_ports, made, plant};
use rustix::process::{Pid, Signal, kill_process};
use steadfast::{Context, HostOptions, Node, NodeConfig};
use tls::{Credentials, Port};
use wire::client::Refusal;

/// Adds to the counter of a cell; its sum then.
fn add(client: &mut client::Client, group: &str, number: u32) -> u32 {
    let call = Invocation::new(group, "add").json().body(format!("[{number}]")).within(TIMEOUT / 2);
    let sum = client.call(call).expect("it is answered");
    serde_json::from_slice(&sum).expect("a number")
}

/// Calls a group of another cell until the client has a connection to one of its nodes.
fn goes_to(client: &mut client::Client, group: &str, is_there: impl Fn(SocketAddr) -> bool) {
    let end = Instant::now() + TIMEOUT;
    loop {
        add(client, group, 0);
        let there =
            |(_, event)| matches!(event, Event::Connected { address, .. } if is_there(address));
        if client.take_events().into_iter().any(there) {
            return;
        }
        assert!(Instant::now() < end, "it is carried still");
    }
}

/// Clients of this name in the root cell may read the counter, and no others.
const RIGHTS: &str = r#"
[[rights.rule]]
name = "readers"
groups = ["counter"]
methods = ["get"]
clients = ["app@porto"]
"#;

/// Longer than anything here may take: a test that waits so long has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until the copy of the book at the node with this socket is like this.
fn until<T>(
    socket: &Path,
    what: &str,
    find: impl Fn(&CellStatus, &Cell, &Picture) -> Option<T>,
) -> T {
    let end = Instant::now() + TIMEOUT;
    let mut node = admin::Client::connect(socket).expect("its socket");
    let mut since = None;
    loop {
        let status = node.cell(since, Duration::from_millis(500)).expect("it answers");
        let book = status.book().expect("a book");
        let picture = book.picture();
        if let Some(found) = find(&status, &book, &picture) {
            return found;
        }
        assert!(Instant::now() < end, "{what}: {status:?}\n{picture:?}");
        since = Some(status.version);
    }
}

/// The process beside the node with this socket; `None`: it does not run.
fn beside(socket: &Path) -> Option<Pid> {
    let socket = socket.to_str().expect("text");
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    let is_it = |folder: &Path| {
        let words = std::fs::read(folder.join("cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|byte| *byte == 0).collect();
        words.contains(&&b"carry"[..]) && words.contains(&socket.as_bytes())
    };
    let found = processes.map(|entry| entry.path()).find(|folder| is_it(folder))?;
    Pid::from_raw(found.file_name()?.to_str()?.parse().ok()?)
}

/// The ports for calls to other cells, once all nodes have one.
fn calls(status: &CellStatus, book: &Cell) -> Option<Vec<SocketAddr>> {
    let ranks = status.ranks.as_ref()?;
    let all: Vec<SocketAddr> = book.carriers().map(|carrier| carrier.calls).collect();
    (all.len() == ranks.order.len() && !all.is_empty()).then_some(all)
}

/// The configuration of a node of a cell below another one.
fn text(
    admin: &Path,
    (path, index, above): (&str, usize, Option<&Running>),
    rings: &[SocketAddr],
    link: SocketAddr,
) -> String {
    let mut text = format!(
        "node = {}\ncluster = \"cell.{path}\"\nadmin = \"{}\"\ninsecure = true\n\
         listen.client = \"127.0.0.1:0\"\n",
        index + 1,
        admin.display()
    );
    for (id, ring) in (1..).zip(rings) {
        writeln!(text, "[[nodes]]\nid = {id}\nring = \"{ring}\"").unwrap();
    }
    let parent = above.map(|above| above.links.clone()).unwrap_or_default();
    let parent: Vec<_> = parent.iter().map(SocketAddr::to_string).collect();
    writeln!(text, "[system]\nlisten = \"{link}\"\nparent = {parent:?}").unwrap();
    text
}

/// A cell whose nodes run, each with a replica of the counter.
struct Running {
    path: &'static str,
    nodes: Vec<Option<Daemon>>,
    links: Vec<SocketAddr>,
}

impl Running {
    fn start(path: &'static str, nodes: usize, above: Option<&Running>) -> Running {
        Running::with(path, nodes, above, "")
    }

    /// With further lines in `[system]`.
    fn with(
        path: &'static str,
        nodes: usize,
        above: Option<&Running>,
        system: &'static str,
    ) -> Running {
        let free = steadfast::free_ring_addresses(2 * nodes);
        let (rings, links) = free.split_at(nodes);
        let node = |index: usize| {
            let place = (path, index, above);
            Daemon::with(|folder| {
                text(&folder.join("node.sock"), place, rings, links[index])
                    + system
                    + "[[replica]]\ngroup = \"counter\"\nservice = \"counter\"\n"
            })
        };
        let nodes: Vec<_> = (0..nodes).map(|index| Some(node(index))).collect();
        nodes.iter().flatten().for_each(|node| node.wait_for("READY=1"));
        Running { path, nodes, links: links.to_vec() }
    }

    /// The first of its nodes that runs.
    fn any(&self) -> &Daemon {
        self.nodes.iter().flatten().next().expect("one runs")
    }

    fn kill(&mut self, index: usize) {
        self.nodes[index].take().expect("it runs").kill();
    }

    /// Waits until a node's copy of the book is like this.
    fn until<T>(&self, what: &str, find: impl Fn(&CellStatus, &Cell, &Picture) -> Option<T>) -> T {
        until(&self.any().socket(), &format!("{}: {what}", self.path), find)
    }

    /// Waits until another cell is attached to this one with so many nodes.
    fn attaches(&self, other: &Running, nodes: u16) {
        self.until("it has the other attached", |_, _, picture| {
            let is = |it: &&cells::ChildPicture| {
                it.place.path.as_str() == other.path && it.nodes == nodes
            };
            picture.children.iter().find(is).map(|_| ())
        });
    }

    /// Where clients reach its nodes that run.
    fn clients(&self) -> Vec<SocketAddr> {
        let node = |it: &Daemon| admin::Client::connect(it.socket())?.status();
        let status = self.nodes.iter().flatten().map(|it| node(it).expect("it answers"));
        status.map(|status| status.client.expect("it takes clients")).collect()
    }

    /// A client of this cell, once all its nodes carry calls.
    fn client(&self) -> client::Client {
        self.until("it carries calls", |status, book, _| calls(status, book));
        client::Client::connect(self.clients()).expect("a node answers")
    }

    fn command(&self, arguments: &[&str]) -> Output {
        let mut command = program();
        command.arg("cell").args(arguments).arg("--admin").arg(self.any().socket());
        command.output().expect("the program can be run")
    }

    fn said(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }
}

#[test]
fn two_cells_attach_and_go_on_without_the_seat() {
    let root = Running::start("porto", 3, None);
    let mut line = Running::start("line-a.porto", 3, Some(&root));
    root.attaches(&line, 3);

    let text = root.said(&["tree"]);
    assert!(text.starts_with("porto  the root; 3 nodes, seat "), "{text}");
    assert!(text.contains("\n line-a.porto  attached as e"), "{text}");
    let text = line.said(&["tree"]);
    assert!(text.starts_with("porto  links at ") && text.contains("\n line-a.porto"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&root.said(&["tree", "--json"])).unwrap();
    assert_eq!(
        (&json["below"][0]["path"], &json["below"][0]["nodes"]),
        (&"line-a.porto".into(), &3.into())
    );
    let text = root.said(&["explain", "x.line-a.porto"]);
    assert!(text.contains("by line-a.porto, for it is within that cell"), "{text}");

    // The exports of a cell are known above, until they are taken back.
    line.said(&["export", "counter"]);
    root.until("it knows the export", |_, book, _| {
        (!book.exporters("counter").is_empty()).then_some(())
    });
    let found = root.said(&["find", "*:counter"]);
    assert!(found.starts_with("line-a.porto:counter  replicas at 127.0.0.1:"), "{found}");
    let found = line.said(&["find", "porto:counter", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["found"]["cell"], "porto");
    assert_eq!(found["found"]["targets"]["nodes"].as_array().unwrap().len(), 3);
    let nowhere = root.command(&["find", "*:nothing"]);
    let why = String::from_utf8(nowhere.stderr).unwrap();
    assert!(nowhere.status.code() == Some(1) && why.contains("*:nothing is nowhere"), "{why}");
    line.said(&["unexport", "counter"]);
    root.until("the export is gone", |_, book, _| {
        book.exporters("counter").is_empty().then_some(())
    });

    // Clients of either cell call groups of the other.
    let (mut here, mut there) = (root.client(), line.client());
    assert_eq!(add(&mut here, "line-a.porto:counter", 5), 5);
    assert_eq!(add(&mut here, "line-a.porto:counter", 2), 7);
    assert_eq!(add(&mut there, "porto:counter", 3), 3);
    assert_eq!(add(&mut there, "line-a.porto:counter", 1), 8, "its own cell has a full name, too");
    let nothing = Invocation::new("line-a.porto:nothing", "add").within(Duration::from_secs(20));
    assert!(matches!(here.call(nothing), Err(CallError::NoSuchGroup(_))));
    let book = Invocation::new("line-a.porto:steadfast.cell", "command");
    let called = here.call(book.within(Duration::from_secs(20)));
    assert!(matches!(called, Err(CallError::NoSuchGroup(_))), "clients have no part in the book");

    // Where they reach the other cell's nodes, they go there.
    let direct = line.clients();
    goes_to(&mut here, "line-a.porto:counter", |to| direct.contains(&to));

    let seat = line.until("it has a seat", |status, book, _| {
        let order = &status.ranks.as_ref()?.order;
        (book.epoch().0 > 0 && order.len() == 3).then(|| *order.first().expect("a seat"))
    });

    // The next carrier renews what the seat has attached.
    let index = usize::try_from(seat.0).unwrap() - 1;
    let dead = line.links[index];
    line.kill(index);
    let until = root.until("the dead node is not named any more", |_, _, picture| {
        let child = picture.children.first()?;
        (!child.place.at.contains(&dead) && !child.place.at.is_empty()).then_some(child.until)
    });
    root.until("it is renewed", |_, _, picture| {
        picture.children.first().filter(|child| child.until > until).map(|_| ())
    });
    assert_eq!(add(&mut here, "line-a.porto:counter", 2), 10, "once, by another link");
    line.until("the dead node does not carry", |_, _, picture| {
        (picture.carriers.len() == 2).then_some(())
    });
}

#[steadfast::service]
trait Shop {
    /// Sells so many; says how many the other cell has counted.
    fn sell(&mut self, context: &Context, pieces: u32) -> Result<u32, String>;
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Till;

impl Shop for Till {
    fn sell(&mut self, context: &Context, pieces: u32) -> Result<u32, String> {
        let add = Invocation::new("porto:counter", "add").json().body(format!("[{pieces}]"));
        let sum = context.call(add).map_err(|error| error.to_string())?;
        serde_json::from_slice(&sum).map_err(|error| error.to_string())
    }
}

#[test]
fn a_handler_calls_a_group_of_another_cell() {
    let root = Running::start("porto", 1, None);
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (folder.path().join("node.toml"), folder.path().join("node.sock"));
    let free = steadfast::free_ring_addresses(2);
    let config = text(&socket, ("line-a.porto", 0, Some(&root)), &free[..1], free[1]);
    std::fs::write(&file, &config).unwrap();
    let node = Node::start(NodeConfig::from_toml(&config).unwrap()).unwrap();
    node.host("shop", HostOptions::default(), || ShopService::new(Till)).unwrap();
    let mut carry = program();
    carry.arg("carry").arg("--config").arg(&file).arg("--tied");
    let mut carries = carry.spawn().expect("the program can be run");
    let client = steadfast::Client::connect([node.client_address().unwrap()]).unwrap();
    let shop = ShopClient::new(&client, "shop").within(TIMEOUT / 2);
    assert_eq!(shop.sell(5), Ok(5));
    assert_eq!(shop.sell(2), Ok(7));
    let mut here = root.client();
    assert_eq!(add(&mut here, "counter", 1), 8, "each was executed once");
    carries.kill().unwrap();
    carries.wait().unwrap();
    node.stop().unwrap();
}

#[test]
fn a_process_with_links_that_dies_is_started_again_and_ends_with_its_node() {
    let mut root = Running::start("porto", 1, None);
    let socket = root.any().socket();
    let port = |book: &Cell| book.carriers().next().map(|carrier| carrier.calls);
    let former = root.until("it carries", |_, book, _| port(book));
    let dead = beside(&socket).expect("it runs");
    kill_process(dead, Signal::KILL).unwrap();
    root.until("the next one carries", |_, book, _| port(book).filter(|it| *it != former));
    assert_ne!(beside(&socket).expect("it runs"), dead);
    root.kill(0);
    let end = Instant::now() + TIMEOUT;
    while let Some(next) = beside(&socket) {
        assert!(Instant::now() < end, "{next:?} outlives its node");
        std::thread::yield_now();
    }
}

#[test]
fn a_cell_whose_parent_is_gone_attaches_to_the_one_above() {
    let root = Running::start("porto", 1, None);
    let mut area = Running::start("north.porto", 1, Some(&root));
    let line = Running::start("line-a.north.porto", 1, Some(&area));
    root.attaches(&area, 1);
    area.attaches(&line, 1);
    line.until("it knows all above", |_, book, _| (book.above().len() == 2).then_some(()));
    area.kill(0);
    root.attaches(&line, 1);
    line.until("it is attached to the root", |status, book, _| {
        let to = book.above().first()?;
        let linked = status.neighbours.iter().any(|it| it.cell.as_str() == "porto");
        (to.path.as_str() == "porto" && linked).then_some(())
    });
    let text = line.said(&["tree"]);
    assert!(
        text.starts_with("porto  links at ") && text.contains("link of n1: porto, n1, round trip"),
        "{text}"
    );

    // A person makes it a root, and only by saying so.
    let refused = line.command(&["promote"]);
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(why.contains("line-a.north.porto would be a root for good"), "{why}");
    line.said(&["promote", "--yes"]);
    assert!(line.said(&["tree"]).starts_with("line-a.north.porto  the root;"));
}

#[test]
fn cells_of_a_mesh_call_each_other_without_the_one_above() {
    // Carried, so that it is the routers' link that counts.
    let start = |path, above| Running::with(path, 1, above, "overlay = \"mesh\"\ndirect = false\n");
    let mut root = start("porto", None);
    let (here, there) = (start("line-a.porto", Some(&root)), start("line-b.porto", Some(&root)));
    root.attaches(&here, 1);
    root.attaches(&there, 1);
    let mut client = here.client();
    let end = Instant::now() + TIMEOUT;
    loop {
        add(&mut client, "line-b.porto:counter", 0);
        let mut node = admin::Client::connect(here.any().socket()).expect("its socket");
        let neighbours = node.cell(None, Duration::ZERO).expect("it answers").neighbours;
        if neighbours.iter().any(|it| it.cell.as_str() == "line-b.porto") {
            break;
        }
        assert!(Instant::now() < end, "no link to the other leaf: {neighbours:?}");
    }
    root.kill(0);
    assert_eq!(add(&mut client, "line-b.porto:counter", 4), 4);
}

#[test]
fn cells_with_certificates_trust_each_other_and_nobody_else() {
    let (_kept, out) = plant();
    let [ring, client, admin, link] = free_ports();
    let cells = ["--system", "porto", "--cells", "porto:3,line-a.porto:3", "--local"];
    let ports = ["--ring-port", &ring, "--client-port", &client, "--admin-port", &admin];
    made(&[&cells[..], &ports, &["--link-port", &link]].concat(), &out);
    let folder = |cell: &str, node: u8| out.join(cell).join(format!("node-{node}"));
    let start = |cell| {
        let config = |node| folder(cell, node).join("steadfast.toml");
        (1..=3).map(|node| Daemon::of(&config(node))).collect::<Vec<Daemon>>()
    };
    for node in 1..=3 {
        let mut file = OpenOptions::new()
            .append(true)
            .open(folder("line-a.porto", node).join("steadfast.toml"))
            .expect("init has made it");
        file.write_all(RIGHTS.as_bytes()).expect("it can be written");
    }
    let nodes = [start("porto"), start("line-a.porto")];
    nodes.iter().flatten().for_each(|node| node.wait_for("READY=1"));
    let socket = |cell| config(&folder(cell, 1)).admin.expect("a socket");
    until(&socket("porto"), "the line is attached", |_, _, picture| {
        picture.children.first().filter(|child| child.nodes == 3).map(|_| ())
    });
    until(&socket("porto"), "it carries", |status, book, _| calls(status, book));
    let tls = |cell| steadfast::Tls::from_dir(out.join(cell).join("client-app")).unwrap();
    let at: Vec<SocketAddr> =
        (1..=3).map(|node| format!("127.0.1.{node}:{client}").parse().unwrap()).collect();
    let mut here = client::Client::builder().tls(tls("porto")).connect(at.clone()).unwrap();
    assert_eq!(add(&mut here, "line-a.porto:counter", 5), 5);
    goes_to(&mut here, "line-a.porto:counter", |to| to.to_string().starts_with("127.0.2."));
    assert!(client::Client::connect(at.clone()).is_err(), "it shows no certificate");

    // A cell knows callers of others by their names there, carried or not.
    let get = |group| Invocation::new(group, "get").json().body("[]").within(TIMEOUT / 2);
    here.call(get("line-a.porto:counter")).expect("it is named");
    let at_line: SocketAddr = format!("127.0.2.1:{client}").parse().unwrap();
    let line = client::Client::builder().tls(tls("line-a.porto")).connect([at_line]).unwrap();
    let carried =
        line.call(get("line-a.porto:counter")).expect_err("it has the same name in another cell");
    let direct = line.call(get("counter"));
    for denied in [carried, direct.expect_err("nor is it here")] {
        let CallError::Refused { refusal: Refusal::Denied, reason } = denied else {
            panic!("{denied:?}");
        };
        assert_eq!(reason, "\"client-app\" is not among the clients of rule \"readers\"");
    }
    let other = client::Client::builder().tls(tls("line-a.porto")).connect(at);
    assert!(other.is_err(), "its own nodes are those of another cell");

    // An administrator says what people say, and nothing else.
    let credentials = Credentials::from_dir(&out.join("line-a.porto/admin-ops")).unwrap();
    let tls = tls::Client::new(&credentials, Port::Admin).unwrap();
    let at = format!("127.0.2.1:{admin}").parse().unwrap();
    let mut ops = admin::Client::connect_tls(at, &tls, TIMEOUT).unwrap();
    ops.tell_cell(&Command::Export("counter".into())).unwrap().unwrap();
    let refused = ops.tell_cell(&Command::Tick).unwrap_err().to_string();
    assert!(refused.contains("export, unexport, find and promote"), "{refused}");
    let refused = ops.tell_neighbours(Vec::new()).unwrap_err().to_string();
    assert!(refused.contains("the process beside the node"), "{refused}");
    until(&socket("porto"), "it knows the export", |_, book, _| {
        (!book.exporters("counter").is_empty()).then_some(())
    });
}
