//! A job's program: the same at each start, or the result is none of an undisturbed run.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use job::Spec;
use sha2::{Digest, Sha256};

/// Programs that run a script. A host's own version of these is its business.
const INTERPRETERS: [&str; 10] =
    ["python", "pypy", "bash", "sh", "dash", "perl", "ruby", "julia", "Rscript", "node"];

/// Their options that have a value behind them, and those after which no script comes.
const VALUED: [&str; 4] = ["-W", "-X", "-o", "-O"];
const SCRIPTLESS: [&str; 3] = ["-c", "-e", "-m"];

/// Programs that start others: nothing is known of these.
const STARTERS: [&str; 9] =
    ["env", "nice", "numactl", "setsid", "stdbuf", "taskset", "time", "timeout", "uv"];

/// The file that says what a job computes: its program, or the script that an interpreter runs.
/// `None`: it is not to be told from the command, as with `python -m`.
pub fn file_of(spec: &Spec) -> Option<PathBuf> {
    let folder = Path::new(&spec.folder);
    let (program, arguments) = spec.command.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    // python3.11 is one as well.
    let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if INTERPRETERS.contains(&bare) {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                word if SCRIPTLESS.contains(&word) => return None,
                word if VALUED.contains(&word) => _ = words.next(),
                word if word.starts_with('-') => {}
                script => return Some(folder.join(script)).filter(|path| path.is_file()),
            }
        }
        return None;
    }
    if STARTERS.contains(&bare) {
        return None;
    }
    if program.contains('/') {
        return Some(folder.join(program)).filter(|path| path.is_file());
    }
    let path = spec.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    let mut folders = path?.split(':');
    // An empty one is the present folder, which is the job's.
    folders.find_map(|path| Some(folder.join(path).join(program)).filter(|it| is_program(it)))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The SHA-256 of a file.
///
/// # Errors
/// It cannot be read.
pub fn digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    Ok(hash.finalize().into())
}

/// Programs that were read, each as long as its file is the same.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    read: HashMap<PathBuf, (Stamp, Digested)>,
}

pub(crate) type Digested = Result<[u8; 32], String>;

/// Marks that change with a file: its device and number, its length, and the time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64, u64, u64, i64, i64);

impl Stamp {
    /// The marks that a file has now.
    pub fn read(path: &Path) -> io::Result<Stamp> {
        Ok(Stamp::of(&fs::metadata(path)?))
    }

    fn of(data: &Metadata) -> Stamp {
        Stamp(data.dev(), data.ino(), data.len(), data.ctime(), data.ctime_nsec())
    }
}

/// Whether this host has a job's program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It has.
    Right,
    /// It has another one, or none: the reason, and the remedy.
    Wrong(String),
    /// It has to be read first: [`read`] does.
    Unread(PathBuf),
}

/// Reads a program, which may take a while.
pub(crate) fn read(path: &Path) -> io::Result<(Stamp, Digested)> {
    let stamp = Stamp::read(path)?;
    Ok((stamp, digest(path).map_err(|error| error.to_string())))
}

impl Programs {
    /// Looks at what this host has instead of the program with which the job was submitted.
    pub fn look(&self, spec: &Spec) -> Look {
        let Some(wanted) = spec.program else { return Look::Right };
        let Some(found) = file_of(spec) else {
            let words =
                spec.command.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(" ");
            let why = "this host has no such program: copy it to the same path, or choose hosts by --label";
            return Look::Wrong(format!("{why}: {words}"));
        };
        let known = self.read.get(&found);
        let same = |stamp: &Stamp| Stamp::read(&found).is_ok_and(|it| it == *stamp);
        match known.filter(|(stamp, _)| same(stamp)) {
            Some((_, Ok(is))) if *is == wanted => Look::Right,
            Some((_, Ok(_))) => Look::Wrong(format!(
                "the program has changed since the job was submitted: put it back, or `steadfast job resume {} \
                 --any-program`: {}",
                spec.name,
                found.display()
            )),
            Some((_, Err(why))) => Look::Wrong(format!("{}: {why}", found.display())),
            None => Look::Unread(found),
        }
    }

    /// A program was read.
    pub fn learn(&mut self, path: PathBuf, read: (Stamp, Digested)) {
        self.read.insert(path, read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(folder: &Path, command: &str) -> Spec {
        Spec {
            name: "sum".into(),
            command: command.split(' ').map(String::from).collect(),
            folder: folder.to_string_lossy().into_owned(),
            environment: vec![("PATH".into(), "/none::/usr/bin".into())],
            ..Spec::default()
        }
    }

    #[test]
    fn a_job_is_about_its_script_or_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["sum.py", "sum", "run.sh"] {
            fs::write(path(name), name).unwrap();
        }
        fs::set_permissions(path("sum"), fs::Permissions::from_mode(0o755)).unwrap();
        for (command, file) in [
            ("python sum.py 100", Some("sum.py")),
            ("/usr/bin/python3.11 -u sum.py", Some("sum.py")),
            ("python -W ignore -X dev sum.py", Some("sum.py")),
            ("python -m sums", None),
            ("bash -c ls", None),
            ("env python sum.py", None),
            ("bash run.sh", Some("run.sh")),
            ("sum sum.py", Some("sum")),
            ("./sum", Some("sum")),
            ("run.sh", None),
            ("python none.py", None),
        ] {
            let found = file_of(&spec(folder.path(), command));
            let name = found.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
            assert_eq!(name, file, "{command}");
        }
    }

    #[test]
    fn a_program_that_has_changed_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("sum.py");
        fs::write(&script, "one").unwrap();
        let mut job = spec(folder.path(), "python sum.py");
        let mut programs = Programs::default();
        let mut look = |job: &Spec| match programs.look(job) {
            Look::Unread(path) => {
                programs.learn(path.clone(), read(&path).unwrap());
                assert!(programs.look(job) != Look::Unread(path), "it is known now");
                (programs.look(job), true)
            }
            known => (known, false),
        };
        assert_eq!(look(&job), (Look::Right, false), "any will do");
        job.program = Some(digest(&script).unwrap());
        assert_eq!(look(&job), (Look::Right, true));
        assert_eq!(look(&job), (Look::Right, false));
        fs::write(folder.path().join("new"), "two").unwrap();
        fs::rename(folder.path().join("new"), &script).unwrap();
        let (Look::Wrong(why), true) = look(&job) else { panic!("it is another one") };
        assert!(why.contains("job resume sum --any-program"), "{why}");
        fs::remove_file(&script).unwrap();
        let (Look::Wrong(why), false) = look(&job) else { panic!("there is none") };
        assert!(why.contains("no such program") && why.contains("python sum.py"), "{why}");
        job.program = None;
        assert_eq!(look(&job), (Look::Right, false));
    }
}
