//! How a deployment goes on after it was ordered.

use std::time::{Duration, Instant};

use steadfast::About;
use steadfast::cluster_state::{Deployment, Fault, Program};
use steadfast::status::{DeploymentStatus, DeploymentsStatus, NoteStatus};

use crate::commands::wait::Look;

/// A replica's trouble with the state may be that of a program that is about to end, if it is not so
/// for so long.
const LASTS: Duration = Duration::from_secs(3);

/// The asked node may be so far behind the command that it has answered.
const BEHIND: Duration = Duration::from_millis(250);

/// The deployment that is waited for.
pub struct Progress {
    began: Instant,
    group: String,
    program: Program,
    /// Since when the same replicas have had the same trouble.
    trouble: Option<(Instant, Vec<NoteStatus>)>,
}

impl Progress {
    pub fn new(began: Instant, deployment: &Deployment) -> Progress {
        let Deployment { group, program, .. } = deployment.clone();
        Progress { began, group, program, trouble: None }
    }

    /// Looks whether all replicas have the state, or never will.
    pub fn look(&mut self, now: Instant, all: &DeploymentsStatus) -> Look {
        let found = all.deployments.iter().find(|it| it.deployment.group == self.group);
        let Some(it) = found else {
            return Look::NotYet(format!("{} is no longer deployed", self.group));
        };
        // The deployment has cleared what was taken back before.
        let ours = it.undone.as_ref().filter(|undone| undone.program == self.program);
        if let Some(undone) = ours.filter(|_| now >= self.began + BEHIND) {
            let (node, fault) = (undone.node, &undone.fault);
            return Look::Never(match fault {
                Fault::Refused(reason) => {
                    format!("refused: {node}: {reason}\nThe replicas run the former program")
                }
                fault => format!(
                    "rolled back: {node}: {fault}; the replicas go back to the former program (`steadfast programs` at {node}, and its \
                     log, tell more)"
                ),
            });
        }
        if it.settled && it.deployment.program == self.program {
            return Look::Done;
        }
        let troubles = self.lasting(now, it);
        match troubles.is_empty() {
            // The node itself ends an upgrade that does not go well.
            false if it.upgrade.is_none() => Look::Never(troubles.join("; ")),
            _ => Look::NotYet(missing(it)),
        }
    }

    /// Returns the things that replicas have not been able to do with the state for a while.
    fn lasting(&mut self, now: Instant, it: &DeploymentStatus) -> Vec<String> {
        let notes: Vec<NoteStatus> =
            it.notes.iter().filter(|note| note.about.is_trouble()).cloned().collect();
        if self.trouble.as_ref().is_none_or(|(_, before)| *before != notes) {
            self.trouble = Some((now, notes.clone()));
        }
        let since = self.trouble.as_ref().map_or(now, |(since, _)| *since);
        if now.duration_since(since) < LASTS {
            return Vec::new();
        }
        troubles(it)
    }

    /// Says which replicas' programs have dropped fields of the state.
    pub fn dropped(&self, all: &DeploymentsStatus) -> String {
        let it = all.deployments.iter().find(|it| it.deployment.group == self.group);
        let notes = it.iter().flat_map(|it| &it.notes);
        let dropped = notes.filter(|note| note.about == About::Dropped);
        dropped.map(|note| format!("  {}\n", note.fact())).collect()
    }
}

fn troubles(it: &DeploymentStatus) -> Vec<String> {
    let lacking = it.seats.iter().filter(|seat| seat.on && !seat.synced);
    let lacking: Vec<_> = lacking.map(|seat| seat.node).collect();
    let told = it.notes.iter().filter_map(|note| note.trouble(&it.deployment.group, &lacking));
    told.collect()
}

/// Why it is not done yet.
fn missing(it: &DeploymentStatus) -> String {
    let synced = it.seats.iter().filter(|seat| seat.on && seat.synced).count();
    let wanted = it.deployment.replicas;
    let mut text = format!("{synced} of {wanted} replicas have the state");
    for trouble in troubles(it) {
        text += &format!("; {trouble}");
    }
    for seat in it.seats.iter().filter(|seat| seat.on && !seat.synced) {
        if let Some(objection) = &seat.objection {
            text += &format!("; {}: {objection}", seat.node);
        }
    }
    text + ": see `steadfast deployments`"
}

#[cfg(test)]
mod tests {
    use steadfast::NodeId;
    use steadfast::cluster_state::{Undone, Upgrade};
    use steadfast::status::SeatStatus;

    use super::*;

    fn status(deployment: &Deployment, notes: Vec<NoteStatus>) -> DeploymentsStatus {
        let seat = |node, synced| SeatStatus {
            node: NodeId(node),
            on: true,
            synced,
            objection: None,
            flaws: None,
        };
        let deployment = DeploymentStatus {
            deployment: deployment.clone(),
            settled: false,
            upgrade: None,
            undone: None,
            notes,
            seats: vec![seat(1, true), seat(2, false)],
        };
        DeploymentsStatus { leads: None, nodes: Vec::new(), deployments: vec![deployment] }
    }

    fn never(look: Look) -> String {
        match look {
            Look::Never(why) => why,
            Look::Done => panic!("it is done"),
            Look::NotYet(why) => panic!("not yet: {why}"),
        }
    }

    #[test]
    fn a_refused_program_is_told_at_once_with_the_reason() {
        let deployment = Deployment::new("evo", vec!["./new".into()], 2);
        let mut all = status(&deployment, Vec::new());
        let it = &mut all.deployments[0];
        it.deployment.program.command = vec!["./old".into()];
        let fault = Fault::Refused("cannot read the state: missing field `credit`".into());
        let program = deployment.program.clone();
        it.undone = Some(Undone { program, node: NodeId(2), fault });
        let now = Instant::now();
        let mut progress = Progress::new(now, &deployment);
        assert!(matches!(progress.look(now, &all), Look::NotYet(_)), "it may be of before");
        let why = never(progress.look(now + BEHIND, &all));
        assert!(
            why.starts_with("refused: n2: cannot read the state: missing field `credit`"),
            "{why}"
        );
    }

    #[test]
    fn a_state_that_cannot_be_given_is_told_when_that_lasts_unless_an_upgrade_may_end_it() {
        let deployment = Deployment::new("evo", vec!["./new".into()], 2);
        let note = NoteStatus { node: NodeId(1), about: About::Give, text: "NaN".into() };
        let mut all = status(&deployment, vec![note]);
        let now = Instant::now();
        let mut progress = Progress::new(now, &deployment);
        assert!(
            matches!(progress.look(now, &all), Look::NotYet(why) if why.contains("given to n2: NaN"))
        );
        let why = never(progress.look(now + LASTS, &all));
        assert!(why.contains("its state cannot be given to n2: NaN"), "{why}");
        let from = deployment.program.clone();
        let (done, under_way) = (Default::default(), Some(NodeId(2)));
        all.deployments[0].upgrade = Some(Upgrade { from, done, under_way, undoes: false });
        assert!(matches!(progress.look(now + LASTS, &all), Look::NotYet(_)));
    }
}
