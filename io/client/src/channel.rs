//! Frames over a stream, plain or by TLS records: what both drivers share.

use std::io::{self, ErrorKind, Write};

use wire::client::Frame;

use crate::Trouble;
use crate::buffers::{Inbox, Outbox};
use crate::secure::Records;

/// One connection, without its socket.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    /// `None`: plain frames.
    records: Option<Box<Records>>,
    inbox: Inbox,
    outbox: Outbox,
}

impl Channel {
    pub(crate) fn new(records: Option<Records>) -> Channel {
        Channel { records: records.map(Box::new), ..Channel::default() }
    }

    /// Queues a frame. False at the limit: the node does not read, and counts as lost.
    pub(crate) fn put(&mut self, frame: &Frame) -> bool {
        self.outbox.put(frame)
    }

    /// There is something that the stream may take now. Frames wait until hands are shaken.
    pub(crate) fn wants_to_write(&self) -> bool {
        match &self.records {
            None => !self.outbox.is_empty(),
            Some(records) => {
                records.wants_to_write() || records.is_open() && !self.outbox.is_empty()
            }
        }
    }

    /// Gives the stream what it takes.
    pub(crate) fn write(&mut self, stream: &mut dyn Write) -> io::Result<()> {
        while self.wants_to_write() {
            match self.write_once(stream) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_once(&mut self, stream: &mut dyn Write) -> io::Result<()> {
        let count = match &mut self.records {
            Some(records) if records.wants_to_write() => {
                return match records.write(stream)? {
                    0 => Err(ErrorKind::WriteZero.into()),
                    _ => Ok(()),
                };
            }
            Some(records) => {
                let (slices, count) = self.outbox.slices();
                records.seal(&slices[..count])
            }
            None => {
                let (slices, count) = self.outbox.slices();
                stream.write_vectored(&slices[..count])?
            }
        };
        if count == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        self.outbox.written(count);
        Ok(())
    }

    /// Bytes came, and with them perhaps whole frames, which count before an error. If TLS fails,
    /// what is then to be written tells the node why.
    pub(crate) fn receive(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), Trouble> {
        let inbox = &mut self.inbox;
        let received = match &mut self.records {
            None => {
                inbox.put(bytes);
                Ok(())
            }
            Some(records) => records.receive(bytes, |plain| inbox.put(plain)),
        };
        while let Some(frame) = self.inbox.take().map_err(|_| Trouble::Confused)? {
            if let (Frame::Welcome(welcome), Some(records)) = (&frame, &self.records) {
                records.check_node(welcome.node)?;
            }
            frames.push(frame);
        }
        received
    }
}
