//! Groups of the cell that other cells ask for: each is followed until nobody asks any more.

use std::collections::BTreeMap;
use std::time::Duration;

use client::{AsyncClient, Followed};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use wire::client::Targets;

use crate::inbound::{Inbound, Tell};
use crate::own::Own;

/// A client that has ended is asked again after this time.
const AGAIN: Duration = Duration::from_millis(100);

/// The followers. They end with this.
#[derive(Debug)]
pub(crate) struct Groups {
    own: Own,
    /// Clients of other cells may go to the targets.
    direct: bool,
    tell: Tell,
    followers: BTreeMap<String, Follower>,
    next: u64,
}

#[derive(Debug)]
struct Follower {
    number: u64,
    task: JoinHandle<()>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Groups {
    pub fn new(own: Own, direct: bool, tell: Tell) -> Groups {
        Groups { own, direct, tell, followers: BTreeMap::new(), next: 0 }
    }

    /// Tells the targets of this group, now and when they change.
    pub fn locate(&mut self, group: String) {
        self.next += 1;
        let number = self.next;
        let (own, tell, name) = (self.own.clone(), self.tell.clone(), group.clone());
        let direct = self.direct;
        let task = tokio::spawn(async move {
            loop {
                let client = own.client().await;
                if follow(client, (&name, number), direct, &tell).await.is_none() {
                    return;
                }
                sleep(AGAIN).await;
            }
        });
        self.followers.insert(group, Follower { number, task });
    }

    pub fn forget(&mut self, group: &str) {
        self.followers.remove(group);
    }

    /// This follower's group is asked for still.
    pub fn follows(&self, group: &str, number: u64) -> bool {
        self.followers.get(group).is_some_and(|follower| follower.number == number)
    }
}

/// Follows a group until the client ends. `None`: nobody listens.
async fn follow(
    client: &AsyncClient,
    (group, follower): (&str, u64),
    direct: bool,
    tell: &Tell,
) -> Option<()> {
    let Ok(mut told) = client.follow(group).await else { return Some(()) };
    loop {
        let targets = targets(&told.borrow_and_update());
        if let Some(mut targets) = targets {
            if !direct {
                targets.iter_mut().for_each(|targets| targets.nodes.clear());
            }
            let group = group.to_owned();
            tell.send(Inbound::Located { group, follower, targets }).await.ok()?;
        }
        if told.changed().await.is_err() {
            return Some(());
        }
    }
}

/// The answer to a question for the group; `None`: not yet.
fn targets(followed: &Followed) -> Option<Option<Targets>> {
    match followed {
        Followed::Unknown => None,
        Followed::Absent => Some(None),
        Followed::Known(targets) => Some(Some(targets.clone())),
    }
}
