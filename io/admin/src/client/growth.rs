//! Asks about the cluster's nodes.

use config::NodeAddress;
use wire::NodeId;

use super::{AdminError, Client};
use crate::growth::WelcomeAnswer;
use crate::message::{DoneAnswer, Request};

impl Client {
    /// The nodes and the cluster's key, for a node that is to come: with its own certificate, or at
    /// a node's own host.
    ///
    /// # Errors
    /// The node refuses, or the connection broke.
    pub fn welcome(&mut self) -> Result<WelcomeAnswer, AdminError> {
        self.ask(&Request::Welcome {})
    }

    /// Has a node come: it counts once it is there, and a majority has kept that. It has begun when
    /// this returns; the status tells how far it is.
    ///
    /// # Errors
    /// The cluster refuses, or the connection broke.
    pub fn admit(&mut self, node: NodeAddress) -> Result<DoneAnswer, AdminError> {
        self.ask(&Request::Admit { node })
    }

    /// Has a node go for good. It has begun when this returns; the status tells how far it is.
    ///
    /// # Errors
    /// The cluster refuses, or the connection broke.
    pub fn retire(&mut self, node: NodeId) -> Result<DoneAnswer, AdminError> {
        self.ask(&Request::Retire { node })
    }

    /// Gives up the coming or going that is under way.
    ///
    /// # Errors
    /// There is none, the cluster refuses, or the connection broke.
    pub fn give_up_move(&mut self) -> Result<DoneAnswer, AdminError> {
        self.ask(&Request::GiveUpMove {})
    }
}
