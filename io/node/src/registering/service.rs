//! This node's replica of the registry: an ordinary service of an ordinary group, run on the data
//! plane, which other threads may look into, and wait for.

use engine::ServiceOutcome;
use registry::{Ask, Command, Registry};
use serde::Serialize;
use wire::client::Refusal;

use crate::service::{BoxError, Call, Context, Service};
use crate::shared::Shared;

/// The registry as this node's replica has it.
pub(crate) type SharedRegistry = Shared<Registry>;

/// The service.
pub(crate) struct RegistryService(SharedRegistry);

impl RegistryService {
    /// With an empty registry, which is on the shared from now on.
    pub fn new(shared: SharedRegistry) -> RegistryService {
        shared.change(|registry| *registry = Registry::default());
        RegistryService(shared)
    }
}

impl Service for RegistryService {
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        if call.method == Ask::METHOD {
            return self.read(context, call);
        }
        if call.method != Command::METHOD {
            return no_such_method();
        }
        let command: Command = match decoded(&call) {
            Ok(command) => command,
            Err(refused) => return refused,
        };
        match self.0.change(|registry| registry.apply(context.now(), command)) {
            Ok(answer) => encoded(&call, &answer),
            Err(refusal) => ServiceOutcome::Error(refusal.to_string().into()),
        }
    }

    fn read(&self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        if call.method != Ask::METHOD {
            return no_such_method();
        }
        match decoded::<Ask>(&call) {
            Ok(ask) => encoded(&call, &self.0.get().answer(&ask)),
            Err(refused) => refused,
        }
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.0.get().encode())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        let registry = Registry::decode(state).map_err(|error| format!("no registry: {error}"))?;
        self.0.change(|held| *held = registry);
        Ok(())
    }
}

fn no_such_method() -> ServiceOutcome {
    let reason = "the registry has the methods command and ask, and only ask changes nothing";
    ServiceOutcome::Refused(Refusal::NoSuchMethod, reason.into())
}

fn decoded<T: serde::de::DeserializeOwned>(call: &Call<'_>) -> Result<T, ServiceOutcome> {
    let decoded = if call.json {
        serde_json::from_slice(call.body).map_err(|error| error.to_string())
    } else {
        postcard::from_bytes(call.body).map_err(|error| error.to_string())
    };
    decoded.map_err(|error| {
        let reason = format!("nothing that this version of the registry knows: {error}");
        ServiceOutcome::Refused(Refusal::BadArguments, reason)
    })
}

fn encoded(call: &Call<'_>, answer: &impl Serialize) -> ServiceOutcome {
    let bytes = if call.json {
        serde_json::to_vec(answer).expect("an answer is plain data")
    } else {
        postcard::to_allocvec(answer).expect("an answer is plain data")
    };
    ServiceOutcome::Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use registry::{Address, Answer, Epoch, Listing, Technique, Terms, Verdict};
    use wire::{ClientId, Duration, Time};

    use super::*;

    fn say(service: &mut RegistryService, command: &Command) -> ServiceOutcome {
        let context = Context::new(Time(7), 1, ClientId(1), 1);
        let body = command.encode();
        service.call(&context, Call { method: Command::METHOD, json: false, body: &body })
    }

    #[test]
    fn what_is_bound_is_shared_and_in_the_state_and_wakes_who_waits() {
        let shared = SharedRegistry::default();
        let mut service = RegistryService::new(shared.clone());
        let terms = Terms { technique: Technique::Lease, ..Terms::default() };
        let (name, address) = ("orders".to_owned(), Address::At("127.0.0.1:1".into()));
        let bind = Command::Bind { name, address, keeper: None, terms, seen: Epoch(0) };
        let waiting = shared.clone();
        let waiter = std::thread::spawn(move || {
            waiting.wait_while(Duration::from_secs(60), |registry| registry.epoch() == Epoch(0))
        });
        let done = Answer { verdict: Verdict::Bound(Epoch(1)), epoch: Epoch(1) };
        assert_eq!(
            say(&mut service, &bind),
            ServiceOutcome::Ok(postcard::to_allocvec(&done).unwrap().into())
        );
        assert!(!waiter.join().unwrap(), "the epoch is another one");
        let json =
            Call { method: Ask::METHOD, json: true, body: b"{\"name\":\"orders\",\"since\":null}" };
        let context = Context::new(Time(8), 1, ClientId(1), 2);
        let ServiceOutcome::Ok(bytes) = service.read(&context, json) else { panic!("it answers") };
        let listing: Listing = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(listing.bindings.unwrap().len(), 1);

        let other = SharedRegistry::default();
        let mut replica = RegistryService::new(other.clone());
        replica.restore(&service.snapshot().unwrap()).unwrap();
        assert_eq!(other.get(), shared.get());
        replica.restore(&[255; 9]).unwrap_err();
        assert_eq!(other.get(), shared.get(), "a bad state changes nothing");
        shared.stop();
        assert_eq!(shared.wait(u64::MAX, Duration::from_secs(60)), None);
    }
}
