//! The data plane, as the supervisor's thread sees it.

use std::fs::File;
use std::os::unix::net::UnixStream;

use bytes::BytesMut;
use engine::Event;
use wire::GroupId;
use wire::ordered::GroupOptions;

use crate::tether::Tether;

/// A program that has shown its token, on its way to the data plane.
pub struct Attaching {
    /// Its connection.
    pub stream: UnixStream,
    /// Bytes that came behind its introduction.
    pub input: BytesMut,
    /// The way back to the supervisor.
    pub tether: Tether,
    /// Where it says which call it begins, if it can.
    pub begins: Option<File>,
    /// Its service merges states.
    pub merges: bool,
}

/// Takes the replicas of programs, and what is to be told of them. A data plane that has ended does
/// nothing.
pub trait DataPlane: Send {
    /// Has the program serve this node's replica of the group.
    fn attach(&self, name: String, options: GroupOptions, program: Attaching);

    /// Hosts the replica of a program that is started when its service is to run.
    fn stand_by(&self, name: String, options: GroupOptions, tether: Tether);

    /// Has the replica of this start of a program leave its group. `lost`: the program is gone.
    fn part(&self, group: GroupId, run: u64, lost: bool);

    /// Tells people of something.
    fn tell(&self, event: Event);
}
