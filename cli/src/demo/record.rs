//! Clients' records of their own calls: one line of text each, in a file of their own.
//!
//! The audit believes these records and the replicas' state, nothing else.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use super::service::Traffic;

/// The subject of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A sensor's event.
    Event(Traffic),
    /// A display asked for its board.
    Query,
}

impl Kind {
    /// All, in the order in which they are shown.
    pub const ALL: [Kind; 4] = [
        Kind::Event(Traffic::Normal),
        Kind::Event(Traffic::Critical),
        Kind::Event(Traffic::Alarm),
        Kind::Query,
    ];

    /// The words for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Event(traffic) => traffic.name(),
            Kind::Query => "query",
        }
    }
}

/// One call. Times are nanoseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which of the process's sessions.
    pub session: u16,
    /// Its kind.
    pub kind: Kind,
    /// The sensor that told, or the station that was asked about.
    pub subject: u16,
    /// The event's number, or the events that the board knew of.
    pub number: u64,
    /// When it was to be sent: latency counts from here, whatever held it up.
    pub due: u64,
    /// When it was sent.
    pub sent: u64,
    /// When the answer came, or the error.
    pub answered: u64,
    /// Why there is no answer.
    pub error: Option<String>,
}

impl Record {
    fn to_line(&self) -> String {
        let error = self.error.as_deref().unwrap_or("").replace('\n', " ");
        let mut line = String::new();
        let Record { session, kind, subject, number, due, sent, answered, .. } = self;
        let kind = kind.name();
        write!(line, "{session},{kind},{subject},{number},{due},{sent},{answered},{error}")
            .expect("a string takes everything");
        line
    }

    fn from_line(line: &str) -> Option<Record> {
        let mut fields = line.splitn(8, ',');
        let mut next = || fields.next();
        let session = next()?.parse().ok()?;
        let name = next()?;
        Some(Record {
            session,
            kind: Kind::ALL.into_iter().find(|kind| kind.name() == name)?,
            subject: next()?.parse().ok()?,
            number: next()?.parse().ok()?,
            due: next()?.parse().ok()?,
            sent: next()?.parse().ok()?,
            answered: next()?.parse().ok()?,
            error: next().filter(|error| !error.is_empty()).map(str::to_owned),
        })
    }
}

/// Appends records to a file.
pub struct Writer(BufWriter<File>);

impl Writer {
    /// Into a new file.
    pub fn create(path: &Path) -> io::Result<Writer> {
        Ok(Writer(BufWriter::new(File::create_new(path)?)))
    }

    /// Appends one.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        writeln!(self.0, "{}", record.to_line())
    }

    /// Ends the file: a file without its last line was cut short.
    pub fn finish(mut self) -> io::Result<()> {
        writeln!(self.0, "end")?;
        self.0.flush()
    }
}

/// Hands every record of a file to `each`.
///
/// # Errors
/// If the file cannot be read, has a line that is no record, or was cut short.
pub fn read(path: &Path, mut each: impl FnMut(Record)) -> io::Result<()> {
    let bad = |text: String| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {text}", path.display()))
    };
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        if line == "end" {
            return Ok(());
        }
        each(Record::from_line(&line).ok_or_else(|| bad(format!("no record: {line}")))?);
    }
    Err(bad("cut short: the process that wrote it did not end in order".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(error: Option<&str>) -> Record {
        Record {
            session: 3,
            kind: Kind::Event(Traffic::Alarm),
            subject: 218,
            number: 17,
            due: 1,
            sent: 2,
            answered: u64::MAX,
            error: error.map(str::to_owned),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records");
        let written = [record(None), record(Some("no replica, try later"))];
        let mut writer = Writer::create(&path).unwrap();
        written.iter().for_each(|record| writer.write(record).unwrap());
        writer.finish().unwrap();
        let mut found = Vec::new();
        read(&path, |record| found.push(record)).unwrap();
        assert_eq!(found, written);
    }

    #[test]
    fn a_file_that_was_cut_short_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records");
        let whole = record(None).to_line();
        for cut in [format!("{whole}\n"), format!("{whole}\n{}", &whole[..9]), "rubbish\n".into()] {
            std::fs::write(&path, cut).unwrap();
            assert!(read(&path, |_| {}).is_err());
        }
    }
}
