//! The links by which a call or a question goes on.

use alloc::vec::Vec;

use wire::path::Path;

use super::links::Links;
use super::sight::Sight;
use crate::message::Course;
use crate::output::LinkId;

/// The course of what came so, when it goes on by this link.
pub(super) fn course_by(course: Course, link: LinkId, sight: &Sight<'_>, links: &Links) -> Course {
    let own = sight.cell.path();
    let to = links.path_of(link);
    Course {
        is_down: course.is_down || to.is_some_and(|to| to.is_below(own)),
        beside: if to == Some(own) { course.beside.saturating_add(1) } else { 0 },
    }
}

/// The links by which a cell is reached, the best first: its own, that of the cell below that it is
/// within, or the way up. The last ones go by the cell's other carriers.
pub(super) fn next_hops(
    to: &Path,
    course: Course,
    sight: &Sight<'_>,
    links: &Links,
    up: Option<LinkId>,
) -> Vec<LinkId> {
    let own = sight.cell.path();
    let mut hops: Vec<LinkId> = links.to(to).collect();
    if to.is_below(own) {
        // The attached cells that it is within, the nearest first: one that has gone back to its
        // parent is known here until its lease ends, and has no link.
        let within = sight.cell.children().filter(|(path, _)| to.is_within(path));
        let mut within: Vec<&Path> = within.map(|(path, _)| path).collect();
        within.sort_unstable_by_key(|path| core::cmp::Reverse(path.depth()));
        hops.extend(within.into_iter().flat_map(|path| links.to(path)));
    }
    // Also to a cell below: one that has lost its way here is attached further up.
    hops.extend(up.filter(|_| !course.is_down));
    hops.extend(links.to(own).filter(|_| course.may_go_beside()));
    let mut seen = Vec::new();
    hops.retain(|link| {
        !seen.contains(link) && {
            seen.push(*link);
            true
        }
    });
    hops
}
