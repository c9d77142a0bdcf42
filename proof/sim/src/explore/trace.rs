//! A way through a world as text: how it is told, repeated and shortened.

use super::choice::Choice;
use super::plan::Plan;
use super::search::{Finding, MOST_STEPS};
use super::world::World;
use crate::check::{Verdict, Violation};
use crate::plant::Plant;

/// A way through a world, and how it ends.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The world.
    pub plan: Plan,
    /// The steps.
    pub steps: Vec<Choice>,
    /// The promise that it breaks, if it does.
    pub violation: Option<Violation>,
    /// All in words, from which it can be repeated.
    pub text: String,
}

/// Repeats these steps, and then all that goes on by itself if `on`. Puts down what happens.
///
/// # Errors
/// A step is not possible where it stands.
pub fn repeat(plan: Plan, steps: &[Choice], on: bool) -> Result<Trace, String> {
    let mut text = format!("{}\n", plan.in_words());
    let mut taken = Vec::new();
    let mut world = match World::new(plan) {
        Ok(world) => world,
        Err(violation) => {
            return Ok(Trace { plan, steps: taken, violation: Some(violation), text });
        }
    };
    world.speak();
    let mut broken: Verdict = Ok(());
    for (at, step) in steps.iter().enumerate() {
        if !is_possible(&world, step) {
            return Err(format!(
                "step {} ({step}: {}) is not possible there: {text}",
                at + 1,
                step.in_words()
            ));
        }
        broken = tell(&mut world, step, &mut text);
        taken.push(step.clone());
        if broken.is_err() {
            break;
        }
    }
    while on && broken.is_ok() && taken.len() < MOST_STEPS {
        let Some(next) = world.ears().into_iter().chain(world.enabled()).next() else { break };
        broken = tell(&mut world, &next, &mut text);
        taken.push(next);
    }
    if broken.is_ok() && world.ears().is_empty() && world.enabled().is_empty() {
        broken = world.end();
    }
    match &broken {
        Ok(()) => text += "# no promise is broken\n",
        Err(violation) => text += &format!("# BROKEN {violation}\n"),
    }
    Ok(Trace { plan, steps: taken, violation: broken.err(), text })
}

/// One step happens, and is put down.
fn tell(world: &mut World, step: &Choice, text: &mut String) -> Verdict {
    *text += &format!("{:<14}# {}\n", step.to_string(), step.in_words());
    let verdict = world.apply(step);
    for said in world.spoken() {
        *text += &format!("#   {said}\n");
    }
    verdict
}

fn is_possible(world: &World, step: &Choice) -> bool {
    [world.enabled(), world.ears(), world.unusual(), world.faults()].concat().contains(step)
}

/// Reads a trace: the world, then a step in each line. What follows `#` is for people.
///
/// # Errors
/// A line is no step.
pub fn read(text: &str, plant: Plant) -> Result<(Plan, Vec<Choice>), String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut lines = lines.filter(|line| !line.is_empty());
    let plan = Plan::read(lines.next().unwrap_or_default())?;
    let steps: Result<Vec<Choice>, String> = lines.map(Choice::read).collect();
    Ok((Plan { plant, ..plan }, steps?))
}

/// Leaves out all steps without which the same promise is still broken, until `is_over`.
pub fn shorten(plan: Plan, finding: &Finding, is_over: &dyn Fn() -> bool) -> Trace {
    let property = finding.violation.property;
    let breaks = |steps: &[Choice]| -> Option<Vec<Choice>> {
        let mut world = World::new(plan).ok()?;
        let mut taken = Vec::new();
        let mut happens = |world: &mut World, step: &Choice| {
            taken.push(step.clone());
            match world.apply(step) {
                Err(violation) if violation.property == property => Err(Some(taken.clone())),
                Err(_) => Err(None),
                Ok(()) => Ok(()),
            }
        };
        for step in steps {
            if is_possible(&world, step)
                && let Err(broken) = happens(&mut world, step)
            {
                return broken;
            }
        }
        while let Some(next) = world.ears().into_iter().chain(world.enabled()).next() {
            if let Err(broken) = happens(&mut world, &next) {
                return broken;
            }
            if world.steps() as usize >= MOST_STEPS {
                break;
            }
        }
        let broken = world.end().is_err_and(|violation| violation.property == property);
        broken.then_some(taken)
    };
    let mut steps = finding.steps.clone();
    let mut piece = (steps.len() / 2).max(1);
    loop {
        let mut at = 0;
        while at < steps.len() && !is_over() {
            let upto = (at + piece).min(steps.len());
            let rest = [&steps[..at], &steps[upto..]].concat();
            match breaks(&rest) {
                // The rest goes on by itself.
                Some(taken) if taken.len() < steps.len() => steps = taken,
                _ => at = upto,
            }
        }
        if piece == 1 || is_over() {
            break;
        }
        piece /= 2;
    }
    let told = repeat(plan, &steps, true);
    told.unwrap_or_else(|error| {
        let violation = Some(finding.violation.clone());
        Trace { plan, steps, violation, text: format!("# it cannot be repeated: {error}\n") }
    })
}
