//! Checks the settings in force at a running node.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use os::threads::ordinary;
use rustix::net::sockopt::socket_peercred;
use steadfast::NodeConfig;
use steadfast::admin::Client;
use steadfast::status::{Grant, Status};

use super::finding::{Finding, Verdict};

const TIMEOUT: Duration = Duration::from_secs(2);

pub fn examine(config: &NodeConfig) -> Vec<Finding> {
    let Some(path) = &config.admin else {
        return vec![Finding::new(
            Verdict::Advice,
            "running node",
            "the configuration names no admin socket, so the node cannot be asked",
            "admin = \"/run/steadfast/node.sock\"",
        )];
    };
    let asked = Client::connect(path).and_then(|mut client| {
        client.set_timeout(Some(TIMEOUT))?;
        client.status()
    });
    match asked {
        Ok(status) => {
            let mut findings = in_force(&status);
            if status.realtime.helper_priority == Grant::InForce {
                findings.push(threads(path));
            }
            findings
        }
        Err(_) => {
            let says = format!("no node answers at {}", path.display());
            vec![Finding::good("running node", says)]
        }
    }
}

/// The threads of the node that listens at this socket: an ordinary one holds a killed node's sockets
/// open for as long as others compute.
fn threads(socket: &Path) -> Finding {
    let node = UnixStream::connect(socket).and_then(|it| Ok(socket_peercred(&it)?.pid));
    let found = node.and_then(|node| ordinary(u32::try_from(node.as_raw_nonzero().get()).ok()));
    match found {
        Ok(names) => class_of(&names),
        Err(error) => Finding::new(
            Verdict::Advice,
            "ordinary threads",
            format!("the node's threads are not to be seen ({error})"),
            "run the command on the node's host, as its user, with /proc mounted",
        ),
    }
}

fn class_of(ordinary: &[String]) -> Finding {
    if ordinary.is_empty() {
        return Finding::good("ordinary threads", "none: each has a real-time priority");
    }
    let (count, names) = (ordinary.len(), ordinary.join(", "));
    Finding::new(
        Verdict::Warning,
        "ordinary threads",
        format!(
            "{count} of the node's threads are SCHED_OTHER and wait behind all that others compute: \
             {names}"
        ),
        "set [realtime] executor_priority for threads named `replica`, priority or runtime_us for \
         `steadfast plane`; start a program's own threads with steadfast::threads::spawn",
    )
}

fn in_force(status: &Status) -> Vec<Finding> {
    let mut findings = vec![Finding::good(
        "running node",
        format!("{} is in state {}", status.node, status.ring.state),
    )];
    findings.extend(match &status.closer.standing {
        Grant::NotAsked => None,
        Grant::InForce => Some(Finding::good(
            "closer",
            format!("process {} has a killed node's sockets close at once", status.closer.process),
        )),
        Grant::Refused(why) => Some(Finding::new(
            Verdict::Warning,
            "closer",
            "none: the more memory the node has, the later its death is noticed",
            why.clone(),
        )),
    });
    for (knob, grant) in status.realtime.grants() {
        findings.push(match grant {
            Grant::NotAsked => continue,
            Grant::InForce => Finding::good("in force", format!("realtime.{knob}")),
            Grant::Refused(why) => Finding::new(
                Verdict::Warning,
                "not in force",
                format!("realtime.{knob}: the system refused it to the running node"),
                why.clone(),
            ),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_threads_are_named_with_the_remedy() {
        assert_eq!(class_of(&[]).verdict, Verdict::Good);
        let found = class_of(&["replica orders".into(), "tokio-rt-worker".into()]);
        assert_eq!(found.verdict, Verdict::Warning);
        assert!(found.says.contains("2 of the node's") && found.says.contains("tokio-rt-worker"));
        assert!(found.remedy.unwrap().contains("executor_priority"));
    }
}
