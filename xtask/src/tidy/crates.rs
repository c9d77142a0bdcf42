//! Which crate may depend on which: `wire <- ring <- engine <- node <- steadfast`,
//! `wire <- seal <- node`, `wire <- store <- node`, `wire <- manager <- engine`, `wire <- registry <- node`, `wire <- monitor <- node`,
//! `wire <- client <- steadfast`, `wire <- history`, `sim -> engine, client, history, seal, store`, `lab -> all`,
//! `nobody -> sim, lab`.

use toml::{Table, Value};

use super::{Finding, Tree};

/// Each folder with a crate, and those that it may see.
const BELOW: &[(&str, &[&str])] = &[
    ("crates/wire", &[]),
    ("crates/ring", &["steadfast-wire"]),
    ("crates/engine", &["steadfast-manager", "steadfast-ring", "steadfast-wire"]),
    // Its own tests have certificates made.
    ("crates/tls", &["steadfast-tls", "steadfast-wire"]),
    ("crates/client", &["steadfast-tls", "steadfast-wire"]),
    ("crates/seal", &["steadfast-wire"]),
    ("crates/store", &["steadfast-wire"]),
    ("crates/manager", &["steadfast-wire"]),
    ("crates/monitor", &["steadfast-wire"]),
    ("crates/registry", &["steadfast-wire"]),
    (
        "crates/node",
        &[
            "steadfast-engine",
            "steadfast-manager",
            "steadfast-monitor",
            "steadfast-registry",
            "steadfast-ring",
            "steadfast-seal",
            "steadfast-store",
            "steadfast-tls",
            "steadfast-wire",
        ],
    ),
    ("crates/history", &["steadfast-wire"]),
    ("crates/steadfast-macros", &[]),
    (
        "crates/steadfast",
        &[
            "steadfast-client",
            "steadfast-engine",
            "steadfast-macros",
            "steadfast-node",
            "steadfast-registry",
            "steadfast-ring",
            "steadfast-seal",
            "steadfast-tls",
            "steadfast-wire",
        ],
    ),
    (
        "crates/sim",
        &[
            "steadfast-client",
            "steadfast-engine",
            "steadfast-history",
            "steadfast-manager",
            "steadfast-ring",
            "steadfast-seal",
            "steadfast-store",
            "steadfast-wire",
        ],
    ),
    (
        "crates/fuzz",
        &[
            "steadfast-client",
            "steadfast-engine",
            "steadfast-node",
            "steadfast-registry",
            "steadfast-ring",
            "steadfast-seal",
            "steadfast-store",
            "steadfast-wire",
        ],
    ),
    (
        "crates/lab",
        &[
            "steadfast",
            "steadfast-client",
            "steadfast-engine",
            "steadfast-history",
            "steadfast-manager",
            "steadfast-node",
            "steadfast-ring",
            "steadfast-seal",
            "steadfast-sim",
            "steadfast-store",
            "steadfast-tls",
            "steadfast-wire",
        ],
    ),
    ("fuzz", &["steadfast-fuzz"]),
    ("xtask", &[]),
];

const SECTIONS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

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
        for package in packages(&manifest, &root) {
            let ours = package == "steadfast" || package.starts_with("steadfast-");
            if ours && !below.contains(&&*package) {
                let message = format!("{folder} must not see {package}");
                findings.push(Finding::error(path, 0, message));
            }
        }
    }
    findings
}

/// The packages that a manifest depends on, by their own names.
fn packages(manifest: &Table, root: &Table) -> Vec<String> {
    let workspace = root.get("workspace").and_then(|table| table.get("dependencies"));
    let targets = manifest.get("target").and_then(Value::as_table);
    let tables = std::iter::once(manifest)
        .chain(targets.into_iter().flat_map(Table::values).filter_map(Value::as_table));
    let mut packages = Vec::new();
    for table in tables {
        for section in SECTIONS.iter().filter_map(|section| table.get(*section)?.as_table()) {
            for (key, value) in section {
                let renamed = |value: &Value| Some(value.get("package")?.as_str()?.to_owned());
                let inherited = workspace.and_then(|table| table.get(key));
                let package = renamed(value).or_else(|| renamed(inherited?));
                packages.push(package.unwrap_or_else(|| key.clone()));
            }
        }
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::found;

    const ROOT: (&str, &str) = (
        "Cargo.toml",
        "[workspace.dependencies]\n\
         wire = { package = \"steadfast-wire\", path = \"crates/wire\" }\n\
         sim = { package = \"steadfast-sim\", path = \"crates/sim\" }\n",
    );

    #[test]
    fn downwards_and_outwards_is_allowed() {
        let ring =
            ("crates/ring/Cargo.toml", "[dependencies]\nwire.workspace = true\nserde = \"1\"\n");
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
            let found = found(directions, &[ROOT, ("crates/wire/Cargo.toml", text)]);
            assert_eq!(found, ["crates/wire/Cargo.toml:0: crates/wire must not see steadfast-sim"]);
        }
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        let found = found(directions, &[ROOT, ("crates/util/Cargo.toml", "")]);
        assert!(found[0].contains("which crates this one may see"), "{found:?}");
    }
}
