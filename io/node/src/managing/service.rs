//! This node's replica of the cluster state (`docs/protocol/deployment.md`): an ordinary service of
//! an ordinary group, run on the data plane, which other threads may look into.

use std::sync::{Arc, Mutex, PoisonError};

use manager::cluster_state::{ClusterState, Command};
use wire::client::Refusal;

use crate::service::{BoxError, Call, Context, Service};
use engine::ServiceOutcome;

/// The cluster state as this node's replica has it. Whether that is the group's state, the table of
/// groups says.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedState(Arc<Mutex<Arc<ClusterState>>>);

impl SharedState {
    /// The present cluster state.
    pub fn cluster_state(&self) -> Arc<ClusterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change<T>(&self, change: impl FnOnce(&mut ClusterState) -> T) -> T {
        let mut cluster_state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Readers of the old one keep it; without any, nothing is copied.
        change(Arc::make_mut(&mut cluster_state))
    }
}

/// The service.
pub(crate) struct ManagerService(SharedState);

impl ManagerService {
    /// With an empty cluster state, which is on the shared from now on.
    pub fn new(shared: SharedState) -> ManagerService {
        shared.change(|cluster_state| *cluster_state = ClusterState::default());
        ManagerService(shared)
    }
}

impl Service for ManagerService {
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        if call.method != Command::METHOD {
            let reason = "the manager's group takes commands of nodes alone";
            return ServiceOutcome::Refused(Refusal::NoSuchMethod, reason.into());
        }
        let command = match Command::decode(call.body) {
            Ok(command) => command,
            Err(error) => {
                let reason = format!("no command of this version: {error}");
                return ServiceOutcome::Refused(Refusal::BadArguments, reason);
            }
        };
        match self.0.change(|cluster_state| cluster_state.apply(context.now(), command)) {
            Ok(answer) => {
                let bytes = postcard::to_allocvec(&answer).expect("an answer is plain data");
                ServiceOutcome::Ok(bytes.into())
            }
            Err(refusal) => ServiceOutcome::Error(refusal.to_string().into()),
        }
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.0.cluster_state().encode())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        let cluster_state =
            ClusterState::decode(state).map_err(|error| format!("no cluster state: {error}"))?;
        self.0.change(|old| *old = cluster_state);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use manager::cluster_state::Answer;
    use wire::{ClientId, NodeId, Share, Time};

    use super::*;

    #[test]
    fn what_is_said_is_shared_and_in_the_state() {
        let shared = SharedState::default();
        let mut service = ManagerService::new(shared.clone());
        let say = |service: &mut ManagerService, command: &Command| {
            let context = Context::new(Time(7), 1, ClientId(1), 1);
            let body = command.encode();
            service.call(&context, Call { method: Command::METHOD, json: false, body: &body })
        };
        let (node, labels, capacity) = (NodeId(3), Default::default(), Share::ONE);
        let introduce = Command::Introduce { node, labels, capacity };
        let done = postcard::to_allocvec(&Answer::Done).unwrap();
        assert_eq!(say(&mut service, &introduce), ServiceOutcome::Ok(done.into()));
        assert!(shared.cluster_state().node(node).is_some());
        let refused = say(&mut service, &Command::Return { node });
        assert!(matches!(refused, ServiceOutcome::Error(_)), "{refused:?}");

        let other = SharedState::default();
        let mut replica = ManagerService::new(other.clone());
        replica.restore(&service.snapshot().unwrap()).unwrap();
        assert_eq!(other.cluster_state(), shared.cluster_state());
        replica.restore(&[255; 9]).unwrap_err();
        assert_eq!(other.cluster_state(), shared.cluster_state(), "a bad state changes nothing");
        drop(ManagerService::new(shared.clone()));
        assert_eq!(*shared.cluster_state(), ClusterState::default(), "it begins anew");
    }
}
