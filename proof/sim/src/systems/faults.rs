//! Faults between cells, and of whole cells. Those of nodes are the cells' own.

use wire::Duration;

use super::world::{Fault, Happening, System};
use crate::wires::Due;

impl System {
    /// The next fault strikes.
    pub(super) fn fault(&mut self) {
        if self.is_calm {
            return;
        }
        let next = self.draw.span(Duration::from_millis(1), self.options.pause * 2);
        self.queue.push(self.now() + next, Happening::Fault);
        let now = self.now();
        if now.0 == 0 {
            return;
        }
        let cell = self.draw.count(0, self.cells.len() - 1);
        let span = self.draw.scale(Duration::from_millis(5), self.options.longest);
        let other = self.options.parents[cell].unwrap_or((cell + 1) % self.cells.len());
        let others = || (0..self.cells.len()).filter(|other| *other != cell);
        let cut = match self.draw.between(0, 9) {
            0..=2 => vec![(cell, other), (other, cell)],
            3 | 4 => vec![(cell, other)],
            5 | 6 => vec![(other, cell)],
            7 => others().flat_map(|other| [(cell, other), (other, cell)]).collect(),
            8 => {
                self.say(|| format!("FAULT cell {cell} is stopped for {span:?}"));
                return self.cells[cell].stop_all(now, span);
            }
            _ => {
                self.say(|| format!("FAULT cell {cell} is lost"));
                return self.cells[cell].lose_all(now);
            }
        };
        self.say(|| format!("FAULT nothing travels {cut:?} for {span:?}"));
        for (from, to) in &cut {
            *self.cuts.entry((*from, *to)).or_default() += 1;
            self.wires.cut(*from, *to);
        }
        self.queue.push(now + span, Happening::Over(Fault(cut)));
    }

    /// A fault is over.
    pub(super) fn over(&mut self, fault: &Fault) {
        self.say(|| format!("OVER {fault:?}"));
        for way in &fault.0 {
            let Some(count) = self.cuts.get_mut(way) else { continue };
            *count -= 1;
            if *count == 0 {
                self.mend(*way);
            }
        }
    }

    fn mend(&mut self, (from, to): (usize, usize)) {
        self.cuts.remove(&(from, to));
        let now = self.now();
        let waited = self.wires.mend(from, to);
        self.arrives(waited.into_iter().map(|due| Due { at: due.at.max(now), ..due }));
    }

    /// All heals.
    pub(super) fn calm(&mut self) {
        self.is_calm = true;
        let ways: Vec<_> = self.cuts.keys().copied().collect();
        ways.into_iter().for_each(|way| self.mend(way));
        self.begin_looks();
    }
}
