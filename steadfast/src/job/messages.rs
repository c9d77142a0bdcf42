//! Messages between two ranks.

use std::time::Duration;

use rank::{JobError as Error, Message, OWN_TAGS};
use zerocopy::IntoBytes;

use super::numbers::Number;
use super::rank::Rank;

/// As a source: each rank. As a tag: each tag. Who was first is a choice, which is recorded.
pub const ANY: Option<u32> = None;

/// How long a rank waits in one go.
const SLICE: Duration = Duration::from_secs(1);

/// The sender of a message that was received, and its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The rank that has sent it.
    pub source: u32,
    /// Its tag.
    pub tag: u32,
}

/// # Messages
///
/// A message has numbers of one type. From one rank with one tag, messages come in the order in which
/// they were sent, once, whatever dies. A turn must do the same each time, given its messages:
/// `docs/jobs-messages.md` has the rules.
///
/// A message has at most 1 GiB, a tag is below 2³¹. What is sent stays in a log of at most 256 MiB for
/// each receiver, until the receiver's images have it.
impl Rank {
    /// Sends a message to a rank, or to this one. It returns when the message is in the log: it does not
    /// wait for its receiver. A full log waits until the receiver is saved.
    ///
    /// # Errors
    /// There is no such rank or tag, the message is too long, or this start of the rank is over. The
    /// program does not send what it did before.
    pub fn send<T: Number>(&mut self, to: u32, tag: u32, message: &[T]) -> Result<(), Error> {
        programs(Some(tag))?;
        self.tell(to, tag, message)
    }

    /// Waits for the next message of this source with this tag: a number, or [`ANY`].
    ///
    /// ```no_run
    /// # fn work(rank: &mut steadfast::job::Rank) -> Result<(), steadfast::job::Error> {
    /// use steadfast::job::ANY;
    ///
    /// let (edge, _) = rank.receive::<f64>(3, 0)?;
    /// let (answer, status) = rank.receive::<u32>(ANY, 7)?;
    /// println!("{} numbers of rank {}", answer.len(), status.source);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such rank or tag, the message has no whole numbers of this type, or this start of the
    /// rank is over. The program does not receive what it did before.
    pub fn receive<T: Number>(
        &mut self,
        source: impl Into<Option<u32>>,
        tag: impl Into<Option<u32>>,
    ) -> Result<(Vec<T>, Status), Error> {
        let message = self.take(source.into(), programs(tag.into())?)?;
        Ok((numbers(&message)?, status(&message)))
    }

    /// The same into numbers that are there: as many as the message has.
    ///
    /// # Errors
    /// As of [`Rank::receive`]. The message has more or fewer bytes: it is lost then.
    pub fn receive_into<T: Number>(
        &mut self,
        source: impl Into<Option<u32>>,
        tag: impl Into<Option<u32>>,
        message: &mut [T],
    ) -> Result<Status, Error> {
        let came = self.take(source.into(), programs(tag.into())?)?;
        read(&came, message)?;
        Ok(status(&came))
    }

    /// Sends a message to a rank, and receives one of this source with the same tag. Ranks that all do so
    /// never wait for each other in a circle.
    ///
    /// # Errors
    /// As of [`Rank::send`] and [`Rank::receive`].
    pub fn exchange<T: Number>(
        &mut self,
        to: u32,
        source: u32,
        tag: u32,
        message: &[T],
    ) -> Result<Vec<T>, Error> {
        self.send(to, tag, message)?;
        Ok(self.receive(source, tag)?.0)
    }

    /// Whether such a message is there now. The answer is recorded, also in vain: a loop that only asks
    /// fills the record.
    ///
    /// # Errors
    /// There is no such rank or tag. The program does not ask what it did before.
    pub fn probe(
        &mut self,
        source: impl Into<Option<u32>>,
        tag: impl Into<Option<u32>>,
    ) -> Result<bool, Error> {
        self.job.probe(source.into(), programs(tag.into())?)
    }

    /// Records a number from outside, such as a time or a random seed: it returns this one, or, in a turn
    /// that is done again, the one that was recorded.
    ///
    /// # Errors
    /// The program does not do what it did before.
    pub fn record(&mut self, number: u64) -> Result<u64, Error> {
        self.job.number(number)
    }

    /// Sends with any tag.
    pub(super) fn tell<T: Number>(
        &mut self,
        to: u32,
        tag: u32,
        message: &[T],
    ) -> Result<(), Error> {
        self.job.send(to, tag, [&[], message.as_bytes()])
    }

    /// Receives with any tag.
    pub(super) fn hear<T: Number>(&mut self, source: u32, tag: u32) -> Result<Vec<T>, Error> {
        numbers(&self.take(Some(source), Some(tag))?)
    }

    /// The same into numbers that are there.
    pub(super) fn hear_into<T: Number>(
        &mut self,
        source: u32,
        tag: u32,
        message: &mut [T],
    ) -> Result<(), Error> {
        read(&self.take(Some(source), Some(tag))?, message)
    }

    fn take(&mut self, source: Option<u32>, tag: Option<u32>) -> Result<Message, Error> {
        loop {
            if let Some(message) = self.job.receive(source, tag, SLICE)? {
                return Ok(message);
            }
        }
    }
}

/// A tag that a program may use.
fn programs(tag: Option<u32>) -> Result<Option<u32>, Error> {
    match tag {
        Some(tag) if tag >= OWN_TAGS => Err(Error::Tag(tag)),
        tag => Ok(tag),
    }
}

fn status(message: &Message) -> Status {
    Status { source: message.from, tag: message.tag }
}

/// The numbers of a message.
fn numbers<T: Number>(message: &Message) -> Result<Vec<T>, Error> {
    let (bytes, each) = (message.length(), size_of::<T>());
    if !bytes.is_multiple_of(each) {
        return Err(Error::Elements { from: message.from, tag: message.tag, bytes, each });
    }
    let mut numbers = vec![T::new_zeroed(); bytes / each];
    message.read(0, numbers.as_mut_bytes())?;
    Ok(numbers)
}

/// Copies a message to numbers that are as many.
fn read<T: Number>(message: &Message, to: &mut [T]) -> Result<(), Error> {
    let (bytes, room) = (message.length(), size_of_val(to));
    if bytes != room {
        return Err(Error::Length { from: message.from, tag: message.tag, bytes, room });
    }
    message.read(0, to.as_mut_bytes())
}
