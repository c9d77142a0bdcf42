//! The explorer: small worlds are well in every order, and mistakes are found in them.

use steadfast_sim::explore::{Bound, Plan, STYLES, explore, read, repeat};
use steadfast_sim::run::{Plant, catch_panics};

#[test]
fn one_death_at_any_step_breaks_nothing_in_any_style() {
    catch_panics();
    for style in STYLES {
        let plan = Plan { calls: 1, ..Plan::new(style) };
        let (coverage, finding) = explore(plan, Bound::Delays(0), &|| false).unwrap();
        assert!(finding.is_none(), "{style}: {finding:?}");
        assert!(coverage.whole && coverage.bounded, "{style}: {coverage:?}");
        assert!(coverage.ends > 10, "deaths at many steps: {coverage:?}");
    }
}

#[test]
fn a_search_is_the_same_each_time() {
    catch_panics();
    let plan = Plan { calls: 1, ..Plan::new(STYLES[0]) };
    let search = || {
        let (coverage, _) = explore(plan, Bound::Delays(0), &|| false).unwrap();
        (coverage.states, coverage.transitions, coverage.ends, coverage.depth)
    };
    assert_eq!(search(), search());
}

#[test]
fn a_trace_is_repeated_from_its_text() {
    catch_panics();
    let plan = Plan { calls: 1, ..Plan::new(STYLES[0]) };
    let first = repeat(plan, &[], true).unwrap();
    assert!(first.violation.is_none() && first.text.contains("# no promise is broken"));
    let (again, steps) = read(&first.text, Plant::default()).unwrap();
    assert_eq!((again, &steps), (plan, &first.steps));
    let second = repeat(again, &steps, true).unwrap();
    assert_eq!(second.text, first.text);
    let impossible = read("world active calls 1 deaths 1\nrun 1\n", Plant::default()).unwrap();
    let error = repeat(impossible.0, &impossible.1, true).unwrap_err();
    assert!(error.contains("is not possible there"), "{error}");
}

#[cfg(feature = "planted-bugs")]
#[test]
fn mistakes_are_found_and_their_traces_can_be_repeated() {
    use steadfast_sim::explore::{Victims, shorten};
    use steadfast_sim::plants;
    use wire::ordered::Style;

    catch_panics();
    let few = Plan::new(Style::SemiActive);
    let deadly = Plan { deadly: true, deaths: 0, ..few };
    let cut = Plan { cuts: 1, deaths: 0, ..few };
    let warm = Plan { cuts: 1, ..Plan::new(Style::WarmPassive) };
    let cold = Plan { calls: 3, ..Plan::new(Style::ColdPassive) };
    // The leader that leaves in a trial, and answers before the order has its word.
    let trial = Plan { calls: 1, deaths: 2, leaves: 1, victims: Victims::Programs, ..few };
    let worlds = [
        ("AnswerTrialOnTheWayOut", trial),
        ("ExecuteEverywhere", deadly),
        ("RetryPoison", deadly),
        ("KeepStaleReplica", cut),
        ("ReplyBeforeUpdate", warm),
        ("ForgetCallsOfUpdates", warm),
        ("ReplayFromWrongPlace", cold),
        ("CutTooEarly", cold),
        ("ActiveAtOnce", Plan::new(Style::Active)),
    ];
    for (name, plan) in worlds {
        let (_, well) = explore(plan, Bound::Delays(0), &|| false).unwrap();
        assert!(well.is_none(), "{name}: without it, {well:?}");
        let plant = plants::named(Some(&format!("engine::{name}")))[0].1;
        let planted = Plan { plant, ..plan };
        let (_, finding) = explore(planted, Bound::Delays(0), &|| false).unwrap();
        let finding = finding.unwrap_or_else(|| panic!("{name} is not found"));
        let trace = shorten(planted, &finding, &|| false);
        assert!(trace.steps.len() <= finding.steps.len(), "{name}: {}", trace.text);
        let (again, steps) = read(&trace.text, plant).unwrap();
        let repeated = repeat(again, &steps, true).unwrap();
        let broken = repeated.violation.expect("it is broken again");
        assert_eq!(broken.property, finding.violation.property, "{name}");
    }
}
