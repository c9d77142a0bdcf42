//! Where ranks start, and where they go on: at hosts that are valid, and away from those that are being
//! emptied or where they fail.

use std::collections::BTreeSet;

use image::{Parent, Place};
use steadfast_job::{
    Command, Director, End, Host, JobState, Jobs, MAX_FAILED, Rank, RankState, Sight, Spec, Void,
    Why,
};
use wire::{Duration, Incarnation, Member, NodeId, Time};

fn node(number: u32) -> Member {
    Member { node: NodeId(number), incarnation: Incarnation(1) }
}

/// A book with one job of one rank, and the director beside it.
struct World {
    now: Time,
    book: Jobs,
    director: Director,
    sight: Sight,
    job: u64,
}

impl World {
    /// Hosts of these kinds, by node from 1.
    fn new(spec: Spec, kinds: &[&str]) -> World {
        let mut book = Jobs::default();
        let spec = Spec {
            name: "sum".into(),
            command: vec!["sum".into()],
            ranks: 1,
            copies: spec.copies.max(1),
            ..spec
        };
        let job = book.take(Time(1), &Command::Submit(spec)).unwrap().job.unwrap();
        let members: Vec<Member> = (1..).zip(kinds).map(|(number, _)| node(number)).collect();
        let sight = Sight { members, ..Sight::default() };
        let mut world = World { now: Time(1), book, director: Director::default(), sight, job };
        for (number, kind) in (1..).zip(kinds) {
            let host = Host { kind: (*kind).into(), processors: 2, ..Host::default() };
            world.take(&Command::Introduce { node: node(number), host });
        }
        world
    }

    fn take(&mut self, command: &Command) {
        self.book.take(self.now, command).unwrap_or_else(|void| panic!("{command:?}: {void}"));
    }

    /// The director looks until it has nothing to say, and waits for nothing.
    fn direct(&mut self) {
        for _ in 0..100 {
            self.now += Duration::from_secs(10);
            let commands = self.director.look(self.now, &self.sight, &self.book);
            let due = self.director.next_look(self.now, &self.book);
            if commands.is_empty() && due.is_none() {
                return;
            }
            commands.iter().for_each(|command| self.take(command));
        }
        panic!("the director says the same again and again");
    }

    fn rank(&self) -> &Rank {
        &self.book.job(self.job).unwrap().ranks[0]
    }

    /// The node where it runs.
    fn at(&self) -> Option<u32> {
        match self.rank().state {
            RankState::At(node) => Some(node.node.0),
            _ => None,
        }
    }

    /// The rank saves a full image, or an increment on the last one.
    fn save(&mut self, full: bool) -> Place {
        let RankState::At(holder) = self.rank().state else { panic!("it does not run") };
        let below = self.rank().images.generations().next_back();
        let parent = below.map(|image| Parent { place: image.place, root: image.root });
        let (start, generation) = (self.rank().start, self.rank().images.next());
        let place = Place { job: self.job, rank: 0, start, generation };
        self.take(&Command::Commit {
            place,
            root: [generation as u8; 32],
            bytes: 9,
            step: generation,
            parent: parent.filter(|_| !full),
            holder,
            talks: false,
            counts: Vec::new(),
        });
        place
    }

    /// A node gets a copy.
    fn get(&mut self, place: Place, number: u32) {
        let root = [place.generation as u8; 32];
        self.take(&Command::Held { place, root, holder: node(number) });
    }

    fn ends(&mut self, end: End) {
        let (job, start, at) = (self.job, self.rank().start, self.now);
        self.take(&Command::Ended { job, rank: 0, start, end, at });
    }
}

#[test]
fn a_rank_leaves_a_drained_node_when_all_but_the_last_is_elsewhere() {
    let mut world = World::new(Spec::default(), &["a", "a", "b"]);
    world.direct();
    assert_eq!(world.at(), Some(1));
    let first = world.save(true);
    world.sight.drained.insert(NodeId(1));
    world.direct();
    assert_eq!(world.rank().moves.map(|moves| moves.to), Some(NodeId(2)), "n3 is of another kind");
    assert_eq!(world.rank().keepers, BTreeSet::from([NodeId(2)]));
    assert_eq!(world.rank().saves, 1, "it is asked for what it has done since");
    world.get(first, 2);
    assert_eq!(world.at(), Some(1), "that was saved before");
    let second = world.save(false);
    world.get(second, 2);
    assert_eq!((world.at(), world.rank().saves), (Some(1), 2), "a last, small one is to follow");
    let third = world.save(false);
    world.get(third, 3);
    assert_eq!(world.at(), Some(1), "n3 is not where it goes");
    world.get(third, 2);
    assert_eq!(world.rank().state, RankState::Waiting);
    assert_eq!(world.rank().recoveries.back().unwrap().why, Why::Moved);
    world.direct();
    assert_eq!((world.at(), world.rank().start), (Some(2), 2));
    assert_eq!(world.book.to_restore(world.job, 0)[0].place, third);
    assert_eq!(world.rank().fruitless(), 0, "a move is no failure");
}

#[test]
fn a_rank_stays_when_the_drain_is_taken_back_or_nobody_may_have_it() {
    let mut world = World::new(Spec::default(), &["a", "a"]);
    world.direct();
    world.sight.drained.insert(NodeId(1));
    world.direct();
    assert!(world.rank().moves.is_some());
    world.sight.drained.clear();
    world.direct();
    assert!(world.rank().moves.is_none());
    let image = world.save(true);
    world.get(image, 2);
    assert_eq!(world.at(), Some(1));
    world.sight.drained.extend([NodeId(1), NodeId(2)]);
    world.direct();
    assert_eq!((world.at(), world.rank().moves), (Some(1), None));
}

#[test]
fn a_rank_goes_elsewhere_if_the_node_to_which_it_was_to_go_dies() {
    let mut world = World::new(Spec::default(), &["a", "a", "a"]);
    world.direct();
    world.sight.drained.insert(NodeId(1));
    world.direct();
    assert_eq!(world.rank().moves.map(|moves| moves.to), Some(NodeId(2)));
    world.sight.members.retain(|member| member.node != NodeId(2));
    world.direct();
    assert_eq!(world.rank().moves.map(|moves| moves.to), Some(NodeId(3)));
    let image = world.save(true);
    world.get(image, 3);
    let image = world.save(true);
    world.get(image, 3);
    world.direct();
    assert_eq!(world.at(), Some(3));
}

#[test]
fn a_job_stays_with_the_processors_where_it_began_unless_a_user_says_otherwise() {
    let mut world = World::new(Spec { copies: 2, ..Spec::default() }, &["a", "b"]);
    world.direct();
    let image = world.save(true);
    world.get(image, 2);
    world.sight.members.retain(|member| member.node != NodeId(1));
    world.direct();
    assert_eq!(world.rank().state, RankState::Waiting, "the other host is of another kind");
    let job = world.job;
    world.take(&Command::Loosen { job, processor: true, program: false });
    world.direct();
    assert_eq!(world.at(), Some(2));
}

#[test]
fn the_ranks_of_a_job_begin_at_hosts_of_one_kind() {
    let mut book = Jobs::default();
    let command = vec!["sum".into()];
    let spec = Spec { name: "sum".into(), command, ranks: 2, copies: 1, ..Spec::default() };
    let job = book.take(Time(1), &Command::Submit(spec)).unwrap().job.unwrap();
    for (number, kind) in [(1, "a"), (2, "b")] {
        let host = Host { kind: kind.into(), processors: 1, ..Host::default() };
        book.take(Time(1), &Command::Introduce { node: node(number), host }).unwrap();
    }
    let sight = Sight { members: vec![node(1), node(2)], ..Sight::default() };
    let commands = Director::default().look(Time(1), &sight, &book);
    let starts = commands.iter().filter(|it| matches!(it, Command::Start { .. }));
    for start in starts {
        book.take(Time(1), start).unwrap();
    }
    let at = |rank: usize| book.job(job).unwrap().ranks[rank].state;
    assert_eq!((at(0), at(1)), (RankState::At(node(1)), RankState::At(node(1))));
    // Two directors may each have chosen a first one.
    let mut other = book.clone();
    let end = End::Killed(9);
    other.take(Time(1), &Command::Ended { job, rank: 1, start: 1, end, at: Time(1) }).unwrap();
    let wrong = Command::Start { job, rank: 1, start: 2, node: node(2) };
    assert_eq!(other.take(Time(1), &wrong), Err(Void::State));
}

#[test]
fn a_program_that_is_at_hosts_of_another_kind_is_found() {
    let mut world = World::new(Spec::default(), &["a", "b"]);
    world.direct();
    assert_eq!(world.at(), Some(1));
    world.ends(End::NotStarted("no such program".into()));
    world.direct();
    assert_eq!(world.at(), Some(2));
    world.save(true);
    world.ends(End::Killed(9));
    world.direct();
    assert_eq!((world.at(), world.rank().fruitless()), (Some(2), 1));
}

#[test]
fn a_rank_that_cannot_begin_is_tried_there_again_if_no_other_host_comes() {
    let mut world = World::new(Spec::default(), &["a", "a", "a"]);
    world.direct();
    world.sight.drained.insert(NodeId(2));
    world.ends(End::NotStarted("no such program".into()));
    world.sight.members.retain(|member| member.node != NodeId(3));
    world.direct();
    assert_eq!((world.at(), world.rank().fruitless()), (Some(1), 0));
    world.ends(End::NotStarted("no such program".into()));
    assert_eq!(world.rank().fruitless(), 1);
}

#[test]
fn a_rank_that_saves_all_the_time_leaves_with_its_newest_state_or_after_eight() {
    let mut world = World::new(Spec::default(), &["a", "a"]);
    world.direct();
    world.sight.drained.insert(NodeId(1));
    world.direct();
    let mut last = world.save(true);
    let mut saves = 1;
    while world.at() == Some(1) {
        assert!(saves < 9, "it never leaves");
        // Another image is there before the last one is copied, and others go.
        let next = world.save(true);
        world.direct();
        assert!(world.rank().images.generations().any(|it| it.place == last), "who copies it?");
        world.get(last, 2);
        (last, saves) = (next, saves + 1);
    }
    assert_eq!(saves, 9);
    world.get(last, 2);
    world.direct();
    assert_eq!(world.at(), Some(2));
    assert_eq!(world.book.to_restore(world.job, 0)[0].place, last);
}

#[test]
fn a_rank_that_cannot_begin_is_tried_elsewhere_and_once_around_counts_as_one() {
    let mut world = World::new(Spec::default(), &["a", "a", "a"]);
    let none = || End::NotStarted("no such program".into());
    let mut tried = Vec::new();
    while world.book.job(world.job).unwrap().state == JobState::Running {
        world.direct();
        tried.extend(world.at());
        world.ends(none());
    }
    assert_eq!(tried.len() as u32, 3 * MAX_FAILED, "{tried:?}");
    assert_eq!(tried[..3], [1, 2, 3]);
    let (job, failed) = (world.job, JobState::Failing(0, none()));
    assert_eq!(world.book.job(job).unwrap().state, failed);
    world.take(&Command::Resume { job });
    world.direct();
    world.ends(none());
    world.direct();
    assert_eq!(world.at(), Some(2));
}

#[test]
fn a_rank_that_ends_again_and_again_goes_to_another_holder() {
    let mut world = World::new(Spec { copies: 2, ..Spec::default() }, &["a", "a"]);
    world.direct();
    let image = world.save(true);
    world.direct();
    world.get(image, 2);
    for at in [1, 1, 2, 1] {
        world.direct();
        assert_eq!(world.at(), Some(at));
        world.ends(if at == 2 { End::Stalled } else { End::Killed(11) });
    }
}
