//! A node's status, to be taken in at a glance: what is wrong first, then nodes, then groups.

use std::fmt::Write;

use steadfast::status::{
    Grant, GroupStatus, KeyChange, LogStatus, MovingStatus, Status, StorageStatus,
};
use steadfast::{Durability, NodeId, Style};

/// Names of clients that are told; `--json` tells more.
const NAMES: usize = 8;

/// The text.
pub fn status(status: &Status) -> String {
    let mut text = String::new();
    let clients = match status.client {
        Some(address) => format!("clients at {address}"),
        None => "takes no clients".to_owned(),
    };
    line(
        &mut text,
        format_args!("cluster {}, seen from {} ({clients})", status.cluster, status.node),
    );
    for trouble in troubles(status) {
        line(&mut text, format_args!("  ! {trouble}"));
    }
    text.push('\n');
    ring(&mut text, status);
    text.push('\n');
    groups(&mut text, status);
    text
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("a String takes everything");
}

/// The size of the storage, and the speed of its disk.
fn kept(storage: &StorageStatus) -> String {
    let StorageStatus { folder, records, bytes, syncs, last_sync_us, .. } = storage;
    format!(
        "in {}: {records} records ({} KiB) in {syncs} syncs, the last took {last_sync_us} us",
        folder.display(),
        bytes / 1024
    )
}

/// The clients that may connect, and those that are connected.
fn clients(status: &Status) -> String {
    let Some(certificate) = &status.tls.certificate else {
        return "NOT AUTHENTICATED: any program that reaches the port may call (`steadfast init` makes certificates)"
            .to_owned();
    };
    let mut text = format!("by TLS with {certificate}");
    // A name stands for as many connections as it has.
    for (index, (name, connections)) in status.tls.clients.iter().take(NAMES).enumerate() {
        let label = name.split('.').next().unwrap_or(name);
        let times = if *connections > 1 { format!(" ({connections})") } else { String::new() };
        text += if index == 0 { "; connected: " } else { ", " };
        text += &format!("{label}{times}");
    }
    if status.tls.clients.len() > NAMES {
        text += ", ...";
    }
    text
}

fn troubles(status: &Status) -> Vec<String> {
    let mut troubles = Vec::new();
    let ring = &status.ring;
    if ring.state != "operational" {
        troubles.push(format!(
            "the ring is in state {}: its membership is being agreed on; nothing is answered",
            ring.state
        ));
    }
    let absent = ring.absent();
    match ring.no_quorum() {
        Some(why) => troubles.push(why),
        None if ring.state == "operational" && !absent.is_empty() => {
            troubles.push(format!("not in the ring: {}", list(&absent)))
        }
        None => {}
    }
    troubles.extend(lost_links(status));
    for group in &status.groups {
        if group.primary.is_none() {
            troubles.push(no_primary(group, status));
        }
        if group.hung {
            let alone = group.replicas.iter().filter(|replica| replica.synced).count() <= 1;
            let then = match alone {
                true => {
                    "and no other replica has the state: stop its program if the state may be lost"
                }
                false => "and its replica is being replaced",
            };
            troubles.push(format!("the service of {} is hung at this node, {then}", group.name));
        }
        troubles.extend(group.state_troubles());
    }
    for (knob, grant) in status.realtime.grants() {
        if let Grant::Refused(why) = grant {
            troubles.push(format!("realtime.{knob} is not in force: {why}"));
        }
    }
    if let Grant::Refused(why) = &status.closer.standing {
        troubles.push(why.clone());
    }
    if status.closer.lost > 0 {
        troubles.push(format!(
            "the node's closer was ended {} times by others and replaced: leave the process `steadfast \
             close` alone, it has the node's death noticed at once",
            status.closer.lost
        ));
    }
    let counters = &status.counters;
    let dropped = counters.malformed.total();
    if dropped > 0 {
        troubles.push(format!(
            "{dropped} malformed datagrams dropped: another program, version or cluster sends to \
             the ring's port (--json tells which)"
        ));
    }
    troubles.extend(refused_by_seal(status));
    if let Some(full) = status.storage.as_ref().and_then(|storage| storage.full.as_ref()) {
        troubles.push(format!(
            "the disk of the storage is full ({full}): free some space, or the node leaves when its reserve is used up"
        ));
    }
    if status.tls.expires_soon {
        troubles.push(
            "the node's certificate expires within two months: `steadfast init --renew` makes new ones"
                .to_owned(),
        );
    }
    if let Some(excluded) = &ring.excluded {
        let (times, why, remedy) = (counters.excluded_slow, excluded.why(), excluded.remedy());
        troubles.push(format!(
            "this node was excluded from the ring {times} times; the last time {why}. {remedy}"
        ));
    }
    troubles.extend(counted(status));
    troubles
}

fn refused_by_seal(status: &Status) -> Vec<String> {
    let mut troubles = Vec::new();
    if let Some(seal) = &status.seal {
        let counters = &seal.counters;
        for (count, what) in [
            (
                counters.forged + counters.malformed + counters.misaddressed,
                "forged datagrams refused: a sender does not have the cluster key",
            ),
            (
                counters.plain,
                "datagrams without encryption refused: a node without cluster_key, or another program",
            ),
            (
                counters.unknown_key,
                "datagrams with another cluster key refused: give all nodes the same key file",
            ),
        ] {
            if count > 0 {
                troubles.push(format!("{count} {what}"));
            }
        }
    }
    troubles
}

/// Returns the troubles that counters show: each of them should be 0.
fn counted(status: &Status) -> Vec<String> {
    let mut troubles = Vec::new();
    let counters = &status.counters;
    let handshakes = [counters.handshakes, counters.admin_handshakes];
    for (count, what) in [
        (handshakes.iter().map(|it| it.plaintext).sum(), "connections without TLS refused"),
        (
            handshakes.iter().map(|it| it.failed + it.refused).sum(),
            "TLS handshakes refused: no certificate of this cluster, an expired one, or one of another \
             role (the node's debug log names the peer)",
        ),
        (
            handshakes.iter().map(|it| it.crowded).sum(),
            "TLS handshakes aborted: too many connections began one and did not finish it",
        ),
        (counters.handlers_panicked, "handlers panicked: see the node's log"),
        (
            counters.programs_lost,
            "times the program of a replica ended by itself: see the node's log",
        ),
        (counters.replicas_overloaded, "replicas were removed: they could not keep up"),
        (counters.replicas_hung, "replicas were removed: their services were hung"),
        (counters.connections_refused, "client connections refused: a limit was reached"),
    ] {
        if count > 0 {
            troubles.push(format!("{count} {what}"));
        }
    }
    troubles
}

fn no_primary(group: &GroupStatus, status: &Status) -> String {
    let name = &group.name;
    match group.depositor {
        None => format!("group {name} has no primary: no replica with its state is up"),
        Some(holder) if status.ring.members.contains(&holder) => {
            format!("group {name} will begin with the restored state that {} has", holder.node)
        }
        Some(holder) => format!(
            "group {name} waits for a restored state from {}, which is down or has lost it: restore the file again (`steadfast state \
             restore`), or begin without it (`steadfast state discard`)",
            holder.node
        ),
    }
}

/// The troubles of lost links, numbered as in the configuration, from 1.
fn lost_links(status: &Status) -> impl Iterator<Item = String> + '_ {
    status.ring.links.iter().filter(|peer| is_member(status, peer.node)).filter_map(|peer| {
        let lost: Vec<String> = (1..)
            .zip(&peer.links)
            .filter(|(_, link)| !link.up)
            .map(|(number, link)| match link.heard_ms {
                Some(ms) => format!("link {number} (last heard {:.1} s ago)", ms / 1e3),
                None => format!("link {number} (never heard)"),
            })
            .collect();
        (!lost.is_empty()).then(|| {
            format!(
                "{} is not reachable by {}: repair that network; the ring uses another link",
                peer.node,
                lost.join(", ")
            )
        })
    })
}

fn is_member(status: &Status, node: NodeId) -> bool {
    status.ring.members.iter().any(|member| member.node == node)
}

fn list(nodes: &[NodeId]) -> String {
    if nodes.is_empty() {
        return "none".to_owned();
    }
    nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(" ")
}

fn ring(text: &mut String, status: &Status) {
    let ring = &status.ring;
    let quorum = match ring.quorate {
        Some(true) => "quorate",
        Some(false) => "no quorum",
        None => "quorum not yet known",
    };
    let members: Vec<NodeId> = ring.members.iter().map(|member| member.node).collect();
    let all = ring.configured.len();
    let (state, id, epoch, delivered) = (&ring.state, ring.id, ring.epoch, ring.delivered);
    line(
        text,
        format_args!("ring    {state}, {quorum} (epoch {epoch}), {id}, {delivered} delivered"),
    );
    let counted = members.iter().filter(|node| ring.configured.contains(node)).count();
    line(text, format_args!("nodes   {counted} of {all}: {}", list(&members)));
    if let Some(moving) = &status.nodes.moving {
        line(text, format_args!("        {}", coming_or_going(moving)));
    }
    match &status.seal {
        Some(seal) => {
            line(text, format_args!("sealed  with key {} ({})", seal.key, seal.fingerprint));
            if let Some(change) = &seal.change {
                line(text, format_args!("        {}", key_change(change)));
            }
        }
        None => line(text, format_args!("sealed  no: nothing on the ring is encrypted")),
    }
    if let Some(storage) = &status.storage {
        line(text, format_args!("storage {}", kept(storage)));
    }
    if status.client.is_some() {
        line(text, format_args!("clients {}", clients(status)));
    }
    let links = ring.links.first().map_or(0, |peer| peer.links.len());
    if links > 1 {
        let here = || ring.links.iter().filter(|peer| is_member(status, peer.node));
        let carry = |link: usize| {
            let up = here().filter(|peer| peer.links.get(link).is_some_and(|it| it.up)).count();
            format!("{} reaches {up} of {}", link + 1, here().count())
        };
        let all: Vec<String> = (0..links).map(carry).collect();
        line(text, format_args!("links   {}", all.join(", ")));
    }
}

/// How far a change of the nodes is.
fn coming_or_going(moving: &MovingStatus) -> String {
    let MovingStatus { node, comes, kept } = moving;
    let (moves, waits) = match comes {
        true => ("is coming", "it and a majority of the others have"),
        false => ("is going", "a majority of the others has"),
    };
    let kept = if kept.is_empty() { "nobody yet".into() } else { list(kept) };
    format!("{node} {moves}: once {waits} that on disk; so far {kept}")
}

/// How far a change of the cluster's key is.
pub fn key_change(change: &KeyChange) -> String {
    let KeyChange { key, fingerprint, switched, forced, lacking } = change;
    let stage = if *switched { "to seal with it" } else { "to store it" };
    let by_force = if *forced { ", without the absent nodes" } else { "" };
    format!("changing to key {key} ({fingerprint}){by_force}: waits for {} {stage}", list(lacking))
}

fn groups(text: &mut String, status: &Status) {
    if status.groups.is_empty() {
        text.push_str(match status.ring.quorate {
            Some(true) => "no groups: no node hosts a replica\n",
            _ => "no groups known: replicas join when there is a quorum\n",
        });
        return;
    }
    let head = ["GROUP", "VIEW", "PRIMARY", "REPLICAS", "SESSIONS", "EXECUTED", "STYLE", "ACK"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(status.groups.iter().map(|group| row(group, status)));
    for row in aligned(&rows) {
        line(text, format_args!("{row}"));
    }
    for (mark, meaning) in [
        ('(', "(n): this replica is receiving the state"),
        ('!', "n!: this replica cannot give, or cannot read, the state; the line above says why"),
        ('?', "n?: this node is not in the ring; the view is the last one known"),
    ] {
        if rows.iter().any(|row| row[REPLICAS].contains(mark)) {
            line(text, format_args!("{meaning}"));
        }
    }
    for group in &status.groups {
        if let Some(log) = &group.log {
            line(text, format_args!("{}", logged(&group.name, log)));
        }
    }
}

/// A line for each row, in columns.
pub fn aligned<const N: usize>(rows: &[[String; N]]) -> impl Iterator<Item = String> {
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    });
    rows.iter().map(move |row| {
        let cells = row.iter().zip(widths);
        let cells: Vec<String> = cells.map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    })
}

/// Returns the log of the asked node's replica of a cold passive group.
fn logged(group: &str, log: &LogStatus) -> String {
    let LogStatus { requests, bytes, checkpoint_bytes, checkpoint_age_ms, .. } = log;
    let since = match checkpoint_age_ms {
        Some(age) => {
            format!("a checkpoint of {checkpoint_bytes} bytes, {:.1} s ago", *age as f64 / 1e3)
        }
        None if *checkpoint_bytes > 0 => {
            format!("the transferred checkpoint of {checkpoint_bytes} bytes")
        }
        None => "the beginning".to_owned(),
    };
    format!("{group} has logged {requests} requests ({bytes} bytes) since {since}")
}

/// The column of the replicas.
const REPLICAS: usize = 3;

fn row(group: &GroupStatus, status: &Status) -> [String; 8] {
    let name = |node: NodeId| match is_member(status, node) {
        true => node.to_string(),
        false => format!("{node}?"),
    };
    let replicas: Vec<String> = group
        .replicas
        .iter()
        .map(|replica| {
            let mark = if group.has_state_trouble(replica.node) { "!" } else { "" };
            match replica.synced {
                true => format!("{}{mark}", name(replica.node)),
                false => format!("({}){mark}", name(replica.node)),
            }
        })
        .collect();
    // Only a node with a replica of its own knows these.
    let known = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    [
        group.name.clone(),
        group.view.to_string(),
        group.primary.map_or("none".to_owned(), |primary| name(primary.node)),
        replicas.join(" "),
        known(group.sessions.map(|sessions| sessions.to_string())),
        known(group.executed.map(|executed| executed.to_string())),
        group.style.to_string(),
        match group.style {
            Style::Stateless => "-".to_owned(),
            _ => {
                let disk = if group.durability == Durability::Disk { ", disk" } else { "" };
                format!("{:?}{disk}", group.ack).to_lowercase()
            }
        },
    ]
}

#[cfg(test)]
mod tests;
