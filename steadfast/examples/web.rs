//! A replicated service behind an axum web server: `cargo run -p steadfast --example web`
//!
//! It serves until Ctrl-C. With `-- --check` it asks itself, and ends.
//!
//! ```sh
//! curl -H 'content-type: application/json' -d 50 http://127.0.0.1:PORT/accounts/alice
//! curl http://127.0.0.1:PORT/accounts/alice
//! ```
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use steadfast::{AsyncClient, CallError, HostOptions, Node, NodeConfig, NodeId};
use tokio::net::TcpListener;

#[derive(Clone, Debug, thiserror::Error, Serialize, Deserialize)]
#[error("the account has only {balance}")]
struct Overdrawn {
    balance: u64,
}

#[steadfast::service]
trait Ledger {
    /// Adds to an account, or takes from it; returns the balance.
    fn pay(&mut self, account: String, amount: i64) -> Result<u64, Overdrawn>;
    fn balance(&self, account: String) -> u64;
}

#[derive(Default, Serialize, Deserialize)]
struct Accounts(BTreeMap<String, u64>);

impl Ledger for Accounts {
    fn pay(&mut self, account: String, amount: i64) -> Result<u64, Overdrawn> {
        let balance = self.balance(account.clone());
        let changed = balance.checked_add_signed(amount).ok_or(Overdrawn { balance })?;
        self.0.insert(account, changed);
        Ok(changed)
    }

    fn balance(&self, account: String) -> u64 {
        self.0.get(&account).copied().unwrap_or(0)
    }
}

/// A failed call as an HTTP answer.
struct Failure(StatusCode, String);

impl<E: fmt::Display> From<CallError<E>> for Failure {
    fn from(error: CallError<E>) -> Failure {
        match error {
            CallError::Service(error) => Failure(StatusCode::CONFLICT, error.to_string()),
            // Nobody knows whether it was executed: the user must look before the next attempt.
            error if error.was_executed().is_none() => {
                Failure(StatusCode::GATEWAY_TIMEOUT, error.to_string())
            }
            error => Failure(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

type Answer = Result<Json<u64>, Failure>;

async fn balance(State(ledger): State<LedgerAsyncClient>, Path(name): Path<String>) -> Answer {
    Ok(Json(ledger.balance(name).await?))
}

async fn pay(
    State(ledger): State<LedgerAsyncClient>,
    Path(name): Path<String>,
    Json(amount): Json<i64>,
) -> Answer {
    Ok(Json(ledger.pay(name, amount).await?))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Here all nodes are in this process. In operation each process has one, and its web server.
    let rings = steadfast::free_ring_addresses(3);
    let mut nodes = Vec::new();
    for id in 1..=3 {
        let node = Node::start(NodeConfig::member(NodeId(id), &rings))?;
        node.host("ledger", HostOptions::default(), || LedgerService::new(Accounts::default()))?;
        nodes.push(node);
    }
    let addresses: Vec<_> = nodes.iter().filter_map(Node::client_address).collect();
    let client = AsyncClient::connect(addresses).await?;
    let ledger = LedgerAsyncClient::new(&client, "ledger").within(Duration::from_secs(10));

    let app = Router::new().route("/accounts/{name}", get(balance).post(pay)).with_state(ledger);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("http://{address}/accounts/alice");

    let server = axum::serve(listener, app);
    if std::env::args().any(|argument| argument == "--check") {
        tokio::spawn(server.into_future());
        tokio::task::spawn_blocking(move || check(address)).await??;
    } else {
        server.with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) }).await?;
    }
    Ok(())
}

/// Asks the server, and compares its answers.
fn check(address: SocketAddr) -> std::io::Result<()> {
    let alice = "/accounts/alice";
    let asked = [
        ("GET", alice, "", "200 OK", "0"),
        ("POST", alice, "50", "200 OK", "50"),
        ("POST", alice, "-20", "200 OK", "30"),
        ("POST", alice, "-31", "409 Conflict", "the account has only 30"),
        ("POST", alice, "all", "400 Bad Request", ""),
        ("GET", alice, "", "200 OK", "30"),
        ("GET", "/nothing", "", "404 Not Found", ""),
    ];
    for (method, path, body, status, expected) in asked {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, content) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        println!("{method} {path} {body}: {status} {content}");
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(content == expected || expected.is_empty(), "{answer}");
    }
    Ok(())
}
