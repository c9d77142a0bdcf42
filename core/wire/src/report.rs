//! Reports between nodes with several links about them: one report, one datagram.
//!
//! A report has the header of every datagram between nodes (see [`ring`](crate::ring)), kind 8, and
//! then, in postcard, fields in this order:
//!
//! ```text
//! | round | wanted | heard: count, each | extension |
//! ```

use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::codec::{append, at_most, read};
use crate::limits::MAX_RING_LINKS;
use crate::ring::{FROZEN, Header, KIND_AT};
use crate::versions::RING;
use crate::{ClusterId, Extension, Malformed, Member};

/// The number of this kind of datagram.
pub(crate) const KIND: u8 = 8;

/// "Of your rounds these came here, by each link."
///
/// A node sends the report of one round to one peer by all links; what the peer says of it tells by
/// which links the two are joined, in this direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The sender's rounds towards this receiver so far, this one included.
    pub round: u64,
    /// The receiver is to answer at once, by the link on which this came.
    pub wanted: bool,
    /// For each link in the order of the configuration: the largest round of the receiver that
    /// came by it, 0 for none.
    pub heard: Vec<u64>,
    /// Bytes that a newer program adds.
    pub extension: Extension,
}

impl Report {
    /// The datagram to send.
    pub fn encode(&self, cluster: ClusterId, sender: Member) -> Bytes {
        let mut buffer = Vec::with_capacity(64);
        Header::new(cluster, FROZEN, sender, KIND).append(&mut buffer);
        append(buffer, self).into()
    }

    /// Whether a datagram claims to be a report. Cheap: one byte is looked at.
    pub fn is_in(bytes: &[u8]) -> bool {
        bytes.get(KIND_AT) == Some(&KIND)
    }

    /// Reads a report that belongs to `cluster`, and who sent it.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong; the datagram is to be counted and dropped.
    pub fn decode(cluster: ClusterId, bytes: &[u8]) -> Result<(Member, Report), Malformed> {
        let (header, body) = Header::read(cluster, RING, bytes)?;
        if header.kind != KIND {
            return Err(Malformed::Kind(header.kind));
        }
        let report: Report = read(body)?;
        at_most(report.heard.len(), MAX_RING_LINKS, "heard")?;
        report.extension.check()?;
        Ok((header.member(), report))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{Incarnation, NodeId};

    const CLUSTER: ClusterId = ClusterId(7);
    const SENDER: Member = Member { node: NodeId(3), incarnation: Incarnation(9) };

    #[test]
    fn a_report_is_read_back_and_nothing_else_is_one() {
        let report = Report {
            round: 300,
            wanted: true,
            heard: vec![299, 0],
            extension: Extension::default(),
        };
        let bytes = report.encode(CLUSTER, SENDER);
        assert!(Report::is_in(&bytes));
        assert_eq!(Report::decode(CLUSTER, &bytes), Ok((SENDER, report)));
        assert_eq!(Report::decode(ClusterId(8), &bytes), Err(Malformed::Cluster));
        for length in 0..bytes.len() {
            assert!(Report::decode(CLUSTER, &bytes[..length]).is_err(), "{length} bytes of it");
        }
        let ring = crate::ring::Datagram::decode(CLUSTER, RING, &bytes);
        assert_eq!(ring, Err(Malformed::Kind(KIND)), "the ring is not to see it");
    }

    #[test]
    fn more_links_than_there_can_be_are_malformed() {
        let heard = vec![0; MAX_RING_LINKS + 1];
        let report = Report { round: 1, wanted: false, heard, extension: Extension::default() };
        let bytes = report.encode(CLUSTER, SENDER);
        assert_eq!(Report::decode(CLUSTER, &bytes), Err(Malformed::Field("heard")));
    }
}
