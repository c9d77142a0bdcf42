//! Messages, as a rank's program sees them.

use std::time::{Duration, Instant};

use crate::error::JobError;
use crate::job::Job;
use crate::messages::Message;

/// How long a rank waits for a message before it looks for its agent.
const WAIT: Duration = Duration::from_millis(100);

/// A log that has been full for so long may have to grow: its receiver may wait for its sender.
const FULL: Duration = Duration::from_secs(1);

/// One that may not grow any more, and stays full for so long, never has room.
const STUCK: Duration = Duration::from_secs(60);

/// How often others are listened to where the program only looks for messages.
const LISTEN: Duration = Duration::from_millis(1);

impl Job {
    /// Sends a message to a rank, in two parts that follow on each other: the first has a multiple of 8
    /// bytes. It returns when the message is in the log, from where the receiver has it, whatever
    /// fails. A full log waits for the receiver's images.
    ///
    /// # Errors
    /// There is no such rank, the message is longer than 1 GiB, or this start is over.
    pub fn send(&mut self, to: u32, tag: u32, parts: [&[u8]; 2]) -> Result<(), JobError> {
        while !self.try_send(to, tag, parts)? {
            self.await_room(to, WAIT)?;
        }
        Ok(())
    }

    /// The same, if there is room in the log now.
    ///
    /// # Errors
    /// As [`send`](Job::send).
    pub fn try_send(&mut self, to: u32, tag: u32, parts: [&[u8]; 2]) -> Result<bool, JobError> {
        if self.agent.is_none() && to != self.place.rank {
            return Err(JobError::Nobody);
        }
        let sent = self.messages.send(to, tag, parts);
        let sent = self.told(sent)?;
        if !sent && self.agent.is_none() {
            return Err(JobError::Deadlock);
        }
        self.full = self.full.filter(|_| !sent);
        self.pass_on()?;
        Ok(sent)
    }

    /// Waits, at most for so long, until there may be room in the log of messages to this rank.
    ///
    /// # Errors
    /// This start is over; or the receiver has reached no safe point for long, and the log is as long
    /// as it may be.
    pub fn await_room(&mut self, to: u32, within: Duration) -> Result<(), JobError> {
        self.wait(None, within)?;
        let now = self.began.elapsed();
        let since = *self.full.get_or_insert(now);
        let grows = now < since + FULL || self.messages.make_room(to, now - since);
        if grows || now < since + STUCK { Ok(()) } else { Err(JobError::Full(to)) }
    }

    /// Waits for the oldest message of a rank, or of any; of this tag, or of any below
    /// [`OWN_TAGS`](channel::OWN_TAGS). `None`: it has not come within this time.
    ///
    /// # Errors
    /// There is no such rank, another rank cannot be believed, or this start is over.
    pub fn receive(
        &mut self,
        from: Option<u32>,
        tag: Option<u32>,
        within: Duration,
    ) -> Result<Option<Message>, JobError> {
        if let Some(message) = self.take(from, tag)? {
            return Ok(Some(message));
        }
        if within.is_zero() && self.agent.is_some() {
            self.listen()?;
            return self.take(from, tag);
        }
        if self.agent.is_none() {
            return Err(if self.messages.is_alone() {
                JobError::Deadlock
            } else {
                JobError::Nobody
            });
        }
        let begun = Instant::now();
        while let Some(left) = within.checked_sub(begun.elapsed()) {
            self.wait(from, left.min(WAIT))?;
            if let Some(message) = self.take(from, tag)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    fn take(&mut self, from: Option<u32>, tag: Option<u32>) -> Result<Option<Message>, JobError> {
        let taken = self.messages.take(from, tag);
        self.told(taken)
    }

    /// The agent hears of a rank that cannot go on.
    pub(super) fn told<T>(&mut self, done: Result<T, JobError>) -> Result<T, JobError> {
        if let (Err(error), Some(agent)) = (&done, &mut self.agent) {
            error.divergence().iter().for_each(|why| agent.say(why));
        }
        done
    }

    fn wait(&mut self, from: Option<u32>, most: Duration) -> Result<(), JobError> {
        let Job { messages, agent, began, .. } = self;
        let waited = messages.wait(from, most, |messages| {
            let Some(agent) = agent else { return Ok(false) };
            agent.attend(began.elapsed(), true, messages)
        });
        self.told(waited)
    }

    pub(super) fn pass_on(&mut self) -> Result<(), JobError> {
        let Some(agent) = &mut self.agent else {
            self.messages.note_alone();
            return Ok(());
        };
        // Each message comes by here, and few have something to say.
        if !self.messages.has_words() {
            return Ok(());
        }
        agent.pass_on(self.began.elapsed(), &mut self.messages)
    }

    /// Whether a message of this rank, or any, and of this tag, or any, is there now. What the program
    /// does with the answer, a later start does as well: it gets the same.
    ///
    /// # Errors
    /// There is no such rank, or another rank cannot be believed.
    pub fn probe(&mut self, from: Option<u32>, tag: Option<u32>) -> Result<bool, JobError> {
        self.listen()?;
        let there = self.messages.probe(from, tag);
        self.told(there)
    }

    /// Logs of other ranks, and other words of the agent, come in as well.
    fn listen(&mut self) -> Result<(), JobError> {
        let now = self.began.elapsed();
        let Some(agent) = self.agent.as_mut().filter(|_| now >= self.listened + LISTEN) else {
            return Ok(());
        };
        self.listened = now;
        self.messages.say_choices();
        agent.attend(now, false, &mut self.messages).map(drop)
    }

    /// A number from outside, such as a time, or what it was in an earlier start.
    ///
    /// # Errors
    /// The program does not do what it did before.
    pub fn number(&mut self, now: u64) -> Result<u64, JobError> {
        let number = self.messages.number(now);
        self.told(number)
    }
}
