//! Each refusal says whether the call was executed, and stands in the table of docs/gateway.md.

mod support;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::{Gateway, LONG, answer, nodes};
use tonic::codegen::tokio_stream;
use wire::limits::MAX_BODY;

/// The rows of the document's table: a status of gRPC, one of HTTP, and whether it was executed.
fn table() -> BTreeSet<[String; 3]> {
    let document = include_str!("../../../docs/gateway.md");
    let rows = document.lines().skip_while(|line| !line.starts_with("| gRPC | HTTP | executed"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        [cells[1], cells[2], cells[3]].map(str::to_owned)
    };
    rows.map(row).collect()
}

/// The number of each status of gRPC (google/rpc/code.proto).
fn number(code: &str) -> &'static str {
    match code {
        "INVALID_ARGUMENT" => "3",
        "DEADLINE_EXCEEDED" => "4",
        "NOT_FOUND" => "5",
        "PERMISSION_DENIED" => "7",
        "RESOURCE_EXHAUSTED" => "8",
        "FAILED_PRECONDITION" => "9",
        "ABORTED" => "10",
        "OUT_OF_RANGE" => "11",
        "UNIMPLEMENTED" => "12",
        "INTERNAL" => "13",
        "UNAVAILABLE" => "14",
        other => panic!("{other} is no status of gRPC"),
    }
}

fn is_in_table(place: usize, status: &str, executed: &str) -> bool {
    let told = |row: &[String; 3]| match place {
        0 => number(&row[0]).to_owned(),
        _ => row[1].clone(),
    };
    table().iter().any(|row| told(row) == status && row[2] == executed)
}

type Sent = BoxBody<Bytes, Infallible>;

fn whole(bytes: impl Into<Bytes>) -> Sent {
    Full::new(bytes.into()).boxed()
}

fn framed(flag: u8, length: usize, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(length).expect("a short one").to_be_bytes();
    [&[flag], &length[..], bytes].concat()
}

fn message(json: &str) -> Vec<u8> {
    framed(0, json.len(), json.as_bytes())
}

/// Headers and trailers of the answer to one request by HTTP/2.
async fn send(address: SocketAddr, path: &str, headers: &[(&str, &str)], body: Sent) -> HeaderMap {
    let stream = tokio::net::TcpStream::connect(address).await.expect("the gateway listens");
    let (executor, stream) = (TokioExecutor::new(), TokioIo::new(stream));
    let shaken = hyper::client::conn::http2::handshake(executor, stream).await;
    let (mut sender, connection) = shaken.expect("it speaks HTTP/2");
    let connection = tokio::spawn(connection);
    let mut request = Request::post(format!("http://{address}{path}"));
    for (name, value) in
        [("content-type", "application/grpc"), ("te", "trailers"), ("steadfast-encoding", "json")]
            .iter()
            .chain(headers)
    {
        request = request.header(*name, *value);
    }
    let request = request.body(body).expect("a request");
    let answered = tokio::time::timeout(LONG, sender.send_request(request)).await;
    let response = answered.expect("in time").expect("an answer");
    let mut headers = response.headers().clone();
    let body = response.into_body().collect().await.expect("it ends well");
    headers.extend(body.trailers().cloned().unwrap_or_default());
    connection.abort();
    headers
}

#[test]
fn by_grpc() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let long = "x".repeat(20_000);
    let key = [("steadfast-session", "ab"), ("steadfast-unanswered", "1")];
    let later =
        [("steadfast-session", "ab"), ("steadfast-call", "9"), ("steadfast-unanswered", "9")];
    let former = [key[0], ("steadfast-call", "3"), key[1]];
    let never = || StreamBody::new(tokio_stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let two = [message("[1]"), message("[1]")].concat();
    runtime.expect("a runtime").block_on(async {
        // The contract is known from now on, and the keys before the ninth are given up.
        let add = whole(message("[0]"));
        assert_eq!(send(gateway.address, "/counter/add", &later, add).await["grpc-status"], "0");
        let mut seen = BTreeSet::new();
        for (path, headers, body, status, executed) in [
            ("/counter/take", &[][..], whole(message("[3]")), "9", "yes"),
            ("/counter/multiply", &[], whole(message("[3]")), "12", "no"),
            ("/counter/add/x", &[], whole(message("[3]")), "12", "no"),
            ("/nothing/add", &[], whole(message("[3]")), "5", "no"),
            ("/counter/add", &[], whole(message("[\"x\"]")), "3", "no"),
            ("/counter/add", &[], whole(""), "3", "no"),
            ("/counter/add", &[], whole(two), "3", "no"),
            ("/counter/add", &[], whole(&[0, 0, 0][..]), "3", "no"),
            ("/counter/add", &[("grpc-timeout", "soon")], whole(message("[1]")), "3", "no"),
            ("/counter/add", &[("steadfast-call", "1")], whole(message("[1]")), "3", "no"),
            ("/counter/add", &[("steadfast-read", "2s")], whole(message("[1]")), "3", "no"),
            ("/counter/add", &[("steadfast-priority", "x")], whole(message("[1]")), "3", "no"),
            ("/counter/add", &[], whole(framed(1, 3, b"[1]")), "12", "no"),
            ("/counter/add", &[("grpc-encoding", "gzip")], whole(message("[1]")), "12", "no"),
            ("/counter/add", &[], whole(framed(0, MAX_BODY + 1, b"[1]")), "11", "no"),
            ("/counter/add", &[("x-long", &long)], whole(message("[1]")), "8", "no"),
            ("/counter/add", &former, whole(message("[1]")), "10", "unknown"),
            ("/counter/add", &[("grpc-timeout", "100m")], never().boxed(), "4", "no"),
        ] {
            let told = send(gateway.address, path, headers, body).await;
            let text = |name| told.get(name).map(|it| it.to_str().expect("plain")).unwrap_or("-");
            let (code, said) = (text("grpc-status"), text("steadfast-executed"));
            assert_eq!((code, said), (status, executed), "{path} {headers:?}: {told:?}");
            assert!(is_in_table(0, code, said), "{code}, {said} is not in docs/gateway.md");
            seen.insert(code.to_owned());
        }
        assert_eq!(seen.len(), 8, "{seen:?}");
        let get = send(gateway.address, "/counter/get", &[], whole("")).await;
        assert_eq!(get["grpc-status"], "3", "an empty body is no message");
    });
}

#[test]
fn by_http() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let add = "/v1/groups/counter/add";
    let post = format!("POST {add} HTTP/1.1\r\ncontent-type: application/json");
    let with = |header: &str| format!("{post}\r\n{header}");
    let large = format!("[{}1]", " ".repeat(MAX_BODY));
    let long = format!("x-long: {}", "x".repeat(20_000));
    for (head, body, status, header) in [
        (format!("PUT {add} HTTP/1.1"), "[1]", "405", "allow: GET, POST"),
        (format!("HEAD {add} HTTP/1.1"), "", "405", "allow: GET, POST"),
        (format!("OPTIONS {add} HTTP/1.1"), "", "405", "allow: GET, POST"),
        (format!("POST {add} HTTP/1.1"), "[1]", "415", "accept-encoding: identity"),
        (with("content-encoding: gzip"), "[1]", "415", "accept-encoding: identity"),
        (post.clone(), &large, "413", ""),
        (format!("PUT {add} HTTP/1.1"), &large, "405", ""),
        ("POST /nothing HTTP/1.1".into(), &large, "404", ""),
        (with(&long), "[1]", "431", ""),
        (with("steadfast-read: 2s"), "[1]", "400", ""),
        (with("steadfast-read: soon"), "[1]", "400", ""),
        (with("steadfast-deadline: 2"), "[1]", "400", ""),
        (with("steadfast-call: 1"), "[1]", "400", ""),
        (with("steadfast-group: a\r\nsteadfast-group: b"), "[1]", "400", ""),
        (format!("POST {add}?n=1 HTTP/1.1\r\ncontent-type: application/json"), "[1]", "400", ""),
        (format!("GET {add} HTTP/1.1"), "", "400", ""),
        (post.clone(), "[\"x\"]", "400", ""),
        ("GET /v1/groups/nothing/get HTTP/1.1".into(), "", "404", ""),
        ("GET /v1/groups/counter/none HTTP/1.1".into(), "", "404", ""),
        ("GET /nothing HTTP/1.1".into(), "", "404", ""),
        ("POST /counter/add HTTP/1.1\r\ncontent-type: application/grpc-web".into(), "", "415", ""),
        ("POST /counter/add HTTP/1.1\r\ncontent-type: application/grpc".into(), "", "415", ""),
        (
            "POST /v1/groups/counter/take HTTP/1.1\r\ncontent-type: application/json".into(),
            "[9]",
            "422",
            "",
        ),
    ] {
        let told = answer(gateway.address, &head, body);
        let (head, _) = told.split_once("\r\n\r\n").expect("a head");
        let shown = &told[..told.len().min(600)];
        assert_eq!(head.split(' ').nth(1), Some(status), "{shown}");
        assert!(head.contains(header), "{shown}");
        let executed = head.lines().find_map(|line| line.strip_prefix("steadfast-executed: "));
        let executed = executed.unwrap_or_else(|| panic!("whether it was executed: {shown}"));
        assert!(is_in_table(1, status, executed), "{status}, {executed}: docs/gateway.md");
    }
    let get = answer(gateway.address, "GET /v1/groups/counter/get HTTP/1.1", "");
    assert!(get.ends_with("\r\n\r\n0"), "nothing was executed: {get}");
    assert!(get.contains("keep-alive: timeout=75"), "{get}");
    let read = "GET /v1/groups/counter/get HTTP/1.1\r\nsteadfast-read: 2s";
    assert!(answer(gateway.address, read, "").starts_with("HTTP/1.1 200"));
}

#[test]
fn numbers_of_a_service_s_error_are_not_read() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let take = "POST /v1/groups/counter/take HTTP/1.1\r\ncontent-type: application/json";
    let told = answer(gateway.address, take, "[18446744073709551615]");
    assert!(told.contains("{\"error\":{\"by\":18446744073709551615},"), "{told}");
}
