//! A job from its beginning to its end, and what its checkpoints have cost.

use job::{Command, Spec};

use super::memory::Said;
use super::scene::Scene;
use crate::{Outcome, bail};

/// A job that has ended.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// Seconds of the slowest rank between its first turn and its last; of programs that do not say
    /// it, from the job's beginning to its end.
    pub computed: f64,
    /// Percent of that in which ranks were in safe points, the mean of all; `None`: they do not say
    /// it.
    pub safe_percent: Option<f64>,
    /// Percent of the ranks' time that the agents have used on processors.
    pub agents_percent: f64,
    /// Milliseconds of each stop.
    pub stops: Vec<f64>,
    /// Milliseconds from the last checkpoint's beginning until it was whole.
    pub saved: f64,
    /// Images of all ranks.
    pub images: u64,
    /// The sum of what ranks have computed.
    pub sum: f64,
}

impl Ran {
    /// Runs a job, and forgets it.
    pub fn run(scene: &mut Scene, spec: Spec) -> Outcome<Ran> {
        let (before, ranks) = (scene.agents_time()?, spec.ranks);
        let job = scene.submit(spec)?;
        scene.finished(job)?;
        let agents = scene.agents_time()?.saturating_sub(before).as_secs_f64();
        let mut ran = scene.wait("a job that has finished", |jobs| {
            let job = jobs.job(job)?;
            let last = job.ranks.iter().map(|rank| rank.progress.save_us).max().unwrap_or(0);
            Some(Ran {
                computed: job.since.since(job.submitted).as_secs_f64(),
                saved: f64::from(last) / 1e3,
                images: job.ranks.iter().map(|rank| rank.images.next() - 1).sum(),
                ..Ran::default()
            })
        })?;
        let (mut slowest, mut shares) = (0.0, Vec::new());
        for said in (0..ranks).flat_map(|rank| scene.said(job, rank)) {
            match said {
                Said::Saved { stop, .. } => ran.stops.push(stop as f64 / 1e6),
                Said::Begun | Said::Turned { .. } => {}
                Said::Done { computed, safe, sum, .. } => {
                    slowest = f64::max(slowest, computed);
                    shares.push(safe / computed * 100.0);
                    ran.sum += sum;
                }
            }
        }
        if shares.len() == ranks as usize {
            ran.computed = slowest;
            ran.safe_percent = Some(shares.iter().sum::<f64>() / shares.len() as f64);
        } else if !shares.is_empty() {
            bail!("only {} of {ranks} ranks say how long they computed", shares.len());
        }
        ran.agents_percent = agents / ran.computed / f64::from(ranks) * 100.0;
        scene.take(&Command::Forget { job })?;
        Ok(ran)
    }

    /// Percent of the ranks' time that safe points and agents have taken.
    pub fn accounted_percent(&self) -> Option<f64> {
        Some(self.safe_percent? + self.agents_percent)
    }
}
