//! The end of a life, the damage to the files, and the next beginning.

use store::{Config, FileName, OpenError};
use wire::Duration;

use super::options::End;
use super::{Harm, Life, PROPERTY, ROOM, WITHIN, World};
use crate::check::decay::befits;
use crate::check::{Verdict, demand};
use crate::disk::{Disk, Troubles};
use crate::oracle::log::Leniency;

impl World {
    /// The life ends somehow, and another begins.
    pub(super) fn restart(&mut self) -> Verdict {
        let end = self.draw.pick(&self.options.ends);
        self.trace.note(self.now, 2, 0, [end as u64, 0]);
        self.trace.say(self.now, || format!("FAULT {end:?}"));
        self.lives += 1;
        if end == End::Close {
            self.life.store.close(self.now);
            self.until_over()?;
        }
        if end == End::Rest && self.life.open {
            self.rest()?;
        }
        // An operation under way when a process dies is done or not.
        for (_, op, begun) in std::mem::take(&mut self.life.lanes).into_iter().flatten() {
            if begun.is_ok() && self.draw.one_in(2) {
                let _ = self.disk.finish(&op);
            }
        }
        if matches!(end, End::Power | End::Rest) {
            self.disk.lose_power();
        }
        // Enough room to begin with, most of the times.
        if !self.draw.one_in(3) {
            self.make_room();
        }
        let rots = self.draw.permille(self.options.rot);
        let harm = match rots {
            true => self.disk.rot().map(Harm::Rot),
            false => self.bring_back(),
        };
        if harm.is_none() && (self.copy.is_none() || self.draw.one_in(4)) {
            self.copy = self.disk.content(FileName::Manifest);
        }
        self.reopen(harm)
    }

    /// Now and then somebody brings the manifest back as it once was.
    pub(super) fn bring_back(&mut self) -> Option<Harm> {
        let comes = self.draw.permille(self.options.old);
        let copy = self.copy.clone().filter(|_| comes)?;
        let new = self.disk.content(FileName::Manifest)?;
        (new != copy).then(|| {
            self.disk.put(FileName::Manifest, copy);
            Harm::OldManifest(new)
        })
    }

    /// Nobody uses the store for a while.
    pub(super) fn rest(&mut self) -> Verdict {
        let long = self.options.config.mark_after + 200 * self.options.slowest;
        let end = self.now + 2 * long;
        while self.now < end {
            self.step(end)?;
        }
        // Records that wait for room keep the log from resting.
        let settled =
            self.log.persisted() == self.log.last().0 && self.now >= self.quiet_since + long;
        if self.life.open && settled && !self.is_short() {
            self.log.rest();
        }
        Ok(())
    }

    /// The disk's room may keep the log from what it would do.
    pub(super) fn is_short(&self) -> bool {
        // A write that found no room is retried after a while, and then needs a new segment.
        let known = 2 * self.options.config.retry + 200 * self.options.slowest;
        self.disk.capacity < ROOM || self.now < self.roomy_since + known
    }

    pub(super) fn make_room(&mut self) {
        self.disk.capacity = ROOM;
        self.roomy_since = self.now;
    }

    pub(super) fn until_over(&mut self) -> Verdict {
        let end = self.now + WITHIN;
        while self.life.over.is_none() && self.now < end {
            self.step(end)?;
        }
        let over = self.life.over.is_some();
        demand(over, "liveness", || "the store neither opens nor closes".into())
    }

    /// Opens the store until it is open, after this has befallen its files.
    pub(super) fn reopen(&mut self, harm: Option<Harm>) -> Verdict {
        self.harm = harm;
        self.trace.say(self.now, || match &self.harm {
            Some(Harm::OldManifest(_)) => "OLD MANIFEST".into(),
            harm => format!("ROT {harm:?}"),
        });
        for _ in 0..50 {
            self.life = Life::new(self.options.config);
            self.log.begin(match &self.harm {
                None => Leniency::None,
                Some(Harm::Rot(_)) => Leniency::Rot,
                Some(Harm::OldManifest(_)) => Leniency::OldManifest,
            });
            let end = self.now + WITHIN;
            while self.life.opens() && self.now < end {
                self.step(end)?;
            }
            match self.life.over.take() {
                None => {
                    return demand(self.life.open, "liveness", || "the store does not open".into());
                }
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => self.judge(&error)?,
            }
        }
        demand(false, "liveness", || "the store never opens".into())
    }

    /// Whether this is a reason not to open. Rotten files are mended; a full disk gets room.
    pub(super) fn judge(&mut self, error: &OpenError) -> Verdict {
        match error {
            OpenError::Full(_) => {
                self.make_room();
                Ok(())
            }
            OpenError::Disk(_) => Ok(()),
            _ => match self.harm.take() {
                None => demand(false, PROPERTY, || format!("nothing had rotted, and yet: {error}")),
                Some(Harm::Rot(bit)) => {
                    self.disk.flip(bit);
                    demand(befits(error, bit.0), PROPERTY, || {
                        format!("{} rotted, and yet: {error}", bit.0)
                    })
                }
                Some(Harm::OldManifest(new)) => {
                    self.disk.put(FileName::Manifest, new);
                    let known =
                        matches!(error, OpenError::OldManifest { .. } | OpenError::Lost { .. });
                    demand(known, PROPERTY, || {
                        format!("the manifest was an old one, and yet: {error}")
                    })
                }
            },
        }
    }

    /// Nothing goes wrong any more: appended records must come to the disk.
    pub(super) fn heal(&mut self) -> Verdict {
        self.trace.say(self.now, || "ALL HEALS".into());
        self.disk.troubles = Troubles::default();
        self.healed = true;
        self.make_room();
        // Operations under way may have failed already: all begins anew.
        self.reopen(None)?;
        let end = self.now + WITHIN;
        let mut left = 20;
        while left > 0 && self.now < end {
            let before = self.log.last();
            self.append()?;
            left -= usize::from(self.log.last() > before);
            self.step(self.now + Duration::from_millis(1))?;
        }
        while self.log.persisted() < self.log.last().0 && self.now < end {
            self.step(end)?;
        }
        let done = left == 0 && self.log.persisted() == self.log.last().0;
        demand(done, "liveness", || "what is appended does not come to the disk".into())?;
        self.settle()?;
        self.life.store.close(self.now);
        self.until_over()
    }

    /// Snapshots let the log go, and there is room to write them on a full disk.
    pub(super) fn settle(&mut self) -> Verdict {
        let Config { keep, reserve, .. } = self.options.config;
        let end = self.now + WITHIN;
        let settled = |disk: &Disk| {
            (disk.segments() <= keep + 2, disk.room_of(FileName::Reserve) >= reserve as usize)
        };
        while settled(&self.disk) != (true, true) && self.now < end {
            for strand in std::mem::take(&mut self.life.wanted) {
                self.snapshot(strand);
            }
            self.step(self.now + Duration::from_millis(1))?;
        }
        let (short, reserved) = settled(&self.disk);
        demand(short, "liveness", || {
            format!("{} segments, and no snapshot is asked for", self.disk.segments())
        })?;
        demand(reserved, "liveness", || "the reserve is not made whole".into())
    }
}
