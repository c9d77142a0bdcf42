//! Calls by gRPC and by HTTP, at gateways on nodes and beside a client.

mod support;

use std::time::{Duration, Instant};

use steadfast::{HostOptions, Style};
use support::{Caller, Gateway, LONG, http, nodes, nodes_in};
use tonic::Code;

fn key(number: &str) -> [(&'static str, &str); 3] {
    [("steadfast-session", "abcdef"), ("steadfast-call", number), ("steadfast-unanswered", "1")]
}

fn sum(caller: &Caller) -> String {
    caller.result("/counter/get", "[]", &[("steadfast-read", "linearizable")])
}

#[test]
fn stock_clients_call_by_any_name_of_the_method() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let caller = gateway.caller();
    assert_eq!(caller.result("/counter/add", "[5]", &[]), "5");
    assert_eq!(caller.result("/counter.Counter/add", "{\"n\": 2}", &[]), "7");
    assert_eq!(caller.result("/x/add", "[1]", &[("steadfast-group", "counter")]), "8");
    assert_eq!(caller.result("/counter/get", "", &[]), "8");
    assert_eq!(sum(&caller), "8");
}

#[test]
fn a_repeated_call_with_a_key_is_executed_once_at_whichever_gateway() {
    let nodes = nodes(3);
    let gateways = [Gateway::on(&nodes[0]), Gateway::on(&nodes[1])];
    let [first, second] = [gateways[0].caller(), gateways[1].caller()];
    assert_eq!(first.result("/counter/add", "[5]", &key("1")), "5");
    assert_eq!(second.result("/counter/add", "[5]", &key("1")), "5");
    assert_eq!(first.result("/counter/add", "[5]", &key("1")), "5");
    assert_eq!(second.result("/counter/add", "[2]", &key("2")), "7");
    assert_eq!(sum(&first), "7");
    // Without a key each is a call of its own.
    assert_eq!(first.result("/counter/add", "[1]", &[]), "8");
    assert_eq!(second.result("/counter/add", "[1]", &[]), "9");
}

/// By the gateway that made the first call, and by others; in each style that has sessions.
#[test]
fn a_key_of_another_call_is_refused_and_not_executed() {
    for style in [Style::SemiActive, Style::Active, Style::Voting, Style::WarmPassive] {
        let nodes = nodes_in(3, HostOptions::default().style(style));
        let gateways = [Gateway::on(&nodes[0]), Gateway::on(&nodes[1])];
        let callers = [gateways[0].caller(), gateways[1].caller()];
        assert_eq!(callers[0].result("/counter/add", "[5]", &key("1")), "5");
        for caller in &callers {
            for (method, arguments) in [("add", "[7]"), ("take", "[5]"), ("add", "[5 ]")] {
                let path = format!("/counter/{method}");
                let refused = caller.call(&path, arguments, &key("1")).expect_err("another call");
                let words = format!("{style:?}: {refused}");
                assert_eq!(refused.code(), Code::Aborted, "{words}");
                assert_eq!(refused.metadata().get("steadfast-executed").unwrap(), "no", "{words}");
                assert!(refused.message().contains("steadfast-call"), "it names the remedy");
            }
            assert_eq!(caller.result("/counter/add", "[5]", &key("1")), "5", "{style:?}");
        }
        let head = "POST /v1/groups/counter/add HTTP/1.1\r\ncontent-type: application/json\r\n\
                    steadfast-session: abcdef\r\nsteadfast-call: 1";
        let (status, answer) = http(gateways[0].address, head, "[7]");
        assert_eq!(status, 409, "{answer}");
        assert_eq!(sum(&callers[1]), "5", "{style:?}");
    }
}

#[test]
fn a_key_that_was_given_up_is_refused_and_not_executed() {
    let nodes = nodes(1);
    let gateways = [Gateway::beside(&nodes), Gateway::beside(&nodes)];
    let [first, second] = [gateways[0].caller(), gateways[1].caller()];
    let later =
        [("steadfast-session", "abcdef"), ("steadfast-call", "9"), ("steadfast-unanswered", "9")];
    assert_eq!(first.result("/counter/add", "[5]", &later), "5");
    for caller in [&first, &second] {
        let refused = caller.call("/counter/add", "[5]", &key("3")).expect_err("it is over");
        assert_eq!(refused.code(), Code::Aborted);
    }
    assert_eq!(sum(&first), "5");
}

#[test]
fn errors_say_what_became_of_the_call() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let caller = gateway.caller();
    let fails = |path: &str, message: &str, metadata: &[(&'static str, &str)]| {
        let status = caller.call(path, message, metadata).expect_err("it fails");
        let executed = status.metadata().get("steadfast-executed").map(|it| it.to_str().unwrap());
        (status.code(), executed.unwrap_or("untold").to_owned(), status.message().to_owned())
    };
    let (code, executed, message) = fails("/counter/take", "[3]", &[]);
    assert_eq!((code, &*executed), (Code::FailedPrecondition, "yes"));
    assert_eq!(message, "{\"by\":3}");
    for (path, message, metadata, code) in [
        ("/counter/multiply", "[3]", &[][..], Code::Unimplemented),
        ("/counter/add", "[\"x\"]", &[], Code::InvalidArgument),
        ("/counter/add", "[", &[], Code::InvalidArgument),
        ("/nothing/add", "[1]", &[], Code::NotFound),
        ("/counter/add", "[1]", &[("steadfast-read", "linearizable")], Code::InvalidArgument),
        ("/counter/add", "[1]", &[("steadfast-call", "1")], Code::InvalidArgument),
        ("/counter/add/x", "[1]", &[], Code::Unimplemented),
        ("/counter/add", "[1]", &[("grpc-timeout", "soon")], Code::InvalidArgument),
    ] {
        let (seen, executed, _) = fails(path, message, metadata);
        assert_eq!((seen, &*executed), (code, "no"), "{path} {message}");
    }
    assert_eq!(sum(&caller), "0");
}

#[test]
fn a_call_ends_by_its_deadline() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let caller = gateway.caller();
    sum(&caller);
    for node in nodes {
        node.stop().expect("it stops");
    }
    let begun = Instant::now();
    let head = "POST /v1/groups/counter/add HTTP/1.1\r\ncontent-type: application/json\r\n\
                steadfast-deadline: 300ms";
    let (status, answer) = http(gateway.address, head, "[1]");
    assert!(matches!(status, 503 | 504), "{status}: {answer}");
    assert!(begun.elapsed() < LONG && begun.elapsed() >= Duration::from_millis(100));
}

#[test]
fn http_with_json_on_the_same_port() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let post = "POST /v1/groups/counter/add HTTP/1.1\r\ncontent-type: application/json";
    let ask = |head: &str, body: &str| http(gateway.address, head, body);
    assert_eq!(ask(post, "[5]"), (200, "5".into()));
    let keyed = format!("{post}\r\nsteadfast-session: f\r\nsteadfast-call: 1");
    assert_eq!(ask(&keyed, "{\"n\": 2}"), (200, "7".into()));
    assert_eq!(ask(&keyed, "{\"n\": 2}"), (200, "7".into()));
    assert_eq!(ask("GET /v1/groups/counter/get HTTP/1.1", ""), (200, "7".into()));
    let take = "POST /v1/groups/counter/take HTTP/1.1\r\ncontent-type: application/json";
    let (status, answer) = ask(take, "[9]");
    assert_eq!(status, 422);
    assert!(answer.contains("\"error\":{\"by\":2}") && answer.contains("\"executed\":\"yes\""));
    for (head, status, why) in [
        ("GET /v1/groups/counter/add HTTP/1.1", 400, "may change the state"),
        ("POST /v1/groups/counter/add HTTP/1.1", 415, "content-type: application/json"),
        (&format!("{post}\r\norigin: http://elsewhere"), 400, "another site"),
        (&format!("{post}\r\nsteadfast-deadline: soon"), 400, "500ms or 2s"),
        ("GET /v1/groups/nothing/get HTTP/1.1", 404, "no group `nothing`"),
        ("GET /favicon.ico HTTP/1.1", 404, "POST /v1/groups/GROUP/METHOD"),
        ("PUT /v1/groups/counter/add HTTP/1.1", 405, "by POST"),
    ] {
        let (seen, answer) = ask(head, "[1]");
        assert_eq!(seen, status, "{head}: {answer}");
        assert!(answer.contains(why) && answer.contains("\"executed\":\"no\""), "{answer}");
    }
    assert_eq!(ask("GET /v1/groups/counter/get HTTP/1.1", ""), (200, "7".into()));
}

#[test]
fn protobuf_goes_by_the_contract() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let caller = gateway.caller();
    // Field 1 is a number: `n` of the request, the result of the reply.
    let raw = [("steadfast-encoding", "protobuf")];
    assert_eq!(caller.result("/counter.Counter/add", "\x08\x05", &raw), "\x08\x05");
    assert_eq!(caller.result("/counter.Counter/get", "", &raw), "\x08\x05");
    let refused = caller.call("/counter.Counter/add", "\x0a\x05", &raw).expect_err("no number");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("counter.AddRequest"), "{}", refused.message());
}

#[test]
fn health_is_told_of_the_gateway_and_of_groups() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let caller = gateway.caller();
    let check = |service: &str| {
        // The request's field 1 is the service, the reply's field 1 its status: 1 is serving.
        let length = char::from(u8::try_from(service.len()).expect("a short name"));
        let message = match service {
            "" => String::new(),
            service => format!("\x0a{length}{service}"),
        };
        let answer = caller.call("/grpc.health.v1.Health/Check", &message, &[]);
        answer.map(|it| it.into_inner()).map_err(|status| status.code())
    };
    assert_eq!(check(""), Ok("\x08\x01".into()));
    assert_eq!(check("counter"), Ok("\x08\x01".into()));
    assert_eq!(check("counter.Counter"), Ok("\x08\x01".into()));
    assert_eq!(check("nothing"), Err(Code::NotFound));
}
