//! This host, as ranks find it.

use std::fs;

/// Bytes of this host's memory; 0: unknown.
pub fn memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The kind of this host's processors. Two hosts of one kind compute the same bits: numerical
/// libraries choose their code by the maker and by these instructions.
pub fn kind() -> String {
    kind_of(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

/// Instructions by which compilers and numerical libraries choose, by how their names begin.
const CHOSEN: [&str; 12] =
    ["amx", "asimd", "avx", "bmi", "f16c", "fma", "neon", "popcnt", "sse4", "ssse3", "sve", "vsx"];

/// Bytes of a kind. More than any processor of today has.
const LONGEST: usize = 512;

fn kind_of(cpuinfo: &str) -> String {
    // The first processor speaks for all.
    let first = cpuinfo.split("\n\n").next().unwrap_or_default();
    let value = |name: &str| {
        let fields = first.lines().filter_map(|line| line.split_once(':'));
        let mut fields = fields.filter(|(field, _)| field.trim() == name);
        fields.next().map(|(_, value)| value.trim())
    };
    let maker = value("vendor_id").or_else(|| value("CPU implementer"));
    let part = value("CPU part");
    let flags = value("flags").or_else(|| value("Features")).unwrap_or_default();
    let chosen = |flag: &&str| CHOSEN.iter().any(|begin| flag.starts_with(begin));
    let mut flags: Vec<&str> = flags.split_whitespace().filter(chosen).collect();
    flags.sort_unstable();
    let words = maker.into_iter().chain(part).chain(flags);
    let mut kind = String::new();
    for word in words.filter(|word| word.is_ascii()) {
        if kind.len() + word.len() < LONGEST {
            kind += if kind.is_empty() { "" } else { " " };
            kind += word;
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_maker_and_what_libraries_choose_by() {
        let two = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: EPYC\nflags\t\t: fpu avx2 sse4_2 avx nx\n\n\
                   processor\t: 1\nvendor_id\t: Other\n";
        assert_eq!(kind_of(two), "AuthenticAMD avx avx2 sse4_2");
        let arm = "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        assert_eq!(kind_of(arm), "0x41 0xd40 asimd sve");
        assert_eq!(kind_of(""), "");
        let long = format!("flags: {}", "avx512_and_so_on ".repeat(99));
        assert!(kind_of(&long).len() < LONGEST);
    }

    #[test]
    fn this_host_has_memory() {
        assert!(memory() > 1 << 20);
    }
}
