//! A replica of the passenger information, in a process of its own that its node starts and minds.

use std::process::ExitCode;
use std::sync::Arc;

use steadfast::attach;

use super::child::{FAILED, say};
use super::network::Network;
use super::service::{PassengerInformation, PassengersService};

/// Runs the process, until its node needs it no more.
pub fn run() -> ExitCode {
    let network = Arc::new(Network::porto());
    let served = attach(move || PassengersService::new(PassengerInformation::new(network.clone())));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::from(FAILED)
        }
    }
}
