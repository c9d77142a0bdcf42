//! How a replica tells its contract.

use node::{Call, ServiceOutcome};
use serde::Deserialize;
use wire::client::Refusal;

use super::{Contract, MAX_CONTRACT};
use crate::serve::{answer, refused};

/// Answers a call of [`DESCRIBE`](crate::DESCRIBE), for a [`Service`](crate::Service) that is
/// written by hand: in its `call` and in its `read`, since it changes nothing.
pub fn tell(call: &Call<'_>, contract: fn() -> Contract) -> ServiceOutcome {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, expecting = "no arguments")]
    struct NoArguments {}

    const SIGNATURE: &str = "steadfast.describe() -> Contract";
    if !call.json {
        let reason = format!("{SIGNATURE}: a contract is JSON: ask for it in JSON");
        return refused(Refusal::BadArguments, reason);
    }
    let told = answer(call, SIGNATURE, |NoArguments {}| contract());
    match &told {
        ServiceOutcome::Ok(json) if json.len() > MAX_CONTRACT => refused(
            Refusal::Failed,
            format!("the contract has {} bytes, at most {MAX_CONTRACT} are read", json.len()),
        ),
        _ => told,
    }
}
