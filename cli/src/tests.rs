//! The program understands every command that the help and the documents show to users.

use clap::CommandFactory;

use super::*;

const DOCUMENTS: [(&str, &str); 3] = [
    ("README.md", include_str!("../../README.md")),
    ("docs/operating.md", include_str!("../../docs/operating.md")),
    ("docs/demo.md", include_str!("../../docs/demo.md")),
];

/// The words of a shell's line up to its first comment, redirection, pipe or end of command; `None`
/// if it has a variable, of which nothing is known here.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '$' => return None,
            '\'' => word
                .get_or_insert_with(String::new)
                .extend(letters.by_ref().take_while(|letter| *letter != '\'')),
            '>' => {
                // Standard error's number is no word of the command.
                word = word.filter(|word| word != "2");
                break;
            }
            '#' | '<' | '|' | '&' | ';' => break,
            ' ' => words.extend(word.take()),
            _ => word.get_or_insert_with(String::new).push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

/// Checks a command as far as the command line goes. Two blanks, in a help, begin an explanation.
fn check(place: &str, line: &str) -> usize {
    let line = line.trim();
    let Some(rest) = line.strip_prefix("steadfast ") else { return 0 };
    let command = rest.split("  ").next().unwrap_or(rest);
    let Some(words) = words(command) else { return 0 };
    let given = std::iter::once("steadfast".to_owned()).chain(words);
    if let Err(error) = Cli::try_parse_from(given)
        && error.use_stderr()
    {
        panic!("{place}: `{line}`\n{error}");
    }
    1
}

#[test]
fn every_command_in_the_documents_is_understood() {
    for (place, text) in DOCUMENTS {
        let mut fences = text.split("```");
        let mut checked = 0;
        // Every second part stands between fences.
        while let (Some(_), Some(block)) = (fences.next(), fences.next()) {
            checked += block.lines().map(|line| check(place, line)).sum::<usize>();
        }
        assert!(checked > 0 || place.ends_with("demo.md"), "{place} tells no command");
    }
}

#[test]
fn every_command_teaches_with_examples_that_are_understood() {
    fn teach(command: &clap::Command, path: &str) {
        let path = format!("{path} {}", command.get_name());
        let is_for_users = !command.is_hide_set() && command.get_name() != "help";
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let checked: usize = help.lines().map(|line| check(&path, line)).sum();
        // These have the examples of their subcommands, since each is one line.
        let above = [" steadfast key ", " steadfast upgrade "];
        let is_taught_above = above.iter().any(|above| path.starts_with(above));
        assert!(checked > 0 || is_taught_above || !is_for_users, "{path} --help has no example");
        for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            teach(below, &path);
        }
    }
    teach(&Cli::command(), "");
}
