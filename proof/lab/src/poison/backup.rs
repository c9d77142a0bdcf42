//! The group's state is saved while calls flow, the group ends, and resumes from the saved state:
//! here, and in a new cluster.

use history::{End, History};
use steadfast::admin::digest;
use steadfast::{Backup, NodeId};
use wire::Time;

use super::stage::{GROUP, NODES, Stage, plan};
use harness::Outcome;
use harness::cluster::Cluster;
use harness::objects::clients::{Book, Habit};
use harness::objects::evidence::Finding;

/// Calls that are answered before a state is saved, and before the group ends.
const FLOW: u64 = 500;

/// So often a state is saved while calls flow; the group goes on with the last.
const SAVES: usize = 3;

/// A saved state, and the time in which it was saved.
struct Saved {
    file: Vec<u8>,
    asked: Time,
    told: Time,
    /// When the group went on with it.
    back: Time,
}

/// Saves, ends, restores, compares; and the clients go on.
pub fn play(stage: &mut Stage<'_>) -> Result<(), Finding> {
    stage.call(Habit::default())?;
    for _ in 1..SAVES {
        stage.trial.wait_for_answers(FLOW)?;
        save(stage)?;
    }
    stage.close_round()?;
    stage.trial.wait_for_answers(FLOW)?;
    let mut saved = save(stage)?;
    stage.trial.wait_for_answers(FLOW)?;
    stage.trial.clients()?.hold()?;
    stage.trial.note("the group ends");
    stage.trial.cluster.stop_programs(GROUP)?;
    let node = draw(stage);
    restore(&mut stage.trial.cluster, node, &saved.file)?;
    saved.back = stage.trial.clients()?.now();
    stage.trial.note("it goes on with what was saved");
    let here = stage.trial.subject.state(&stage.trial.cluster)?;
    compare(&saved.file, &here)?;
    let mut other = Cluster::start(plan(stage.options, stage.group))?;
    restore(&mut other, NodeId(1), &saved.file)?;
    if stage.trial.subject.state(&other)? != here {
        return Err("restored in a new cluster the state is another than here".into());
    }
    drop(other);
    let book = stage.trial.close_round()?;
    stage.judge(saved.what_counts(book))?;
    stage.trial.clients()?.go_on();
    stage.trial.wait_for_answers(FLOW)?;
    stage.finish()
}

/// A node that has a replica.
fn draw(stage: &mut Stage<'_>) -> NodeId {
    NodeId(1 + stage.random.below(u64::from(NODES)) as u32)
}

fn save(stage: &mut Stage<'_>) -> Outcome<Saved> {
    let node = draw(stage);
    stage.trial.note(&format!("{node} saves the state"));
    let asked = stage.trial.clients()?.now();
    let file = stage.trial.cluster.node(node)?.save(GROUP)?;
    let told = stage.trial.clients()?.now();
    stage.counts.saves += 1;
    Ok(Saved { file, asked, told, back: Time::FAR })
}

/// Has a group without replicas begin with a state, and runs its programs.
fn restore(cluster: &mut Cluster, node: NodeId, file: &[u8]) -> Outcome<()> {
    cluster.node(node)?.restore(GROUP, file, false)?;
    cluster.run_programs()?;
    cluster.wait_until_well()
}

/// The replicas have what the file says, if it says all of it: a log behind a state has to be
/// executed first.
fn compare(file: &[u8], state: &[u8]) -> Outcome<()> {
    let (_, content) = Backup::decode(&file.to_vec().into())?;
    let told = content.service.filter(|_| content.logged == 0).map(|state| digest(&state));
    match told {
        Some(told) if told != digest(state) => {
            Err(format!("restored the state's digest is {}, saved it was {told}", digest(state))
                .into())
        }
        _ => Ok(()),
    }
}

impl Saved {
    /// The part of the records up to the group's end that counts: all calls answered before the
    /// state was requested, and none begun after it was returned. The saved state may have calls in
    /// between.
    fn what_counts(&self, book: Book) -> Book {
        let registers = self.of_history(&book.registers);
        let logs = self.of_history(&book.logs);
        Book { registers, logs, ..book }
    }

    fn of_history<C: Clone, R: Clone>(&self, history: &History<C, R>) -> History<C, R> {
        let mut kept = History::default();
        for one in history.operations() {
            // Calls after the restore come from the client that inspects it: they are kept.
            if one.invoked > self.told && one.invoked < self.back {
                continue;
            }
            let handle = kept.invoke(one.client, one.invoked, one.call.clone());
            match &one.end {
                End::Answered { at, reply } if *at < self.asked || one.invoked >= self.back => {
                    kept.answered(handle, *at, reply.clone());
                }
                End::Failed => kept.failed(handle),
                _ => {}
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use history::models::{LogCall, LogReply};

    use super::*;

    #[test]
    fn what_the_old_group_answered_after_the_save_is_lost_with_it() {
        let mut history = History::default();
        let mut call = |invoked, answered, key| {
            let handle = history.invoke(1, Time(invoked), LogCall::Append(key, 7));
            history.answered(handle, Time(answered), LogReply::Length(1));
        };
        call(10, 20, 1); // before the save
        call(90, 110, 2); // while it was saved
        call(105, 150, 3);
        call(205, 210, 4); // after it
        call(310, 320, 5); // of the restored group
        let saved = Saved { file: Vec::new(), asked: Time(100), told: Time(200), back: Time(300) };
        let kept = saved.of_history(&history);
        let answered = |one: &history::Operation<LogCall, LogReply>| one.answer().is_some();
        let seen: Vec<_> = kept.operations().iter().map(|one| (one.call, answered(one))).collect();
        let append = |key| LogCall::Append(key, 7);
        let expected =
            [(append(1), true), (append(2), false), (append(3), false), (append(5), true)];
        assert_eq!(seen, expected);
    }
}
