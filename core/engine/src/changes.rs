//! The changes of a passive group's service, for executors, in the smallest form.
//!
//! A primary's executor reports the effect of the calls since the last time, and a backup's applies
//! it (`docs/protocol/group.md`, "Warm passive"; the bytes are [`wire::ordered::Change`]'s). A
//! service may report its changes itself. Otherwise whole states are compared: both sides keep the
//! last common state, so that only the difference need travel.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytes::Bytes;
use wire::fnv1a;
use wire::limits::{MAX_EDITS, MAX_STATE};
use wire::ordered::{Change, Difference, Edit};

/// A service's own report is taken as it is up to this length. Taking the whole state only to see
/// that it is no shorter would cost more than it saves.
const SHORT: usize = 4 << 10;

/// Bytes that are compared at a time where old and new have the same length.
const BLOCK: usize = 32;

/// The last state that both sides know.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Base {
    state: Bytes,
    /// It came with an update, so all replicas in step have it. A transferred state is only known
    /// to be at its receiver.
    common: bool,
}

/// The memory of a passive group's executor, for taking and applying changes.
///
/// # Examples
///
/// ```
/// use steadfast_engine::{Applied, Changes};
///
/// let (mut primary, mut backup) = (Changes::default(), Changes::default());
/// for state in ["first state", "next state"] {
///     let change = primary.take(None, || Ok(state.into())).unwrap();
///     assert_eq!(backup.apply(&change), Ok(Applied::State(state.into())));
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Changes {
    base: Option<Base>,
    /// The base is the state as it is now.
    fresh: bool,
    /// Bytes of the last known whole state.
    size: Option<usize>,
}

/// The action for a backup's service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Restore this state.
    State(Bytes),
    /// Let the service apply its own report.
    Own(Bytes),
}

impl Changes {
    /// A call was executed.
    pub fn executed(&mut self) {
        self.fresh = false;
    }

    /// The service begins anew.
    pub fn reset(&mut self) {
        *self = Changes::default();
    }

    /// A transfer has brought this state.
    pub fn restored(&mut self, state: Bytes) {
        self.size = Some(state.len());
        self.base = Some(Base { state, common: false });
        self.fresh = true;
    }

    /// The present state, if it is at hand. A transfer takes this, so that its receiver is in step.
    pub fn current(&self) -> Option<&Bytes> {
        self.base.as_ref().filter(|_| self.fresh).map(|base| &base.state)
    }

    /// The changes since the last time, as an update carries them. `own`: the service's own report,
    /// if it has one; `whole` takes the whole state.
    ///
    /// # Errors
    /// The state cannot be taken, or is larger than [`MAX_STATE`].
    pub fn take(
        &mut self,
        own: Option<Vec<u8>>,
        whole: impl FnOnce() -> Result<Vec<u8>, String>,
    ) -> Result<Bytes, String> {
        let own = own.filter(|own| own.len() <= MAX_STATE);
        let is_short =
            |own: &Vec<u8>| own.len() <= SHORT || self.size.is_some_and(|size| own.len() <= size);
        if let Some(own) = own.as_ref().filter(|own| is_short(own)) {
            let own = Bytes::copy_from_slice(own);
            self.told_by_itself();
            return Ok(Change::Own(own).encode());
        }
        let state: Bytes = whole()?.into();
        if state.len() > MAX_STATE {
            return Err(format!(
                "the state has {} bytes, at most {MAX_STATE} fit: keep less in a replica",
                state.len()
            ));
        }
        self.size = Some(state.len());
        if let Some(own) = own.filter(|own| own.len() <= state.len()) {
            self.told_by_itself();
            return Ok(Change::Own(own.into()).encode());
        }
        let common = self.base.take().filter(|base| base.common);
        let difference = common.and_then(|base| difference(&base.state, &state));
        let difference = difference.map(|difference| Change::Difference(difference).encode());
        let change = match difference {
            Some(difference) if difference.len() <= state.len() => difference,
            _ => Change::Whole(state.clone()).encode(),
        };
        self.base = Some(Base { state, common: true });
        self.fresh = true;
        Ok(change)
    }

    /// Applies the primary's change here.
    ///
    /// # Errors
    /// These bytes are no change of the state that is here: this replica is out of step.
    pub fn apply(&mut self, change: &Bytes) -> Result<Applied, String> {
        let state = match Change::decode(change).map_err(|malformed| malformed.to_string())? {
            Change::Own(words) => {
                self.told_by_itself();
                return Ok(Applied::Own(words));
            }
            Change::Whole(state) => state,
            Change::Difference(difference) => {
                let base = self.base.as_ref().ok_or("a difference to a state that is not known")?;
                patched(&base.state, &difference)?.into()
            }
        };
        self.size = Some(state.len());
        self.base = Some(Base { state: state.clone(), common: true });
        self.fresh = true;
        Ok(Applied::State(state))
    }

    /// From here on the whole state's bytes are unknown.
    fn told_by_itself(&mut self) {
        self.base = None;
        self.fresh = false;
    }
}

fn short(length: usize) -> u32 {
    u32::try_from(length).expect("a state has at most MAX_STATE bytes")
}

/// The edits that turn `old` into `new`; `None` if there are too many. Common bytes at both ends
/// stay. Where the rest has the same length in both, it is compared block by block.
fn difference(old: &[u8], new: &[u8]) -> Option<Difference> {
    let same =
        |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| pairs.take_while(|(a, b)| a == b).count();
    let front = same(&mut old.iter().zip(new));
    let back = same(&mut old[front..].iter().rev().zip(new[front..].iter().rev()));
    let gone = &old[front..old.len() - back];
    let come = &new[front..new.len() - back];
    let mut edits = Vec::new();
    let mut put = Vec::new();
    let mut keep = front;
    if gone.len() == come.len() {
        for (gone, come) in gone.chunks(BLOCK).zip(come.chunks(BLOCK)) {
            if gone == come {
                keep += come.len();
                continue;
            }
            let length = short(come.len());
            match edits.last_mut() {
                Some(Edit { drop, put, .. }) if keep == 0 => {
                    (*drop, *put) = (*drop + length, *put + length)
                }
                _ => edits.push(Edit { keep: short(keep), drop: length, put: length }),
            }
            keep = 0;
            put.extend_from_slice(come);
        }
    } else {
        edits.push(Edit { keep: short(keep), drop: short(gone.len()), put: short(come.len()) });
        keep = 0;
        put.extend_from_slice(come);
    }
    if keep + back > 0 {
        edits.push(Edit { keep: short(keep + back), drop: 0, put: 0 });
    }
    let base = fnv1a(old);
    (edits.len() <= MAX_EDITS).then(|| Difference { base, edits, put: put.into() })
}

/// `base` with these edits.
fn patched(base: &[u8], difference: &Difference) -> Result<Vec<u8>, String> {
    if fnv1a(base) != difference.base {
        return Err("a difference to another state than the one that is here".into());
    }
    let length = |edit: &Edit| u64::from(edit.keep) + u64::from(edit.put);
    let length: u64 = difference.edits.iter().map(length).sum();
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_STATE);
    let mut state = Vec::with_capacity(length.ok_or("the state would be larger than MAX_STATE")?);
    let (mut base, mut put) = (base, &difference.put[..]);
    let beyond = || String::from("an edit beyond the end");
    for edit in &difference.edits {
        let (kept, rest) = base.split_at_checked(edit.keep as usize).ok_or_else(beyond)?;
        base = rest.get(edit.drop as usize..).ok_or_else(beyond)?;
        let (new, rest) = put.split_at_checked(edit.put as usize).ok_or_else(beyond)?;
        put = rest;
        state.extend_from_slice(kept);
        state.extend_from_slice(new);
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use wire::Random;

    fn whole(state: &[u8]) -> impl FnOnce() -> Result<Vec<u8>, String> {
        let state = state.to_vec();
        || Ok(state)
    }

    fn kind(change: &Bytes) -> u8 {
        change[0]
    }

    #[test]
    fn only_what_differs_travels() {
        let (mut primary, mut backup) = (Changes::default(), Changes::default());
        let mut state = vec![7; 10_000];
        let first = primary.take(None, whole(&state)).unwrap();
        assert_eq!(kind(&first), 1, "nothing is known of the others");
        backup.apply(&first).unwrap();
        for (place, limit) in [(0, 60), (5_000, 60), (9_999, 60)] {
            state[place] += 1;
            let change = primary.take(None, whole(&state)).unwrap();
            assert!(change.len() < limit, "{} bytes", change.len());
            assert_eq!(backup.apply(&change), Ok(Applied::State(state.clone().into())));
        }
        state.splice(3_000..3_000, [1, 2, 3]);
        state.truncate(9_000);
        let change = primary.take(None, whole(&state)).unwrap();
        assert!(change.len() > 5_000, "two changes of length are beyond a simple difference");
        assert_eq!(backup.apply(&change), Ok(Applied::State(state.into())));
    }

    #[test]
    fn any_state_can_be_made_of_any_other() {
        let mut random = Random::new(5);
        for _ in 0..2_000 {
            let mut bytes = |limit| -> Vec<u8> {
                let length = random.below(limit) as usize;
                (0..length).map(|_| random.below(3) as u8).collect()
            };
            let (old, new) = (bytes(300), bytes(300));
            let made = difference(&old, &new).expect("few edits");
            assert_eq!(patched(&old, &made), Ok(new.clone()));
            assert!(
                made.edits.iter().all(|edit| *edit != Edit { keep: 0, drop: 0, put: 0 })
                    || old.is_empty()
            );
            let mut edited = old.clone();
            for _ in 0..2 {
                if let Some(byte) = edited.get_mut(random.below(300) as usize) {
                    *byte += 1;
                }
            }
            let made = difference(&old, &edited).expect("few edits");
            assert!(made.put.len() <= 3 * BLOCK);
            assert_eq!(patched(&old, &made), Ok(edited));
        }
    }

    #[test]
    fn edits_of_another_state_or_beyond_it_are_refused() {
        let right = difference(b"what was there", b"what is there").unwrap();
        assert!(patched(b"what else was there", &right).is_err());
        let base = fnv1a(b"four");
        let bad = |edit, put: &'static [u8]| {
            patched(b"four", &Difference { base, edits: vec![edit], put: Bytes::from_static(put) })
        };
        assert_eq!(bad(Edit { keep: 4, drop: 0, put: 1 }, b"!"), Ok(b"four!".to_vec()));
        assert!(bad(Edit { keep: 5, drop: 0, put: 0 }, b"").is_err());
        assert!(bad(Edit { keep: 2, drop: 3, put: 0 }, b"").is_err());
        assert!(bad(Edit { keep: 2, drop: 2, put: 2 }, b"!").is_err());
        let large = Edit { keep: u32::MAX, drop: 0, put: u32::MAX };
        assert!(bad(large, b"").is_err());
    }

    #[test]
    fn the_services_own_words_are_taken_unless_the_whole_is_shorter() {
        let mut changes = Changes::default();
        let own = changes.take(Some(vec![1; SHORT]), || panic!("not looked at")).unwrap();
        assert_eq!((kind(&own), own.len()), (3, SHORT + 1));
        let large = vec![1; SHORT + 1];
        let own = changes.take(Some(large.clone()), whole(&[2; 9_000])).unwrap();
        assert_eq!(kind(&own), 3);
        let own = changes.take(Some(large.clone()), || panic!("it had 9,000 bytes")).unwrap();
        assert_eq!(kind(&own), 3);
        changes.restored(Bytes::from_static(b"small"));
        assert_eq!(changes.take(Some(large), whole(b"small too")).unwrap()[..], *b"\x01small too");
    }

    #[test]
    fn what_only_a_transfer_brought_is_no_base_for_others() {
        let mut changes = Changes::default();
        changes.restored(Bytes::from_static(b"what the donor took"));
        assert_eq!(changes.current().unwrap()[..], *b"what the donor took");
        let first = changes.take(None, whole(b"what the donor took, and more")).unwrap();
        assert_eq!(kind(&first), 1);
        changes.executed();
        assert_eq!(changes.current(), None);
    }

    #[test]
    fn a_service_that_tells_by_itself_leaves_no_base() {
        let (mut primary, mut backup) = (Changes::default(), Changes::default());
        let state = [3; 100];
        backup.apply(&primary.take(None, whole(&state)).unwrap()).unwrap();
        let own = primary.take(Some(vec![1]), || panic!("it is short")).unwrap();
        assert_eq!(backup.apply(&own), Ok(Applied::Own(Bytes::from_static(&[1]))));
        let next = primary.take(None, whole(&state)).unwrap();
        assert_eq!(kind(&next), 1, "the backup does not have the bytes of before");
        assert_eq!(backup.apply(&next), Ok(Applied::State(Bytes::copy_from_slice(&state))));
    }
}
