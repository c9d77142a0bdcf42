//! The program `steadfast`: nodes as daemons, a cluster's status, calls by hand, a demonstration.

mod commands;
mod demo;
mod jobs;
mod services;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{
    agent, bench, call, carry, cell, conform, context, deploy, deployments, describe, doctor,
    drain, events, explain, gateway, hand_over, init, job, join, key, node, nodes, poisoned,
    programs, qos, registry, reload, replica, retire, run, state, status, style, targets, upgrade,
};

const EXAMPLES: &str = "\
Examples:
  See a demonstration, in a minute:
      steadfast demo
  Run a node:
      steadfast node --print-config > node.toml
      steadfast node --config node.toml
  Make the keys and configurations of a cluster of three, here or on hosts:
      steadfast init --cluster trial --out trial --local 3
      steadfast context use trial
  Look at its cluster, and call a built-in service:
      steadfast status --config node.toml
      steadfast events --follow --config node.toml
      steadfast call counter add '[5]' --at 127.0.0.1:7100
      steadfast describe counter --at 127.0.0.1:7100
  List the calls that killed services:
      steadfast poisoned counter --config node.toml
  Move a group's primary to another node, while clients call the group:
      steadfast move counter --to 2 --config node.toml
  Show the hosts' load, and the order of a group's backups with the reasons:
      steadfast nodes --config node.toml
      steadfast explain counter --config node.toml
  Show the nodes that a group's clients try:
      steadfast targets counter --config node.toml
  Change a group's style, while clients call the group:
      steadfast style counter active --config node.toml
  Save every group's state, and restore a group:
      steadfast state save --all /var/backups/steadfast --config node.toml
      steadfast state restore counter /var/backups/steadfast/counter.state --config node.toml
  Run your own service under the node, in its own process:
      steadfast run --group orders --config node.toml -- ./orders
  Try whether a program in any language serves as a node expects:
      steadfast conform -- ./orders
  Deploy a service on several nodes of the cluster, and drain a node:
      steadfast deploy service.toml --config node.toml
      steadfast drain 2 --config node.toml
  Run a program as four ranks that survive the loss of any of them:
      steadfast job run -n 4 -- python matmul.py
  Have a new host in the cluster, and take an old one out of it:
      steadfast init --out plant --add 4=10.0.0.4
      steadfast join --token @node-4.token --out /etc/steadfast
      steadfast retire 1 --config node.toml
  Look up names in the registry, and follow changes:
      steadfast registry list --config node.toml
      steadfast registry watch --config node.toml
  Take new certificates and rights, without a restart:
      steadfast reload --config node.toml
  Bring the nodes to another version, one after the other:
      steadfast upgrade next --config node.toml
      steadfast upgrade finish --config node.toml
  Check this host, and measure the ring:
      steadfast doctor --config node.toml
      steadfast bench ring --config node.toml

Exit codes:
  0  the command succeeded
  1  it failed: standard error has the reason and the remedy
  2  the command line or the configuration is wrong";

/// Keeps services answering: replicas on several hosts, clients that go on within milliseconds
/// when one fails, and no acknowledged request lost or executed twice.
#[derive(Parser)]
#[command(name = "steadfast", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Init(init::Args),
    Context(context::Args),
    Join(join::Args),
    Retire(retire::Args),
    Node(node::Args),
    Status(status::Args),
    Nodes(nodes::Args),
    Targets(targets::Args),
    Explain(explain::Args),
    Events(events::Args),
    Poisoned(poisoned::Args),
    Call(call::Args),
    Describe(describe::Args),
    Move(hand_over::Args),
    Style(style::Args),
    State(state::Args),
    Run(run::Args),
    Conform(conform::Args),
    Programs(programs::Args),
    Deploy(deploy::Args),
    Deployments(deployments::Args),
    Withdraw(deployments::Withdraw),
    Drain(drain::Args),
    /// Runs programs as ranks that go on after any loss, and looks after them.
    Job(job::Args),
    Agent(agent::Args),
    Gateway(gateway::Args),
    Return(drain::Return),
    /// Looks up, binds and unbinds names.
    Registry(registry::Args),
    /// Shows the cells of a system, and changes what a cell exports.
    Cell(cell::Args),
    #[command(hide = true)]
    Carry(carry::Args),
    Replica(replica::Args),
    Demo(demo::Args),
    Doctor(doctor::Args),
    Key(key::Args),
    Reload(reload::Args),
    Upgrade(upgrade::Args),
    Qos(qos::Args),
    /// Measures a running cluster.
    Bench(bench::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Init(args) => init::run(&args),
        Command::Context(args) => context::run(&args),
        Command::Join(args) => join::run(&args),
        Command::Retire(args) => retire::run(&args),
        Command::Node(args) => node::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Nodes(args) => nodes::run(&args),
        Command::Targets(args) => targets::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Poisoned(args) => poisoned::run(&args),
        Command::Call(args) => call::run(&args),
        Command::Describe(args) => describe::run(&args),
        Command::Move(args) => hand_over::run(&args),
        Command::Style(args) => style::run(&args),
        Command::State(args) => state::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Conform(args) => conform::run(&args),
        Command::Programs(args) => programs::run(&args),
        Command::Deploy(args) => deploy::run(&args),
        Command::Deployments(args) => deployments::run(&args),
        Command::Withdraw(args) => deployments::withdraw(&args),
        Command::Drain(args) => drain::run(&args),
        Command::Job(args) => job::run(&args),
        Command::Agent(args) => agent::run(&args),
        Command::Gateway(args) => gateway::run(&args),
        Command::Return(args) => drain::give_back(&args),
        Command::Cell(args) => cell::run(&args),
        Command::Carry(args) => carry::run(&args),
        Command::Registry(args) => registry::run(&args),
        Command::Replica(args) => replica::run(&args),
        Command::Demo(args) => demo::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Reload(args) => reload::run(&args),
        Command::Upgrade(args) => upgrade::run(&args),
        Command::Qos(args) => qos::run(&args),
        Command::Bench(args) => bench::run(&args),
    }
}

#[cfg(test)]
mod tests;
