//! Memory that a process of an experiment has touched: what it costs when the process dies.

use std::sync::OnceLock;

/// The end of the names of groups whose replicas' processes touch memory: `thread-256-mib`.
const SUFFIX: &str = "-mib";

static TOUCHED: OnceLock<Vec<u8>> = OnceLock::new();

/// The name of a group that is hosted as this one, in processes that touch so many mebibytes.
pub fn group(like: &'static str, mebibytes: usize) -> &'static str {
    match mebibytes {
        0 => like,
        // One for each run of the program.
        some => Box::leak(format!("{like}-{some}{SUFFIX}").into_boxed_str()),
    }
}

/// Touches the memory that the group's name says. It is kept until the process ends.
pub fn touch(group: &str) {
    let size = group.strip_suffix(SUFFIX);
    let size = size.and_then(|name| name.rsplit_once('-')?.1.parse::<usize>().ok());
    if let Some(mebibytes) = size {
        // Each byte is written, so each page is there.
        TOUCHED.get_or_init(|| vec![1; mebibytes << 20]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::hosted;

    #[test]
    fn a_groups_name_says_how_much_is_touched_and_how_it_is_hosted() {
        assert_eq!(group("thread", 0), "thread");
        let laden = group("thread", 3);
        assert_eq!(laden, "thread-3-mib");
        assert_eq!(hosted(laden).unwrap(), hosted("thread").unwrap());
        touch("thread");
        assert_eq!(TOUCHED.get(), None);
        touch(laden);
        assert_eq!(TOUCHED.get().map(Vec::len), Some(3 << 20));
    }
}
