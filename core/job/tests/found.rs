//! Mistakes that the simulator's world of jobs has found, one for each test.

use image::{Parent, Place, Root};
use steadfast_job::{
    Agent, Command, Director, End, Host, JobState, Jobs, Key, Output, RankState, Sight, Spec,
    Taken, Void, Word,
};
use wire::{Incarnation, Member, NodeId, Time};

const NOW: Time = Time(1);

fn node(number: u32, life: u64) -> Member {
    Member { node: NodeId(number), incarnation: Incarnation(life) }
}

fn root(generation: u64) -> Root {
    [generation as u8; 32]
}

/// A book with a job of two ranks.
struct Book {
    jobs: Jobs,
    job: u64,
}

impl Book {
    fn new() -> Book {
        let command = vec!["matmul".into()];
        let spec = Spec { name: "matmul".into(), command, ranks: 2, copies: 1, ..Spec::default() };
        let mut jobs = Jobs::default();
        let job = jobs.take(NOW, &Command::Submit(spec)).unwrap().job.unwrap();
        Book { jobs, job }
    }

    fn say(&mut self, command: &Command) -> Result<Taken, Void> {
        self.jobs.take(NOW, command)
    }

    fn introduce(&mut self, node: Member) {
        self.say(&Command::Introduce { node, host: Host::default() }).unwrap();
    }

    fn place(&self, generation: u64) -> Place {
        Place { job: self.job, rank: 0, start: 1, generation }
    }

    /// Rank 0 starts at node 1, and saves so many images: a full one, and increments.
    fn saves(&mut self, images: u64) {
        self.saves_all(images, false);
    }

    fn saves_all(&mut self, images: u64, talks: bool) {
        let (job, holder) = (self.job, node(1, 1));
        self.introduce(holder);
        self.say(&Command::Start { job, rank: 0, start: 1, node: holder }).unwrap();
        for step in 1..=images {
            let below = Parent { place: self.place(step - 1), root: root(step - 1) };
            let parent = (step > 1).then_some(below);
            let (place, root) = (self.place(step), root(step));
            let (bytes, counts) = (9, Vec::new());
            let commit =
                Command::Commit { place, root, bytes, step, parent, holder, talks, counts };
            self.say(&commit).unwrap();
        }
    }

    fn ends(&mut self, rank: u32) {
        let (job, end) = (self.job, End::Finished);
        self.say(&Command::Ended { job, rank, start: 1, end, at: NOW }).unwrap();
    }

    fn lose(&mut self, generation: u64) {
        let place = self.place(generation);
        self.say(&Command::Lost { place, holder: node(1, 1) }).unwrap();
    }

    fn state(&self) -> (&JobState, RankState) {
        let job = self.jobs.job(self.job).unwrap();
        (&job.state, job.ranks[0].state)
    }
}

/// A node comes back, and says which images it has, one after the other. The later ones had the
/// result, and went as soon as two older ones were said to be there.
#[test]
fn a_newer_image_is_kept_while_its_holder_may_come_back() {
    let mut book = Book::new();
    book.saves(4);
    book.ends(0);
    book.say(&Command::Gone { node: node(1, 1) }).unwrap();
    book.introduce(node(1, 2));
    for generation in 1..=4 {
        let (place, root) = (book.place(generation), root(generation));
        book.say(&Command::Held { place, root, holder: node(1, 2) }).unwrap();
        let spare = book.jobs.job(book.job).unwrap().ranks[0].images.spare().count();
        assert_eq!(spare, 0, "after image {generation}");
        let newest = Command::Retire { place: book.place(4) };
        assert_eq!(book.say(&newest), Err(Void::Needed));
    }
}

#[test]
fn a_node_says_first_that_it_has_its_newest_image() {
    let mut book = Book::new();
    book.saves(3);
    book.say(&Command::Gone { node: node(1, 1) }).unwrap();
    book.introduce(node(1, 2));
    let disk = [1, 2, 3].map(|generation| (book.place(generation), root(generation)));
    let mut agent = Agent::new(node(1, 2), Host::default(), disk, []);
    agent.assign(NOW, book.jobs.assignment(node(1, 2)));
    let held = |output| match output {
        Output::Say(Command::Held { place, .. }) => Some(place.generation),
        _ => None,
    };
    let outputs = std::iter::from_fn(|| agent.poll_output());
    assert_eq!(outputs.filter_map(held).collect::<Vec<_>>(), [3, 2, 1]);
}

/// Rank 0 has finished, and loses its last image while rank 1 still works.
#[test]
fn a_rank_that_loses_its_results_goes_on_once_more() {
    let mut book = Book::new();
    book.saves(2);
    book.ends(0);
    book.lose(2);
    assert_eq!(book.state(), (&JobState::Running, RankState::Waiting), "image 1 is there");
    let from = book.jobs.to_restore(book.job, 0)[0].place;
    assert_eq!(from, book.place(1));
}

#[test]
fn a_job_whose_rank_loses_results_and_images_is_lost() {
    let mut book = Book::new();
    book.saves(1);
    book.ends(0);
    book.lose(1);
    assert_eq!(book.state(), (&JobState::Lost(0), RankState::Waiting));
    // As a user says, the rank begins anew; and without an image it may finish.
    let (job, rank) = (book.job, 0);
    book.say(&Command::Resume { job }).unwrap();
    book.say(&Command::Start { job, rank, start: 2, node: node(1, 1) }).unwrap();
    book.say(&Command::Ended { job, rank, start: 2, end: End::Finished, at: NOW }).unwrap();
    assert_eq!(book.state(), (&JobState::Running, RankState::Finished));
}

/// A rank that talks loses the states that others still have the messages for. Two older images are
/// there, and nobody may go back to them (simulator, `--world jobs --seed 55`).
#[test]
fn images_behind_the_floor_do_not_keep_a_rank_from_beginning_anew() {
    let mut book = Book::new();
    book.saves_all(4, true);
    let images = &book.jobs.job(book.job).unwrap().ranks[0].images;
    assert_eq!(images.oldest(), 3);
    book.lose(3);
    book.ends(0);
    assert_eq!(book.state().0, &JobState::Lost(0));
    let (job, rank) = (book.job, 0);
    book.say(&Command::Resume { job }).unwrap();
    let sight = Sight { members: [node(1, 1)].into(), ..Sight::default() };
    let said = Director::default().look(NOW, &sight, &book.jobs);
    let start = Command::Start { job, rank, start: 2, node: node(1, 1) };
    assert!(said.contains(&start), "{said:?}");
    book.say(&start).unwrap();
    let images = &book.jobs.job(job).unwrap().ranks[0].images;
    assert_eq!((images.oldest(), images.generations().count()), (0, 0));
}

#[test]
fn results_that_were_lost_before_the_end_do_not_count() {
    let mut book = Book::new();
    book.saves(2);
    book.lose(2);
    book.ends(0);
    assert_eq!(book.state(), (&JobState::Running, RankState::Waiting));
}

#[test]
fn a_finished_job_stays_finished() {
    let mut book = Book::new();
    book.saves(1);
    book.ends(0);
    let (job, holder) = (book.job, node(1, 1));
    book.say(&Command::Start { job, rank: 1, start: 1, node: holder }).unwrap();
    book.ends(1);
    book.lose(1);
    assert_eq!(book.state(), (&JobState::Finished, RankState::Finished));
}

/// The node was cut off, so its start is over; the answer to its last commit comes late.
#[test]
fn an_image_is_not_called_lost_while_its_commit_is_not_answered() {
    let mut book = Book::new();
    let (job, me) = (book.job, node(1, 1));
    book.introduce(me);
    book.say(&Command::Start { job, rank: 0, start: 1, node: me }).unwrap();
    let mut agent = Agent::new(me, Host::default(), [], []);
    agent.assign(NOW, book.jobs.assignment(me));
    let key = Key { job, rank: 0, start: 1 };
    agent.handle_snapshot(key, 5, true);
    agent.handle_saved(book.place(1), None, Ok((root(1), 9)));
    agent.handle_ended(key, End::Killed(9), NOW);
    let said = |agent: &mut Agent| {
        let outputs: Vec<Output> = std::iter::from_fn(|| agent.poll_output()).collect();
        let says = |output| if let Output::Say(command) = output { Some(command) } else { None };
        outputs.into_iter().filter_map(says).collect::<Vec<Command>>()
    };
    let commit = said(&mut agent).into_iter().find(|it| matches!(it, Command::Commit { .. }));
    book.say(&commit.unwrap()).unwrap();
    // Others go on; the node is there again.
    book.say(&Command::Gone { node: me }).unwrap();
    book.introduce(me);
    agent.assign(NOW, book.jobs.assignment(me));
    let lost = |command: &Command| matches!(command, Command::Lost { .. });
    assert!(!said(&mut agent).iter().any(lost));
}

#[test]
fn a_wish_that_comes_with_the_start_is_heard() {
    let mut book = Book::new();
    let (job, holder) = (book.job, node(1, 1));
    book.introduce(holder);
    book.say(&Command::Save { job }).unwrap(); // nobody is at work
    book.say(&Command::Start { job, rank: 0, start: 1, node: holder }).unwrap();
    book.say(&Command::Start { job, rank: 1, start: 1, node: holder }).unwrap();
    let heard = |book: &Book, agent: &mut Agent| {
        agent.assign(NOW, book.jobs.assignment(holder));
        let said = std::iter::from_fn(|| agent.poll_output());
        said.filter(|it| matches!(it, Output::Tell(_, Word::Save))).count()
    };
    let new = || Agent::new(holder, Host::default(), [], []);
    assert_eq!(heard(&book, &mut new()), 0);
    book.say(&Command::Save { job }).unwrap();
    let mut agent = new();
    assert_eq!(heard(&book, &mut agent), 2, "both in one assignment");
    assert_eq!(heard(&book, &mut agent), 0, "once");
    book.say(&Command::Save { job }).unwrap();
    assert_eq!(heard(&book, &mut agent), 2);
    let end = End::Killed(9);
    book.say(&Command::Ended { job, rank: 0, start: 1, end, at: NOW }).unwrap();
    book.say(&Command::Start { job, rank: 0, start: 2, node: holder }).unwrap();
    assert_eq!(heard(&book, &mut agent), 0, "the next start was asked for nothing");
}
