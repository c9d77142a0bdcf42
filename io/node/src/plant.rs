//! A mistake planted in the engine of a real node, to prove that black-box tests find it.

/// Names the mistake, as `engine::Bug` spells it.
const VARIABLE: &str = "STEADFAST_PLANTED_BUG";

/// Plants the mistake that the environment names, if it does.
///
/// # Panics
/// If there is no such mistake.
pub(crate) fn into(config: &mut engine::Config) {
    let Ok(name) = std::env::var(VARIABLE) else { return };
    let bug = engine::Bug::all().find(|bug| format!("{bug:?}") == name);
    assert!(
        bug.is_some(),
        "{VARIABLE}={name}: the mistakes are {:?}",
        engine::Bug::all().collect::<Vec<_>>()
    );
    eprintln!("{VARIABLE}: {name} is planted in this node");
    config.bug = bug;
}
