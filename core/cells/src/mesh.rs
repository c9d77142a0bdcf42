//! A mesh: every cell knows every cell, and talks to it directly.
//!
//! Cells tell each other of cells over the links that are there. A newer stamp replaces an older
//! one, and what is news goes on to the other neighbours.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::Time;
use wire::path::Path;

use crate::cell::Cell;
use crate::command::Place;
use crate::limits::MAX_MEMBERS;
use crate::message::MemberCell;
use crate::overlay::Overlay;

/// The knowledge that one cell has of all.
#[derive(Clone, Debug, Default)]
pub struct Mesh {
    members: BTreeMap<Path, MemberCell>,
}

impl Mesh {
    fn learn(&mut self, member: MemberCell) -> bool {
        let path = &member.place.path;
        let known = self.members.get(path);
        let is_news = match known {
            Some(known) => known.stamp < member.stamp,
            None => self.members.len() < MAX_MEMBERS,
        };
        if is_news {
            self.members.insert(path.clone(), member);
        }
        is_news
    }
}

impl Overlay for Mesh {
    fn shortcut(&mut self, _: Time, to: &Path) -> Option<Place> {
        self.members.get(to).map(|member| member.place.clone()).filter(|it| !it.at.is_empty())
    }

    fn handle_own(&mut self, wall: Time, cell: &Cell, at: &dyn Fn() -> Vec<SocketAddr>) {
        let at = at();
        let known = self.members.get(cell.path());
        if known.is_none_or(|known| known.place.at != at) {
            let place = Place { path: cell.path().clone(), at };
            // A book that begins anew is later, and so is each change.
            let stamp = known.map_or(cell.founded(), |known| known.stamp + 1);
            self.learn(MemberCell { place, stamp: stamp.max(wall.0 / 1_000) });
        }
    }

    fn handle_members(&mut self, _: Time, members: Vec<MemberCell>) -> Vec<MemberCell> {
        members.into_iter().filter(|member| self.learn(member.clone())).collect()
    }

    fn members(&self) -> Vec<MemberCell> {
        self.members.values().cloned().collect()
    }
}
