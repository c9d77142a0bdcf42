//! The order on which the clusters of these tests are built.

use steadfast_engine::ordering::{InProcess, Ordering, Ring, Sequencer};
use wire::{ClusterId, Member, NodeId, Time};

use crate::harness::DELAY;

/// An order on which a cluster of this harness is built.
pub trait Base: Ordering + Sized {
    /// The data that its nodes share.
    type Shared;

    fn shared() -> Self::Shared;

    fn start(shared: &Self::Shared, now: Time, me: Member, nodes: Vec<NodeId>) -> Self;

    /// These nodes live and reach each other, and nobody else.
    fn components(shared: &Self::Shared, now: Time, components: &[Vec<NodeId>]);
}

impl Base for Ring {
    type Shared = ();

    fn shared() -> Self::Shared {}

    fn start((): &(), now: Time, me: Member, nodes: Vec<NodeId>) -> Ring {
        let config = ring::Config::new(ClusterId::of("test"), me, nodes);
        Ring::new(config, now).expect("the default knobs are right")
    }

    fn components((): &(), _: Time, _: &[Vec<NodeId>]) {
        // It finds out by itself.
    }
}

impl Base for InProcess {
    type Shared = Sequencer;

    fn shared() -> Sequencer {
        Sequencer::new(DELAY)
    }

    fn start(sequencer: &Sequencer, now: Time, me: Member, _: Vec<NodeId>) -> InProcess {
        sequencer.join(now, me)
    }

    fn components(sequencer: &Sequencer, now: Time, components: &[Vec<NodeId>]) {
        for component in components {
            sequencer.arrange(now, component);
        }
    }
}
