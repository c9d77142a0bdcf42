//! Copies between agents: by a socket and by TLS; what has rotted, is asked for by others, or comes from
//! a hostile peer.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use image::{Place, Root};
use rank::{Arena, Staging};
use steadfast_agent::copies::{Giver, Taker};
use steadfast_agent::images::{Saver, folder_of, list, restore};
use steadfast_agent::streams::Door;
use tls::issue::Authority;
use tls::{Client, Credentials, Identity, Port, Server};
use wire::NodeId;
use wire::rank::Array;

const PLACE: Place = Place { job: 9, rank: 2, start: 3, generation: 4 };

/// An image of some parts in a folder of its own.
fn saved(folder: &Path) -> Root {
    let array = |name: &str, length| Array { name: name.into(), form: String::new(), length };
    let mut arena = Arena::new(vec![array("a", 700_000), array("b", 5)]).unwrap();
    arena
        .bytes_mut(0)
        .iter_mut()
        .zip(0_u64..)
        .for_each(|(byte, place)| *byte = (place % 251) as u8);
    let mut staging = Staging::new().unwrap();
    let snapshot = staging.take(&arena, &[], 7, None).unwrap();
    let folder = folder_of(folder, PLACE.job, PLACE.rank);
    fs::create_dir_all(&folder).unwrap();
    Saver::new(&folder).save((&snapshot, staging.file()), PLACE, None).unwrap().root
}

struct Both {
    _folders: tempfile::TempDir,
    giver: PathBuf,
    taker: PathBuf,
    socket: PathBuf,
    root: Root,
}

impl Both {
    fn new() -> Both {
        let folders = tempfile::tempdir().unwrap();
        let [giver, taker] = ["giver", "taker"].map(|name| folders.path().join(name));
        fs::create_dir(&giver).unwrap();
        fs::create_dir(&taker).unwrap();
        let (socket, root) = (folders.path().join("copies"), saved(&giver));
        Both { _folders: folders, giver, taker, socket, root }
    }

    fn give(&self) -> Receiver<Place> {
        let (told, damaged) = channel();
        let giver = Giver::new(&self.giver, move |place| told.send(place).unwrap());
        giver.open(Door::Socket(self.socket.clone())).unwrap();
        damaged
    }

    fn take(&self) -> Result<(), String> {
        let from = ["/nowhere".into(), self.socket.to_str().unwrap().into()];
        Taker::new(&self.taker, None).take(PLACE, self.root, &from)
    }

    /// Nothing that counts has come.
    fn nothing(&self) {
        assert_eq!(list(&self.taker).unwrap().images, []);
    }

    fn whole(&self) {
        assert_eq!(list(&self.taker).unwrap().images, [(PLACE, self.root)]);
        let folder = folder_of(&self.taker, PLACE.job, PLACE.rank);
        assert_eq!(restore(&folder, PLACE, self.root).unwrap().step, 7);
    }
}

#[test]
fn a_copy_comes_whole_by_a_socket() {
    let both = Both::new();
    let _damaged = both.give();
    both.take().unwrap();
    both.whole();
    let error = Taker::new(&both.taker, None)
        .take(Place { generation: 5, ..PLACE }, both.root, &[both.socket.to_str().unwrap().into()])
        .unwrap_err();
    assert!(error.contains("it is not there"), "{error}");
}

#[test]
fn a_copy_that_has_rotted_is_not_taken_and_its_keeper_is_told() {
    let both = Both::new();
    let damaged = both.give();
    let data = folder_of(&both.giver, PLACE.job, PLACE.rank)
        .join(format!("{:016x}-{:016x}.data", PLACE.generation, PLACE.start));
    let file = OpenOptions::new().write(true).open(data).unwrap();
    file.write_all_at(&[1, 2, 3], 600_000).unwrap();
    both.take().unwrap_err();
    both.nothing();
    assert_eq!(damaged.recv().unwrap(), PLACE);
}

#[test]
fn a_hostile_giver_is_not_believed() {
    let honest = Both::new();
    let _damaged = honest.give();
    // The answer of an honest one, byte by byte.
    let mut answer = Vec::new();
    let mut stream = UnixStream::connect(&honest.socket).unwrap();
    let mut ask = vec![0; 68];
    ask[..5].copy_from_slice(b"SFIM\x01");
    ask[8] = 2;
    ask[12] = 9;
    ask[20] = 3;
    ask[28] = 4;
    ask[36..].copy_from_slice(&honest.root);
    stream.write_all(&ask).unwrap();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > 700_000);
    let hostile = Both::new();
    let listener = UnixListener::bind(&hostile.socket).unwrap();
    let cuts = [0, 9, 16, 200, 100_000, answer.len() - 1];
    let flips = [0, 7, 8, 12, 30, 300, 200_000, answer.len() - 1];
    let cut = cuts.map(|length| answer[..length].to_vec());
    let flipped = flips.map(|place| {
        let mut bytes = answer.clone();
        bytes[place] ^= 0x81;
        bytes
    });
    let answers: Vec<Vec<u8>> = cut.into_iter().chain(flipped).collect();
    let count = answers.len();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 68]).unwrap();
            // It may hang up earlier.
            let _ = stream.write_all(&answer);
        }
    });
    for _ in 0..count {
        hostile.take().unwrap_err();
        hostile.nothing();
    }
}

#[test]
fn between_hosts_only_nodes_of_the_cluster_get_copies() {
    let both = Both::new();
    let (authority, root) = Authority::new("plant").unwrap();
    let credentials = |identity: Identity| {
        let issued = authority.issue(&identity, &[]).unwrap();
        let (certificate, key) = (issued.certificate.as_bytes(), issued.key.as_bytes());
        Credentials::from_pem(root.certificate.as_bytes(), certificate, key).unwrap()
    };
    let node = |number| credentials(Identity::node("plant", NodeId(number)).unwrap());
    // A port that was free a moment ago; no other test binds this one.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let serve = |credentials: &Credentials| Server::new(credentials, Port::Copies).unwrap();
    let server = serve(&node(1));
    Giver::new(&both.giver, |_| {}).open(Door::Port(address, server)).unwrap();
    let take = |credentials| {
        let client = Client::new(&credentials, Port::Copies).unwrap();
        let tls = Some((serve(&credentials), client));
        Taker::new(&both.taker, tls).take(PLACE, both.root, &[address.to_string()])
    };
    take(credentials(Identity::client("plant", "hmi").unwrap())).unwrap_err();
    both.nothing();
    let without = Taker::new(&both.taker, None).take(PLACE, both.root, &[address.to_string()]);
    assert!(without.unwrap_err().contains("no certificate"));
    take(node(2)).unwrap();
    both.whole();
}
