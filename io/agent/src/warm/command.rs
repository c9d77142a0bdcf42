//! The command of a warm process: the job's interpreter and its options, with another script.

use std::path::{Path, PathBuf};

use job::Spec;

/// The code that runs instead of the script. It imports nothing from the folder in which it runs,
/// because the script does not, and leaves no name in the program's own module.
const PARK: &str = "(lambda it: it.flags.safe_path or it.path.pop(0))(__import__('sys')); \
                    __import__('steadfast_jobs._parking')._parking.main()";

/// Options that have no value, and say nothing of the script.
const PLAIN: &str = "bBdEIOPqsSuv";

/// The words of the process, and the script that its forks run. `None`: the command is not an
/// interpreter of Python with a script, or has an option whose effect on a fork is not known.
pub(super) fn of(spec: &Spec) -> Option<(Vec<String>, PathBuf)> {
    let (program, arguments) = spec.command.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if bare != "python" {
        return None;
    }
    let mut place = 0;
    loop {
        match arguments.get(place)?.as_str() {
            "-W" | "-X" => place += 2,
            word if word.starts_with("-W") || word.starts_with("-X") => place += 1,
            word if word.strip_prefix('-').is_some_and(is_plain) => place += 1,
            _ => break,
        }
    }
    let (options, rest) = arguments.split_at(place);
    let script = Path::new(&spec.folder).join(&rest[0]);
    if rest[0].starts_with('-') || !rest[0].ends_with(".py") || !script.is_file() {
        return None;
    }
    let park = ["-c", PARK].map(String::from);
    let words = [program].into_iter().chain(options).cloned().chain(park).chain(rest.to_vec());
    Some((words.collect(), script))
}

fn is_plain(letters: &str) -> bool {
    !letters.is_empty() && letters.chars().all(|letter| PLAIN.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_run_by_what_parks() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["sum.py", "sum", "-i.py"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        for (command, warm) in [
            ("python sum.py 100", Some("python -c PARK sum.py 100")),
            (
                "/bin/python3.11 -uB -W x -Xdev sum.py",
                Some("/bin/python3.11 -uB -W x -Xdev -c PARK sum.py"),
            ),
            ("python", None),
            ("python -W", None),
            ("python sum", None),
            ("python none.py", None),
            ("python - sum.py", None),
            ("python -i sum.py", None),
            ("python -i.py", None),
            ("python -x sum.py", None),
            ("python -m sum.py", None),
            ("python -c sum.py", None),
            ("pypy sum.py", None),
            ("env python sum.py", None),
        ] {
            let spec = Spec {
                command: command.split(' ').map(String::from).collect(),
                folder: folder.path().to_string_lossy().into_owned(),
                ..Spec::default()
            };
            let found = of(&spec).map(|(words, script)| {
                assert_eq!(script, folder.path().join("sum.py"));
                words.join(" ").replace(PARK, "PARK")
            });
            assert_eq!(found.as_deref(), warm, "{command}");
        }
    }
}
