//! The log of a daemon. Each thread hands its lines over and goes on. A reader of stderr that stalls (a
//! disk under pressure, a pager, a paused terminal) must not stop the data plane, and with it the
//! ring.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use wire::limits::MAX_LOG_LINES;

use super::Failure;

/// A node that ends waits so long for a log that nobody reads.
const TIMEOUT: Duration = Duration::from_secs(2);

/// While it waits it looks so often whether there is room.
const GLANCE: Duration = Duration::from_millis(10);

/// Starts the log of this process: on stderr, of what the filter says.
pub(super) fn start(filter: Option<&str>) -> Result<Log, Failure> {
    let from_environment = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let text = filter.map(str::to_owned).or(from_environment).unwrap_or_else(|| "info".to_owned());
    let filter = text.parse::<Targets>().map_err(|error| {
        Failure::Usage(format!(
            "`{text}` is no filter of log messages ({error}): give error, warn, info, debug or \
             trace, or a list such as info,steadfast_node=debug"
        ))
    })?;
    let log = Log::to(io::stderr()).map_err(Failure::failed)?;
    let lines = fmt::layer().with_writer(log.clone()).with_ansi(io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter).with(lines).init();
    Ok(log)
}

/// Where lines are handed over.
#[derive(Clone, Debug)]
pub(super) struct Log {
    lines: SyncSender<Item>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Item {
    Line(Vec<u8>),
    /// All before it is to be written, and then this is to be told.
    Flush(SyncSender<()>),
}

impl Log {
    /// A thread of its own writes to `end`.
    fn to(end: impl Write + Send + 'static) -> io::Result<Log> {
        let (lines, items) = sync_channel(MAX_LOG_LINES);
        let log = Log { lines, lost: Arc::default() };
        let lost = log.lost.clone();
        let write = move || write(end, &items, &lost);
        thread::Builder::new().name("steadfast log out".into()).spawn(write)?;
        Ok(log)
    }

    fn line(&self, line: &[u8]) {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Item::Line(line.to_vec())) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all that was said is written, but not for ever.
    pub fn flush(&self) {
        self.flush_within(TIMEOUT);
    }

    fn flush_within(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let (told, done) = sync_channel(1);
        let mut item = Item::Flush(told);
        while let Err(TrySendError::Full(back)) = self.lines.try_send(item) {
            if Instant::now() >= deadline {
                return;
            }
            item = back;
            thread::sleep(GLANCE);
        }
        let _ = done.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

fn write(mut end: impl Write, items: &Receiver<Item>, lost: &AtomicU64) {
    // Nobody can be told of a log that cannot be written.
    while let Ok(item) = items.recv() {
        match item {
            Item::Line(line) => drop(end.write_all(&line)),
            Item::Flush(told) => {
                let _ = end.flush();
                let _ = told.send(());
            }
        }
        match lost.swap(0, Ordering::Relaxed) {
            0 => {}
            lines => drop(writeln!(
                end,
                "WARN {lines} lines of this log are lost: whoever reads it is too slow"
            )),
        }
    }
}

/// One line on its way: the formatter writes each as a whole.
pub(super) struct Line<'a>(&'a Log);

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.line(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A reader that reads when it is let.
    struct Stalled {
        go: Receiver<()>,
        goes: bool,
        read: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !self.goes {
                let _ = self.go.recv();
                self.goes = true;
            }
            self.read.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_logs_does_not_wait_for_a_reader_that_stalls_and_what_is_lost_is_told() {
        let (let_go, go) = sync_channel(1);
        let read = Arc::new(Mutex::new(Vec::new()));
        let log = Log::to(Stalled { go, goes: false, read: read.clone() }).unwrap();
        let said = 2 * MAX_LOG_LINES;
        for number in 0..said {
            // Would never end if it waited.
            log.make_writer().write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        let_go.send(()).unwrap();
        log.flush_within(Duration::from_secs(600));
        let text = String::from_utf8(read.lock().unwrap().clone()).unwrap();
        let (told, whole): (Vec<_>, Vec<_>) =
            text.lines().partition(|line| line.starts_with("WARN"));
        let lost: usize =
            told.iter().map(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap()).sum();
        assert_eq!(whole.len() + lost, said, "each line is read or counted: {told:?}");
        // One is with the reader, and the queue is full.
        assert!((MAX_LOG_LINES..=MAX_LOG_LINES + 1).contains(&whole.len()), "{}", whole.len());
        // The thread that writes may take the first line only after others were lost: what it then
        // has room for comes later in the count, but never out of order.
        let numbers: Vec<usize> =
            whole.iter().map(|line| line.strip_prefix("line ").unwrap().parse().unwrap()).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "each once and in order");
        assert!(numbers.iter().take(MAX_LOG_LINES).copied().eq(0..MAX_LOG_LINES));
    }

    #[test]
    fn nobody_waits_for_ever_for_a_log_that_is_not_read() {
        let (let_go, go) = sync_channel(1);
        let log = Log::to(Stalled { go, goes: false, read: Arc::default() }).unwrap();
        log.make_writer().write_all(b"never read\n").unwrap();
        log.flush();
        drop(let_go);
    }
}
