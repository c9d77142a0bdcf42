//! Saves and restores.

use proptest::option;
use proptest::prelude::*;
use wire::GroupId;
use wire::ordered::{BackupStep, Deposit, Form};

use super::{member, name, options};

pub fn deposit() -> impl Strategy<Value = Option<Deposit>> {
    let deposit = (member(), any::<u64>(), form(), any::<bool>())
        .prop_map(|(holder, number, form, pending)| Deposit { holder, number, form, pending });
    option::of(deposit)
}

pub fn step() -> impl Strategy<Value = BackupStep> {
    let save = any::<[u64; 2]>()
        .prop_map(|[group, number]| BackupStep::Save { group: GroupId(group), number });
    let discard = any::<[u64; 2]>()
        .prop_map(|[group, number]| BackupStep::Discard { group: GroupId(group), number });
    let deposit = (name(), options(), form(), any::<u64>(), any::<bool>()).prop_map(
        |(name, options, form, number, replace)| BackupStep::Deposit {
            name,
            options,
            form,
            number,
            replace,
        },
    );
    prop_oneof![save, deposit, discard]
}

fn form() -> impl Strategy<Value = Form> {
    prop_oneof![Just(Form::State), Just(Form::Log)]
}
