//! How deeply idle processors sleep: what a call after a pause waits for.

use steadfast::NodeConfig;
use steadfast::realtime::{IdleState, awake_in_force, driver, idle_states, probe_awake};

use super::finding::{Finding, Verdict};

/// A state that takes longer to leave costs a call more than its protocol.
const DEEP_US: u128 = 50;

pub fn examine(config: &NodeConfig) -> Finding {
    let asked = config.realtime.wake_within.map(|within| within.as_micros());
    let Some(driver) = driver() else {
        return without_states(asked.is_some());
    };
    let states = idle_states();
    let mut says = format!("idle states of {driver}: {}", list(&states));
    if let Some(within) = awake_in_force() {
        says += &format!("; another program limits them to {} us now", within.as_micros());
    }
    verdict(asked, &states, probe_awake(), says)
}

fn list(states: &[IdleState]) -> String {
    let name = |state: &IdleState| format!("{} {} us", state.name, state.leaves_within.as_micros());
    states.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn without_states(asked: bool) -> Finding {
    let says = "this kernel halts idle processors, and has no idle states to choose from";
    if asked {
        let remedy = "remove realtime.wake_within_us; boot with idle=poll if calls after a pause \
                      must be quick";
        Finding::new(
            Verdict::Warning,
            NAME,
            format!("{says}: realtime.wake_within_us has no effect"),
            remedy,
        )
    } else {
        Finding::good(NAME, says)
    }
}

const NAME: &str = "sleeping cores";

/// `states` are what the driver says; a halted virtual processor takes longer than that to wake,
/// which the measured wake-ups below tell.
fn verdict(
    asked: Option<u128>,
    states: &[IdleState],
    permitted: Result<(), String>,
    says: String,
) -> Finding {
    let Some(asked) = asked else {
        let deep = states.iter().any(|state| state.leaves_within.as_micros() > DEEP_US);
        if !deep {
            return Finding::good(NAME, says);
        }
        let remedy =
            "if calls after a pause must be quick: realtime.wake_within_us, which costs power";
        return Finding::new(Verdict::Advice, NAME, says, remedy);
    };
    let says = format!("realtime.wake_within_us = {asked}; {says}");
    if let Err(why) = permitted {
        return Finding::new(Verdict::Warning, NAME, format!("{says}; it is not permitted"), why);
    }
    if states.iter().all(|state| state.leaves_within.as_micros() <= asked) {
        let remedy = "0 disables all idle states";
        let says = format!("{says}; no state is deeper, so it has no effect");
        return Finding::new(Verdict::Advice, NAME, says, remedy);
    }
    Finding::good(NAME, format!("{says}; it is permitted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> Vec<IdleState> {
        [("POLL", 0), ("C1", 2), ("C6", 133)].map(state).into()
    }

    fn state((name, micros): (&str, u64)) -> IdleState {
        let leaves_within = std::time::Duration::from_micros(micros);
        IdleState { name: name.into(), leaves_within }
    }

    fn judged(asked: Option<u128>, permitted: Result<(), String>) -> Finding {
        verdict(asked, &states(), permitted, list(&states()))
    }

    #[test]
    fn each_case_has_its_word() {
        let refused = || Err("a udev rule".to_owned());
        assert_eq!(judged(None, Ok(())).verdict, Verdict::Advice, "a deep state");
        assert_eq!(verdict(None, &states()[..2], Ok(()), String::new()).verdict, Verdict::Good);
        let found = judged(Some(2), refused());
        assert_eq!(
            (found.verdict, found.remedy.as_deref()),
            (Verdict::Warning, Some("a udev rule"))
        );
        assert_eq!(judged(Some(2), Ok(())).verdict, Verdict::Good);
        let found = judged(Some(133), Ok(()));
        assert_eq!(found.verdict, Verdict::Advice);
        assert!(found.says.contains("POLL 0 us, C1 2 us, C6 133 us"), "{}", found.says);
        assert_eq!(without_states(true).verdict, Verdict::Warning);
        assert_eq!(without_states(false).verdict, Verdict::Good);
    }
}
