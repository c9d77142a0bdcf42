//! Poisonous calls among others, and programs that are killed by hand at the same time.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use steadfast::{NodeId, Style};

use super::stage::{GROUP, NODES, Stage};
use harness::objects::clients::Habit;
use harness::objects::evidence::Finding;
use harness::objects::{Death, TIMEOUT};
use harness::{Outcome, bail, ensure};

/// After so many calls histories are judged, and others begun.
const ROUND: u64 = 5_000;

/// How often it is looked whether that is so.
const LOOK: Duration = Duration::from_millis(5);

/// Between two programs that are killed by hand, in milliseconds, and so much more at most.
const KILL_MS: (u64, u64) = (100, 900);

/// Calls of a group that are listed as poisonous at most.
const LISTED: u64 = 64;

/// How the arguments of [`Ask::Die`](harness::objects::Ask::Die) begin.
const DEADLY: &[u8] = b"{\"Die\":";

/// All calls, with a verdict every [`ROUND`].
pub fn play(stage: &mut Stage<'_>, longest: Option<Duration>) -> Result<(), Finding> {
    let (calls, poisonous) = (stage.options.calls, draw(stage));
    let wanted = poisonous.len();
    stage.call(Habit { calls, poisonous, ..Habit::default() })?;
    let (mut judged, mut kill) = (0, Instant::now());
    let mut last = (0, Instant::now());
    loop {
        let clients = stage.trial.clients()?;
        let (asked, good) = (clients.asked(), clients.good());
        if asked == calls {
            break;
        }
        if good > last.0 {
            last = (good, Instant::now());
        } else if last.1.elapsed() > TIMEOUT {
            bail!("no call was answered in {TIMEOUT:?}");
        }
        if asked >= judged + ROUND {
            judged = asked;
            stage.close_round()?;
        }
        if stage.options.kill && kill <= Instant::now() {
            let victim = NodeId(1 + stage.random.below(u64::from(NODES)) as u32);
            stage.kill_programs(&[victim])?;
            let wait = KILL_MS.0 + stage.random.below(KILL_MS.1);
            kill = Instant::now() + Duration::from_millis(wait);
        }
        thread::sleep(LOOK);
    }
    stage.finish()?;
    let poisoned = stage.counts.poisoned;
    ensure!(poisoned == wanted, "{poisoned} of {wanted} poisonous calls ended as such");
    check_list(stage)?;
    match (stage.gaps.around_poison(), longest) {
        (Some(gap), Some(most)) if gap.p99 > most.as_secs_f64() * 1e6 => {
            let gap = gap.p99 / 1e3;
            Err(format!(
                "the others' gap around poison is {gap:.1} ms at p99, at most {most:?} are allowed"
            )
            .into())
        }
        _ => Ok(()),
    }
}

/// Which calls are poisonous, and how.
fn draw(stage: &mut Stage<'_>) -> BTreeMap<u64, Death> {
    let (calls, deaths) = (stage.options.calls, &stage.options.deaths);
    let mut drawn = BTreeMap::new();
    while (drawn.len() as u64) < stage.options.poisonous {
        let death = deaths[drawn.len() % deaths.len()];
        drawn.insert(stage.random.below(calls), death);
    }
    drawn
}

/// Every node lists the last of these calls, and no other; of a cold passive group the primary's
/// does, which is the last here.
fn check_list(stage: &Stage<'_>) -> Outcome<()> {
    let wanted = stage.options.poisonous.min(LISTED);
    let deadly: String = DEADLY.iter().map(|byte| format!("{byte:02x}")).collect();
    let first = if stage.group.style == Style::ColdPassive { NODES } else { 1 };
    for id in (first..=NODES).map(NodeId) {
        let calls = stage.trial.cluster.node(id)?.poisoned(GROUP)?.calls;
        if calls.len() as u64 != wanted {
            let listed = calls.len();
            bail!("{id} lists {listed} poisonous calls, not {wanted}");
        }
        if let Some(innocent) = calls.iter().find(|call| !call.arguments_hex.starts_with(&deadly)) {
            bail!("{id} lists a call that kills nobody: {innocent:?}");
        }
    }
    Ok(())
}
