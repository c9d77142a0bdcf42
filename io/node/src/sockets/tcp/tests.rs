//! Clients' connections within bounds.

use std::io::Write;
use std::net::TcpStream;

use os::clock::monotonic;
use wire::ClientId;

use super::*;

/// Waits for something to be ready and serves it. Gives who has gone.
fn serve(callers: &mut Callers, poller: &Poller, counters: &mut Counters) -> Vec<Caller> {
    let (mut gone, mut ready) = (Vec::new(), Vec::new());
    poller.wait(monotonic(), Time::FAR, &mut ready).unwrap();
    let mut take = |arrived| {
        if let Arrived::Gone(caller) = arrived {
            gone.push(caller);
        }
    };
    for (source, flags) in ready {
        match source {
            Source::Caller(number) => {
                callers.handle_ready(number, flags, poller, counters, &mut take);
            }
            _ => drop(callers.accept(Time::ZERO, poller, counters, &mut take)),
        }
    }
    gone
}

#[test]
fn who_hoards_makes_room_and_not_whoever_comes_next() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut callers = Callers::listen(any).unwrap();
    callers.room = 64 << 10;
    let (poller, mut counters) = (Poller::new().unwrap(), Counters::default());
    callers.register(&poller).unwrap();
    let mut connect = |callers: &mut Callers, bytes: usize| {
        let mut stream = TcpStream::connect(callers.address()).unwrap();
        let greeting = Frame::Hello(Hello::new(ClientId(1))).encode();
        // The beginning of a call of half a mebibyte.
        let mut begun = vec![0, 0, 8, 0, 5, 0, 0, 0];
        begun.resize(bytes, 0);
        stream.write_all(&[&greeting[..], &begun].concat()).unwrap();
        let goal = callers.buffered + bytes;
        let mut gone = Vec::new();
        while callers.buffered < goal && gone.is_empty() {
            gone = serve(callers, &poller, &mut counters);
        }
        (stream, gone)
    };
    let (_hoards, gone) = connect(&mut callers, 40 << 10);
    assert_eq!(gone, []);
    let (_modest, gone) = connect(&mut callers, 20 << 10);
    assert_eq!(gone, []);
    let (_next, gone) = connect(&mut callers, 10 << 10);
    assert_eq!(gone, [Caller(1)], "the one that held most");
    assert_eq!((callers.count(), counters.connections_refused), (2, 1));
    assert!(callers.buffered <= callers.room);
}
