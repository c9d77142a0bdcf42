//! The services that are built into the program, for `[[replica]]` entries of a configuration.

use serde::{Deserialize, Serialize};
use steadfast::contract::tell;
use steadfast::{BoxError, Call, Context, Contract, DESCRIBE, Schema, Service, ServiceOutcome};

/// Why a counter does not count.
#[derive(Debug, thiserror::Error, Serialize, Deserialize, Schema)]
pub enum CounterError {
    /// The sum would not fit.
    #[error("the counter stands at {0} and cannot take that much more")]
    Overflow(u64),
}

/// A number that is added to.
#[steadfast::service]
pub trait Counter {
    /// Adds `n` and returns the sum.
    ///
    /// # Errors
    /// The sum would not fit.
    fn add(&mut self, n: u64) -> Result<u64, CounterError>;

    /// The sum.
    fn get(&self) -> u64;
}

#[derive(Default, Serialize, Deserialize)]
pub struct Tally(u64);

impl Counter for Tally {
    fn add(&mut self, n: u64) -> Result<u64, CounterError> {
        self.0 = self.0.checked_add(n).ok_or(CounterError::Overflow(self.0))?;
        Ok(self.0)
    }

    fn get(&self) -> u64 {
        self.0
    }
}

/// Returns the arguments unchanged, whatever the method: for measurements and first steps.
pub struct Echo;

impl Echo {
    fn answer(call: &Call<'_>) -> ServiceOutcome {
        match call.method {
            DESCRIBE if call.json => tell(call, Echo::contract),
            _ => ServiceOutcome::Ok(call.body.to_vec().into()),
        }
    }

    fn contract() -> Contract {
        Contract {
            service: "Echo".to_owned(),
            docs: "Returns the arguments unchanged, whatever the method.".to_owned(),
            encodings: vec!["postcard".to_owned(), "json".to_owned()],
            ..Contract::default()
        }
    }
}

impl Service for Echo {
    fn call(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        Echo::answer(&call)
    }

    fn read(&self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        Echo::answer(&call)
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), BoxError> {
        Ok(())
    }
}
