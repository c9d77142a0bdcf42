//! Which crate may depend on which. The folder says what a crate may touch, this table which of the
//! others it needs: `core` has no clock, socket or thread; `io` has them; `steadfast` is what users
//! depend on; `cli` is the program; `proof` shows that it holds.

use toml::{Table, Value};

use super::{Finding, Tree};

/// Each folder with a crate, and those of ours that it may see, without `steadfast-`.
const BELOW: &[(&str, &str)] = &[
    ("core/wire", ""),
    ("core/named", ""),
    ("core/qos", "wire"),
    ("core/manager", "qos wire"),
    ("core/registry", "wire"),
    ("core/cells", "wire"),
    ("core/ring", "wire"),
    ("core/seal", "wire"),
    ("core/store", "wire"),
    ("core/channel", "wire"),
    ("core/image", "wire"),
    ("core/job", "channel image wire"),
    ("core/engine", "manager ring wire"),
    ("io/monitor", "wire"),
    ("io/os", "wire"),
    ("io/qosd", "os qos wire"),
    ("io/config", "engine manager monitor os qos registry ring seal wire"),
    ("io/admin", "cells config engine job manager os qos registry ring seal store tls wire"),
    ("io/memlog", "channel"),
    ("io/agent", "admin image job memlog os rank tls wire"),
    ("io/supervisor", "admin config engine os qos qosd wire"),
    ("io/rank", "channel memlog os wire"),
    ("io/tls", "wire"),
    ("io/client", "tls wire"),
    ("io/links", "os tls wire"),
    ("io/celld", "admin cells client config links os tls wire"),
    (
        "io/node",
        "admin cells client config engine job manager monitor os qos qosd registry ring seal store supervisor tls wire",
    ),
    ("steadfast/macros", ""),
    ("steadfast", "admin client config macros named node os rank registry tls wire"),
    ("steadfast/gateway", "steadfast client config monitor registry tls wire"),
    (
        "cli",
        "steadfast gateway admin agent celld cells client image job node os qos qosd registry seal tls wire",
    ),
    ("proof/history", "wire"),
    (
        "proof/sim",
        "cells channel client engine history image job manager ring seal store testkit wire",
    ),
    ("proof/testkit", "wire"),
    ("proof/types", "named steadfast"),
    ("proof/fixture", "steadfast"),
    ("proof/fuzz", "steadfast client engine named node registry ring seal store wire"),
    ("proof/libfuzzer", "fuzz"),
    (
        "proof/harness",
        "steadfast admin agent cells gateway history job node qos qosd rank tls wire",
    ),
    (
        "proof/lab",
        "steadfast agent cells gateway harness history image job manager node qos qosd rank seal store wire",
    ),
    ("proof/papers", "steadfast client harness job manager node rank wire"),
    ("examples/client", "steadfast"),
    ("python", ""),
    ("python/client", "client os"),
    ("python/jobs", "rank"),
    ("xtask", ""),
];

/// Crates that the tests of any crate may use.
const FOR_TESTS: &[&str] = &["fixture", "testkit"];

const SECTIONS: &[&str] = &["dependencies", DEV, "build-dependencies"];
const DEV: &str = "dev-dependencies";

pub fn directions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let parse = |path: &str, text: &str| {
        text.parse::<Table>().map_err(|error| Finding::error(path, 0, error.message()))
    };
    let root = match parse("Cargo.toml", tree.get("Cargo.toml").unwrap_or_default()) {
        Ok(root) => root,
        Err(finding) => return vec![finding],
    };
    for (path, text) in tree.with_suffix("/Cargo.toml") {
        let folder = path.trim_end_matches("/Cargo.toml");
        let Some((_, below)) = BELOW.iter().find(|(name, _)| *name == folder) else {
            findings.push(Finding::error(
                path,
                0,
                "say in xtask/src/tidy/crates.rs which crates this one may see",
            ));
            continue;
        };
        let manifest = match parse(path, text) {
            Ok(manifest) => manifest,
            Err(finding) => {
                findings.push(finding);
                continue;
            }
        };
        for (section, package) in packages(&manifest, &root) {
            let ours = package == "steadfast" || package.starts_with("steadfast-");
            let name = package.strip_prefix("steadfast-").unwrap_or(&package);
            // A crate's tests may have its features on.
            let own = manifest.get("package").and_then(|table| table.get("name"));
            let own = own.is_some_and(|own| own.as_str() == Some(&package));
            let of_tests = section == DEV && (own || FOR_TESTS.contains(&name));
            if ours && !of_tests && !below.split(' ').any(|below| below == name) {
                let message = format!("{folder} must not see {package}");
                findings.push(Finding::error(path, 0, message));
            }
        }
    }
    findings
}

/// The packages that a manifest depends on, by their own names, each with its section.
fn packages(manifest: &Table, root: &Table) -> Vec<(&'static str, String)> {
    let workspace = root.get("workspace").and_then(|table| table.get("dependencies"));
    let targets = manifest.get("target").and_then(Value::as_table);
    let tables = std::iter::once(manifest)
        .chain(targets.into_iter().flat_map(Table::values).filter_map(Value::as_table));
    let mut packages = Vec::new();
    for table in tables {
        for section in SECTIONS {
            for (key, value) in table.get(*section).and_then(Value::as_table).into_iter().flatten()
            {
                let renamed = |value: &Value| Some(value.get("package")?.as_str()?.to_owned());
                let inherited = workspace.and_then(|table| table.get(key));
                let package = renamed(value).or_else(|| renamed(inherited?));
                packages.push((*section, package.unwrap_or_else(|| key.clone())));
            }
        }
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::found;

    /// Folders that the crates of a folder may see, whatever the table says. This finds a crate in
    /// the wrong folder.
    const FOLDERS: &[(&str, &[&str])] = &[
        ("core", &["core"]),
        ("io", &["core", "io"]),
        ("steadfast", &["core", "io", "steadfast"]),
        ("cli", &["core", "io", "steadfast", "cli"]),
        ("proof", &["core", "io", "steadfast", "cli", "proof"]),
        ("examples", &["steadfast"]),
        ("python", &["io"]),
        ("xtask", &[]),
    ];

    /// The folder at the top in which a package lies.
    fn folder_of(package: &str) -> Option<&'static str> {
        let top = |folder: &'static str| folder.split('/').next().unwrap_or(folder);
        let named = |folder: &str| name_of(folder) == package;
        BELOW.iter().find(|(folder, _)| named(folder)).map(|(folder, _)| top(folder))
    }

    /// A package's name without `steadfast-`, by its folder.
    fn name_of(folder: &str) -> &str {
        folder.rsplit('/').next().unwrap_or(folder)
    }

    #[test]
    fn the_table_keeps_to_the_folders() {
        for (folder, below) in BELOW {
            let top = folder.split('/').next().unwrap_or(folder);
            let (_, may) = FOLDERS.iter().find(|(name, _)| *name == top).expect("a folder");
            for name in below.split(' ').filter(|name| !name.is_empty()) {
                let of = folder_of(name).expect("a crate of ours");
                assert!(may.contains(&of), "{folder} must not see {name}: {top} sees {may:?}");
            }
        }
    }

    const ROOT: (&str, &str) = (
        "Cargo.toml",
        "[workspace.dependencies]\n\
         wire = { package = \"steadfast-wire\", path = \"core/wire\" }\n\
         sim = { package = \"steadfast-sim\", path = \"proof/sim\" }\n",
    );

    #[test]
    fn downwards_and_outwards_is_allowed() {
        let ring =
            ("core/ring/Cargo.toml", "[dependencies]\nwire.workspace = true\nserde = \"1\"\n");
        assert_eq!(found(directions, &[ROOT, ring]), [""; 0]);
    }

    #[test]
    fn upwards_is_refused_however_it_is_spelt() {
        for text in [
            "[dependencies]\nsim.workspace = true\n",
            "[dev-dependencies]\nsim.workspace = true\n",
            "[target.'cfg(unix)'.dependencies]\nsim.workspace = true\n",
            "[dependencies]\nother = { package = \"steadfast-sim\", path = \"../sim\" }\n",
        ] {
            let found = found(directions, &[ROOT, ("core/wire/Cargo.toml", text)]);
            assert_eq!(found, ["core/wire/Cargo.toml:0: core/wire must not see steadfast-sim"]);
        }
    }

    #[test]
    fn the_testkit_is_for_tests_alone() {
        let kit = "testkit = { package = \"steadfast-testkit\", path = \"../../proof/testkit\" }\n";
        let manifest = |section: &str| format!("[{section}]\n{kit}");
        let found = |text: &str| found(directions, &[ROOT, ("core/ring/Cargo.toml", text)]).len();
        assert_eq!(found(&manifest("dev-dependencies")), 0);
        assert_eq!(found(&manifest("dependencies")), 1);
    }

    #[test]
    fn a_crates_tests_may_have_its_own_features_on() {
        let manifest = |section: &str| {
            format!(
                "[package]\nname = \"steadfast-ring\"\n[{section}]\nsteadfast-ring.path = \".\""
            )
        };
        let found = |text: &str| found(directions, &[ROOT, ("core/ring/Cargo.toml", text)]).len();
        assert_eq!(found(&manifest("dev-dependencies")), 0);
        assert_eq!(found(&manifest("dependencies")), 1);
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        let found = found(directions, &[ROOT, ("core/util/Cargo.toml", "")]);
        assert!(found[0].contains("which crates this one may see"), "{found:?}");
    }
}
