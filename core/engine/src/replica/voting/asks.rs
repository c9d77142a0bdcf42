//! Votes on nested calls of a voting replica's handlers (`docs/protocol/nested.md`, "Voting
//! groups").

mod acting;

use sha2::Digest as _;
use sha2::Sha256;
use wire::ordered::Digest;

use crate::replica::Ask;

/// The digest of a handler's call. It covers the call's name and its timeout: a replica that gives
/// up sooner than the others makes another call.
fn digest_of_ask(ask: &Ask) -> Digest {
    let request = &ask.request;
    let mut hash = Sha256::new();
    hash.update([3, u8::from(request.json)]);
    hash.update(request.client.0.to_le_bytes());
    hash.update(request.number.to_le_bytes());
    hash.update(ask.timeout.as_micros().to_le_bytes());
    hash.update(request.group.0.to_le_bytes());
    hash.update(request.method.0.to_le_bytes());
    hash.update(&request.body);
    Digest(hash.finalize()[..16].try_into().expect("a hash of 32 bytes has 16"))
}
