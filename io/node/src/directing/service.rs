//! This node's replica of the book of jobs: an ordinary service of an ordinary group, run on the data
//! plane, which other threads may look into, and wait for.

use engine::ServiceOutcome;
use job::{Command, Jobs};
use wire::client::Refusal;

use crate::service::{BoxError, Call, Context, Service};
use crate::shared::Shared;

/// The service.
pub(crate) struct JobsService(Shared<Jobs>);

impl JobsService {
    /// With an empty book, which is on the shared from now on.
    pub fn new(shared: Shared<Jobs>) -> JobsService {
        shared.change(|jobs| *jobs = Jobs::default());
        JobsService(shared)
    }
}

impl Service for JobsService {
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        if call.method != Command::METHOD {
            let reason = "the book of jobs takes commands of nodes alone";
            return ServiceOutcome::Refused(Refusal::NoSuchMethod, reason.into());
        }
        let command = match Command::decode(call.body) {
            Ok(command) => command,
            Err(error) => {
                let reason = format!("no command of this version: {error}");
                return ServiceOutcome::Refused(Refusal::BadArguments, reason);
            }
        };
        let answer = self.0.change(|jobs| jobs.take(context.now(), &command));
        let bytes = postcard::to_allocvec(&answer).expect("an answer is plain data");
        ServiceOutcome::Ok(bytes.into())
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.0.get().encode())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        let jobs = Jobs::decode(state).map_err(|error| format!("no book of jobs: {error}"))?;
        self.0.change(|held| *held = jobs);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use job::{Spec, Taken, Void};
    use wire::{ClientId, Duration, Time};

    use super::*;

    #[test]
    fn what_is_submitted_is_shared_and_in_the_state_and_wakes_who_waits() {
        let shared = Shared::<Jobs>::default();
        let mut service = JobsService::new(shared.clone());
        let mut say = |command: &Command| {
            let context = Context::new(Time(7_000_000), 1, ClientId(1), 1);
            let body = command.encode();
            let call = Call { method: Command::METHOD, json: false, body: &body };
            match service.call(&context, call) {
                ServiceOutcome::Ok(bytes) => {
                    postcard::from_bytes::<Result<Taken, Void>>(&bytes).unwrap()
                }
                other => panic!("{other:?}"),
            }
        };
        let waiting = shared.clone();
        let waiter = std::thread::spawn(move || {
            waiting.wait_while(Duration::from_secs(60), |jobs| jobs.version() == 0)
        });
        let command = vec!["true".into()];
        let spec = Spec { name: "one".into(), command, ranks: 1, copies: 1, ..Spec::default() };
        assert_eq!(say(&Command::Submit(spec)), Ok(Taken { version: 1, job: Some(7) }));
        assert!(!waiter.join().unwrap(), "there is another version");
        assert_eq!(say(&Command::Kill { job: 9 }), Err(Void::Unknown));
        let state = service.snapshot().unwrap();
        let other = Shared::<Jobs>::default();
        let mut replica = JobsService::new(other.clone());
        replica.restore(&state).unwrap();
        assert_eq!(other.get(), shared.get());
        replica.restore(&[255; 9]).unwrap_err();
        assert_eq!(other.get(), shared.get(), "a bad state changes nothing");
    }
}
