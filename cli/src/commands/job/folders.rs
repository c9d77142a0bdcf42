//! Commands that need no node: they read the images of this machine's folders, and ranks' prints.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use agent::images::{errors_of, log_of};
use agent::prints::{go_to, newest};
use job::{JobState, RankState};

use super::options::Disk;
use crate::commands::{Failure, print};
use crate::jobs::{images, own, reach};

/// The job's number and its images' folders; the book, if a node answers.
fn on_disk(name: &str, disk: &Disk) -> Result<(u64, Vec<PathBuf>, Option<job::Jobs>), Failure> {
    let folders = if disk.folder.is_empty() { own::folders()? } else { disk.folder.clone() };
    let again = || reach::existing(&disk.at);
    let node = reach::there(&disk.at)?;
    let status = node.map(|mut node| reach::book(&mut node, again)).transpose()?;
    if let Some(status) = status {
        let (number, _) = reach::named(&status, name)?;
        return Ok((number, folders, status.jobs));
    }
    Err(Failure::Failed("no node answers".into())).or_else(|error| {
        // Without a node, the folder's own number names the job.
        let number = u64::from_str_radix(name, 16).map_err(|_| error)?;
        Ok((number, folders, None))
    })
}

/// Reads every copy on this machine, and names each damage.
pub fn verify(name: &str, disk: &Disk) -> Result<(), Failure> {
    let (number, folders, jobs) = on_disk(name, disk)?;
    let found = images::find(&folders, number, jobs.as_ref())?;
    let torn = images::torn(&folders, number)?;
    let mut verified = images::verify(&found);
    for manifest in &torn {
        let manifest = manifest.display();
        verified.text += &format!("{manifest}: DAMAGED\n  the manifest is torn or rotten\n");
    }
    verified.damages += torn.len();
    print(&verified.text)?;
    match verified.damages {
        0 if verified.copies == 0 => Err(Failure::Failed(
            "this machine has no image of the job: --folder DIR names another folder".into(),
        )),
        0 => print(&format!("{} copies, all whole\n", verified.copies)),
        damages => Err(Failure::Failed(format!(
            "{damages} damages in {} copies: a rank that starts takes another copy, or the newest image that is whole",
            verified.copies
        ))),
    }
}

/// Writes arrays and results, or results alone, to files.
pub fn restore(
    name: &str,
    disk: &Disk,
    (out, generation, results): (&Path, Option<u64>, bool),
) -> Result<(), Failure> {
    let (number, folders, jobs) = on_disk(name, disk)?;
    let found = images::find(&folders, number, jobs.as_ref())?;
    let states = images::newest(&found, generation)?;
    let (mut missing, mut files) = (Vec::new(), 0);
    let job = jobs.as_ref().and_then(|jobs| jobs.job(number));
    let ranks = job.map_or(0, |job| job.spec.ranks);
    // A rank that has finished, and has never saved, had nothing to deliver.
    let has_none = |rank: u32| {
        let rank = job.and_then(|job| job.ranks.get(rank as usize));
        rank.is_some_and(|it| it.state == RankState::Finished && it.images.next() == 1)
    };
    for rank in 0..ranks.max(states.keys().last().map_or(0, |last| last + 1)) {
        let Some(state) = states.get(&rank) else {
            missing.extend(Some(rank).filter(|rank| !has_none(*rank)));
            continue;
        };
        for path in images::write(out, rank, state, results)? {
            print(&format!("{}\n", path.display()))?;
            files += 1;
        }
    }
    match missing.is_empty() {
        true if files > 0 => Ok(()),
        true if results => Err(Failure::Failed("no rank has delivered a result yet".into())),
        true => Err(Failure::Failed("no rank has saved an array yet".into())),
        false => Err(Failure::Failed(format!(
            "this machine has no image of ranks {missing:?} that can be read: --folder DIR names another folder, and `steadfast job verify {name}` reads the \
             images"
        ))),
    }
}

/// Prints what a rank has printed on this machine, each to where it went: standard output once, by its
/// last start; standard error of all its starts.
pub fn logs(name: &str, rank: u32, follow: bool, disk: &Disk) -> Result<(), Failure> {
    let (number, folders, _) = on_disk(name, disk)?;
    let all = |file: fn(&Path, u64, u32) -> PathBuf| -> Vec<PathBuf> {
        folders.iter().map(|folder| file(folder, number, rank)).collect()
    };
    let (outputs, errors) = (all(log_of), all(errors_of));
    if !follow && !outputs.iter().chain(&errors).any(|file| file.exists()) {
        return Err(Failure::Failed(format!("rank {rank} has printed nothing on this machine")));
    }
    let over = Arc::new(Mutex::new(!follow));
    if follow {
        watch_end(number, disk, over.clone())?;
    }
    let (mut printed, mut said) = (0, vec![0; errors.len()]);
    loop {
        let last = *over.lock().unwrap_or_else(PoisonError::into_inner);
        let mut some = false;
        // Another start's file comes to have the same bytes.
        if let Some(output) = newest(&outputs) {
            some |= print_from(output, &mut printed, &mut io::stdout().lock())?;
        }
        for (errors, said) in errors.iter().zip(&mut said) {
            some |= print_from(errors, said, &mut io::stderr().lock())?;
        }
        if last && !some {
            return Ok(());
        }
        if !some {
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Notes when a job is over.
fn watch_end(number: u64, disk: &Disk, over: Arc<Mutex<bool>>) -> Result<(), Failure> {
    let Some(mut node) = reach::there(&disk.at)? else {
        *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        return Ok(());
    };
    thread::spawn(move || {
        let mut since = None;
        while let Ok(status) = node.jobs(since, Duration::from_secs(5)) {
            since = Some(status.version);
            let runs = |jobs: &job::Jobs| {
                jobs.job(number).is_some_and(|job| job.state == JobState::Running)
            };
            if status.jobs.is_some_and(|jobs| !runs(&jobs)) {
                break;
            }
        }
        *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
    });
    Ok(())
}

/// Prints what is new in a file. True: something was.
fn print_from(log: &Path, read: &mut u64, to: &mut impl Write) -> Result<bool, Failure> {
    let Ok(mut file) = File::open(log) else { return Ok(false) };
    let mut bytes = Vec::new();
    let new = go_to(&file, *read).and_then(|begin| Ok((begin, file.read_to_end(&mut bytes)?)));
    let (begin, new) =
        new.map_err(|error| Failure::Failed(format!("{}: {error}", log.display())))?;
    *read = begin + new as u64;
    match to.write_all(&bytes).and_then(|()| to.flush()) {
        // A reader that has gone away is no error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot write what was printed: {error}")))
        }
        _ => Ok(new > 0),
    }
}
