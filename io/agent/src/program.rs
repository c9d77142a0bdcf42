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

/// The file that says what a job computes: its program, or the script that an interpreter runs.
/// `None`: it is not to be told from the command, as with `python -m`.
pub fn file_of(spec: &Spec) -> Option<PathBuf> {
    let folder = Path::new(&spec.folder);
    let (program, arguments) = spec.command.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    // python3.11 is one as well.
    let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if INTERPRETERS.contains(&bare) {
        let script = arguments.iter().find(|word| !word.starts_with('-'))?;
        return Some(folder.join(script)).filter(|path| path.is_file());
    }
    if program.contains('/') {
        return Some(folder.join(program)).filter(|path| path.is_file());
    }
    let path = spec.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    let mut folders = path?.split(':');
    folders.find_map(|folder| Some(Path::new(folder).join(program)).filter(|it| is_program(it)))
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
    read: HashMap<PathBuf, (Stamp, [u8; 32])>,
}

/// Marks that change with a file: its device and number, its length, and the time of its last change.
type Stamp = (u64, u64, u64, i64, i64);

fn stamp(data: &Metadata) -> Stamp {
    (data.dev(), data.ino(), data.len(), data.ctime(), data.ctime_nsec())
}

impl Programs {
    /// This host has the program with which the job was submitted.
    pub fn check(&mut self, spec: &Spec) -> Result<(), String> {
        let Some(wanted) = spec.program else { return Ok(()) };
        let found = file_of(spec).ok_or("this host does not have the program")?;
        let told = |error: io::Error| format!("{}: {error}", found.display());
        let stamp = stamp(&fs::metadata(&found).map_err(told)?);
        let is = match self.read.get(&found) {
            Some((of, is)) if *of == stamp => *is,
            _ => digest(&found).map_err(told)?,
        };
        self.read.insert(found.clone(), (stamp, is));
        if is == wanted {
            return Ok(());
        }
        Err(format!(
            "{} is not what the job was submitted with: put that back, or `steadfast job resume {} --any-program`",
            found.display(),
            spec.name
        ))
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
            environment: vec![("PATH".into(), format!("/none:{}", folder.display()))],
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
            ("python -m sums", None),
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
        programs.check(&job).unwrap();
        job.program = Some(digest(&script).unwrap());
        programs.check(&job).unwrap();
        programs.check(&job).unwrap();
        fs::write(folder.path().join("new"), "two").unwrap();
        fs::rename(folder.path().join("new"), &script).unwrap();
        assert!(programs.check(&job).unwrap_err().contains("job resume sum --any-program"));
        fs::remove_file(&script).unwrap();
        assert!(programs.check(&job).unwrap_err().contains("does not have"));
        job.program = None;
        programs.check(&job).unwrap();
    }
}
