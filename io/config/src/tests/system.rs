//! The place of a cell in its system.

use crate::Config;

const KEYS: &str = "[security]\nauthority = \"authority.pem\"\ncertificate = \"node-1.pem\"\n\
                    key = \"node-1.key\"\n";

fn file(cluster: &str, keys: &str, system: &str) -> String {
    format!(
        "node = 1\ncluster = \"{cluster}\"\n[[nodes]]\nid = 1\nring = \"127.0.0.1:7201\"\n\
         {keys}[listen]\nclient = \"127.0.0.1:7100\"\n[system]\n{system}\n"
    )
}

#[test]
fn a_cell_says_where_it_takes_links_and_where_its_parents_do() {
    let links = "listen = \"127.0.0.1:7102\"\nparent = [\"127.0.1.1:7102\", \"127.0.1.2:7102\"]";
    let config = Config::from_toml(&file("cell.line-a.porto", KEYS, links)).unwrap();
    let system = config.system.clone().unwrap();
    assert_eq!(system.listen, Some("127.0.0.1:7102".parse().unwrap()));
    assert_eq!(system.parent.len(), 2);
    assert_eq!(Config::from_toml(&config.to_toml()).unwrap(), config, "printed and read alike");
    let root = Config::from_toml(&file("cell.porto", KEYS, "listen = \"127.0.0.1:7102\""));
    assert!(root.unwrap().system.unwrap().parent.is_empty());
    assert!(Config::from_toml(&file("cell.porto", KEYS, "")).unwrap().system.is_some());
    let open = format!("insecure = true\n{}", file("cell.porto", "", ""));
    assert!(Config::from_toml(&open).is_ok());
    let mut elsewhere = config.clone();
    elsewhere.system.as_mut().unwrap().parent.pop();
    assert_eq!(config.needs_restart(&elsewhere), ["system"]);
}

#[test]
fn a_place_that_cannot_be_is_refused_with_line_and_remedy() {
    let parent = "parent = [\"127.0.1.1:7102\"]";
    let twice = "parent = [\"127.0.1.1:7102\", \"127.0.1.1:7102\"]";
    let (below, root) = ("cell.line-a.porto", "cell.porto");
    for (cluster, keys, system, expected) in [
        ("porto", KEYS, "", "line 12: [system] is for cells"),
        ("cell.", KEYS, "", "line 12: [system] is for cells"),
        (below, KEYS, "", "line 12: [system] lacks parent"),
        (root, KEYS, parent, "line 13: [system] has a parent"),
        (below, KEYS, twice, "line 13: [system] cannot have the parent 127.0.1.1:7102"),
        (below, KEYS, "parent = [\"0.0.0.0:7102\"]", "cannot have the parent"),
        (below, KEYS, "parent = [\"127.0.1.1:0\"]", "cannot have the parent"),
        (root, KEYS, "listen = \"127.0.0.1:7201\"", "line 13: [system] listen"),
        (root, KEYS, "listen = \"127.0.0.1:7100\"", "line 13: [system] listen"),
        (root, KEYS, "listen = \"127.0.0.1:0\"", "line 13: [system] listen"),
        (root, KEYS, "port = 7102", "line 13"),
        (root, "", "", "line 8: [system] needs a certificate"),
    ] {
        let text = file(cluster, keys, system);
        let refusal = Config::from_toml(&text).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{text}{refusal}");
    }
}
