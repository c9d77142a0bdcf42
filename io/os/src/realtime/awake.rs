//! Processors that are kept from sleeping deeper than a wake-up may take.
//!
//! Linux's power management takes requests by a device file. A process writes a number of
//! microseconds to it; while the process holds it open, the idle processors of the whole host stay
//! in states that they leave within that time. The kernel forgets the request when the file is
//! closed, however the process ends (kernel documentation, "PM Quality Of Service Interface").

use std::fs::{File, OpenOptions, read_dir, read_to_string};
use std::io::{Read, Write};
use std::path::Path;

use wire::Duration;

/// The device of wake-up requests: one is in force while its writer has this open.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// The driver that puts processors to sleep, and the states that it can choose from.
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
const STATES: &str = "/sys/devices/system/cpu/cpu0/cpuidle";

/// As long as this lives the processors of this host are woken within the time it was made with.
#[derive(Debug)]
pub struct Awake {
    _device: File,
}

/// A state that an idle processor may be put into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// As the driver calls it.
    pub name: String,
    /// The time to leave it, according to the driver.
    pub leaves_within: Duration,
}

impl Awake {
    /// Asks that idle processors be woken within this time; zero: that they do not sleep at all.
    ///
    /// # Errors
    /// Why that is refused or would be in vain, and the remedy.
    pub fn hold(within: Duration) -> Result<Awake, String> {
        let Some(driver) = driver() else {
            return Err("this kernel has no idle states to choose from (no cpuidle driver, as in \
                        many virtual machines): boot it with idle=poll, or ask the host's operator"
                .into());
        };
        let request = i32::try_from(within.as_micros()).unwrap_or(i32::MAX);
        let mut device = open()?;
        device.write_all(&request.to_ne_bytes()).map_err(|error| {
            format!("{DEVICE} does not take it from the driver {driver}'s users ({error})")
        })?;
        Ok(Awake { _device: device })
    }
}

fn open() -> Result<File, String> {
    let open = OpenOptions::new().read(true).write(true).open(DEVICE);
    open.map_err(|error| {
        format!(
            "{DEVICE} cannot be opened ({error}): give the node's user the right to write it, by a \
             udev rule such as KERNEL==\"cpu_dma_latency\", GROUP=\"steadfast\", MODE=\"0660\""
        )
    })
}

/// Whether a request could be made: it is made by nobody.
///
/// # Errors
/// As [`Awake::hold`].
pub fn probe_awake() -> Result<(), String> {
    open().map(drop)
}

/// The strictest request that somebody on this host holds now; `None` if nobody does, or it may not
/// be asked.
pub fn awake_in_force() -> Option<Duration> {
    /// The kernel's answer when there is no request: 2,000 s.
    const NOBODY: i32 = 2_000_000_000;
    let mut answer = [0; 4];
    open().ok()?.read_exact(&mut answer).ok()?;
    let micros = i32::from_ne_bytes(answer);
    (micros < NOBODY).then(|| Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}

/// The driver that puts this host's processors to sleep; `None`: they are halted without a choice.
pub fn driver() -> Option<String> {
    let driver = read_to_string(DRIVER).ok()?.trim().to_owned();
    (!driver.is_empty() && driver != "none").then_some(driver)
}

/// The idle states of this host's processors, the shallowest first.
pub fn idle_states() -> Vec<IdleState> {
    states_in(Path::new(STATES))
}

fn states_in(folder: &Path) -> Vec<IdleState> {
    let state = |entry: std::io::Result<std::fs::DirEntry>| {
        let folder = entry.ok()?.path();
        let number: u32 = folder.file_name()?.to_str()?.strip_prefix("state")?.parse().ok()?;
        let micros = read_to_string(folder.join("latency")).ok()?.trim().parse().ok()?;
        let name = read_to_string(folder.join("name")).ok()?.trim().to_owned();
        Some((number, IdleState { name, leaves_within: Duration::from_micros(micros) }))
    };
    let mut states: Vec<_> = read_dir(folder).into_iter().flatten().filter_map(state).collect();
    states.sort_by_key(|(number, _)| *number);
    states.into_iter().map(|(_, state)| state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_in_force_while_it_is_held_or_refused_with_the_remedy() {
        // Stricter than what anybody else on this host may have asked for.
        match Awake::hold(Duration::ZERO) {
            Ok(_awake) => assert_eq!(awake_in_force(), Some(Duration::ZERO)),
            Err(why) => assert!(why.contains("udev") || why.contains("idle=poll"), "{why}"),
        }
    }

    #[test]
    fn states_come_in_the_order_of_their_depth() {
        let folder = tempfile::tempdir().unwrap();
        for (number, name, micros) in [(10, "C6", 133), (0, "POLL", 0), (2, "C1E", 10)] {
            let state = folder.path().join(format!("state{number}"));
            std::fs::create_dir(&state).unwrap();
            std::fs::write(state.join("name"), format!("{name}\n")).unwrap();
            std::fs::write(state.join("latency"), format!("{micros}\n")).unwrap();
        }
        std::fs::create_dir(folder.path().join("driver")).unwrap();
        let states = states_in(folder.path());
        let names: Vec<&str> = states.iter().map(|state| state.name.as_str()).collect();
        assert_eq!(names, ["POLL", "C1E", "C6"]);
        assert_eq!(states[2].leaves_within, Duration::from_micros(133));
    }
}
