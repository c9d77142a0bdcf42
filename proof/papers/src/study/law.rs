//! How long somebody thinks, or serves: fixed times and random ones.

use std::fmt;

use serde::{Deserialize, Serialize};
use wire::Random;

/// How times are distributed around their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// All are the mean.
    #[default]
    Fixed,
    /// As between the events of a Poisson process.
    Exponential,
    /// From nothing to twice the mean, all equally likely.
    Uniform,
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Law {
    /// Their mean, in microseconds.
    pub mean_us: f64,
    /// How they are distributed.
    pub kind: Kind,
}

impl Law {
    /// Always the same.
    pub const fn fixed(mean_us: f64) -> Law {
        Law { mean_us, kind: Kind::Fixed }
    }

    /// The time that half of the times do not exceed.
    pub fn median(&self) -> f64 {
        match self.kind {
            Kind::Fixed | Kind::Uniform => self.mean_us,
            Kind::Exponential => self.mean_us * std::f64::consts::LN_2,
        }
    }

    /// A time, in microseconds: the same of the same draws, on whichever node.
    pub fn draw(&self, random: &mut Random) -> f64 {
        match self.kind {
            Kind::Fixed => self.mean_us,
            Kind::Uniform => 2.0 * self.mean_us * share(random),
            // Never the logarithm of zero.
            Kind::Exponential => -self.mean_us * (1.0 - share(random)).ln(),
        }
    }
}

/// A number from 0 up to 1, without that.
fn share(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Fixed => write!(f, "{:.0}", self.mean_us),
            Kind::Exponential => write!(f, "{:.0} exp", self.mean_us),
            Kind::Uniform => write!(f, "{:.0} uni", self.mean_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_law_keeps_its_mean_and_its_bounds() {
        for kind in [Kind::Fixed, Kind::Exponential, Kind::Uniform] {
            let law = Law { mean_us: 200.0, kind };
            let mut random = Random::new(3);
            let times: Vec<f64> = (0..50_000).map(|_| law.draw(&mut random)).collect();
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            assert!((mean - 200.0).abs() < 3.0, "{law}: {mean}");
            assert!(times.iter().all(|time| time.is_finite() && *time >= 0.0), "{law}");
            let beyond = times.iter().filter(|time| **time > 400.0).count();
            let longest = match kind {
                Kind::Exponential => 50_000.0 * (-2.0_f64).exp(),
                _ => 0.0,
            };
            assert!(
                (beyond as f64 - longest).abs() < 300.0,
                "{law}: {beyond} beyond twice the mean"
            );
        }
    }
}
