//! Checks the settings in force at a running node.

use std::time::Duration;

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
        Ok(status) => in_force(&status),
        Err(_) => {
            let says = format!("no node answers at {}", path.display());
            vec![Finding::good("running node", says)]
        }
    }
}

fn in_force(status: &Status) -> Vec<Finding> {
    let mut findings = vec![Finding::good(
        "running node",
        format!("{} is in state {}", status.node, status.ring.state),
    )];
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
