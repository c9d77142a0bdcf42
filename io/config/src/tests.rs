//! Files, and what is said of impossible ones.

mod system;

use crate::{Config, DEFAULT_CONFIG, Folders, SHORT_CONFIG};

const MINIMAL: &str = "node = 1\n[[nodes]]\nid = 1\nring = \"127.0.0.1:7201\"\n";

fn refusal(text: &str) -> String {
    Config::from_toml(text).expect_err("an impossible configuration was taken").to_string()
}

#[test]
fn the_manual_is_the_defaults() {
    assert_eq!(Config::from_toml(DEFAULT_CONFIG).unwrap(), Config::default());
    assert_eq!(Config::from_toml(SHORT_CONFIG).unwrap(), Config::default());
}

/// With the optional knobs: they must be known keys with possible values.
fn uncommented(text: &str) -> String {
    let lines = text.lines().map(|line| match line.strip_prefix('#') {
        Some(knob) if !knob.starts_with(' ') => format!("{knob}\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn the_page_of_what_people_change_is_possible_as_a_whole() {
    let config = Config::from_toml(&uncommented(SHORT_CONFIG)).unwrap();
    assert!(config.security.missing().is_empty() && config.storage.is_some());
    assert!(SHORT_CONFIG.lines().count() <= 70, "it is a page");
}

#[test]
fn the_manual_names_every_knob() {
    // One knob goes with the names of cells alone.
    let text = uncommented(DEFAULT_CONFIG).replace("\"steadfast\"", "\"cell.line-a.porto\"");
    let config = Config::from_toml(&text).unwrap();
    assert!(config.data_dir.is_some() && config.admin.is_some() && config.advertise.is_some());
    assert!(config.security.missing().is_empty() && config.admin_tls.is_some());
    assert_eq!((config.replicas.len(), config.programs.len()), (1, 1));
    let printed = config.to_toml();
    for key in printed.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key) {
        assert!(text.contains(&format!("{key} = ")), "the manual lacks {key}");
    }
    assert_eq!(Config::from_toml(&printed).unwrap(), config, "what is printed is read alike");
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    let text = format!("{MINIMAL}[ring]\nheartbeat = 5\n");
    let refusal = refusal(&text);
    assert!(refusal.contains("line 6") && refusal.contains("heartbeat_ms"), "{refusal}");
}

#[test]
fn impossible_values_are_refused_with_line_and_remedy() {
    let cases = [
        ("[ring]\nwindow = 0\n", "line 6: [ring] window"),
        ("[ring]\nturn = 9999\n", "line 6: [ring] turn"),
        ("[ring]\ndatagram = 100\n", "line 6: [ring] datagram"),
        ("[ring]\nheartbeat_ms = 90\n", "line 6: [ring] heartbeat must be at most token_timeout"),
        ("[ring]\nack_wait_ms = nan\n", "line 6: ring.ack_wait_ms"),
        ("[realtime]\nruntime_us = 3900\n", "line 6: [realtime] runtime_us = 3900 of period_us"),
        ("[realtime]\nruntime_us = 9\ncpus = [1]\n", "line 7: [realtime] runtime_us and cpus"),
        (
            "[realtime]\nnetwork_mb_s = 5\n",
            "line 6: [realtime] network_mb_s needs the host's daemon",
        ),
        (
            "[realtime]\nruntime_most_us = 9\n",
            "line 6: [realtime] runtime_most_us = 9 is out of range",
        ),
        ("[realtime]\nwake_within_us = 2000\n", "line 6: realtime.wake_within_us = 2000"),
        (
            "[registry]\nrefresh_ms = 3000\n",
            "a lease of 3000 ms that is refreshed every 3000 ms cannot be",
        ),
        ("[registry]\nbind = \"never\"\n", "`notification`"),
        (
            "[manager]\nown_percent = 100001\n",
            "line 6: manager.own_percent is not possible: give it 0 to 100000",
        ),
        ("[manager]\nlevel = 0\n", "line 6: manager.level is not possible: give it 1 to 100"),
        ("[manager]\nslack = 80\n", "line 6: manager.slack"),
        ("[manager]\nsettle_ms = 1499\n", "line 6: manager.settle_ms"),
        ("[manager]\npolicy = \"none\"\n", "`rate-monotonic`"),
        ("[ring]\nack_wait_ms = -1\n", "line 6: ring.ack_wait_ms"),
        ("[[nodes]]\nid = 1\nring = \"127.0.0.1:7202\"\n", "line 6: [[nodes]] lists id 1 twice"),
        ("[[nodes]]\nid = 2\nring = \"127.0.0.1:7201\"\n", "line 7: [[nodes]] lists ring address"),
        ("[[nodes]]\nid = 2\nring = \"10.0.0.1:7201\"\n", "line 7: ring address 10.0.0.1:7201"),
        ("[[nodes]]\nid = 2\nring = \"127.0.0.1:0\"\n", "line 7: a ring port of 0"),
        ("[listen]\nadvertise = \"127.0.0.1:1\"\n", "line 6: listen.advertise without"),
        ("[listen]\nclient = \"0.0.0.0:1\"\n", "line 6: listen.client"),
        (
            "[listen]\nclient = \"127.0.0.1:7201\"\n",
            "line 6: listen.client = \"127.0.0.1:7201\" is",
        ),
        ("[listen]\nclient = \"localhost:7100\"\n", "names are not looked up"),
        ("[listen]\ngrpc = \"127.0.0.1:7443\"\n", "line 6: listen.grpc = \"127.0.0.1:7443\" needs"),
        (
            "[listen]\ngrpc = \"127.0.0.1:7443\"\nclient = \"127.0.0.1:0\"\n",
            "needs listen.client, with a port of its own",
        ),
        (
            "[listen]\ngrpc = \"127.0.0.1:7201\"\nclient = \"127.0.0.1:7100\"\n",
            "line 6: listen.grpc = \"127.0.0.1:7201\" needs a port of its own",
        ),
        (
            "[listen]\ngrpc = \"192.0.2.1:7443\"\nclient = \"127.0.0.1:7100\"\n",
            "line 6: listen.grpc = \"192.0.2.1:7443\" can be reached from other hosts",
        ),
        ("[[replica]]\ngroup = \"\"\nservice = \"echo\"\n", "line 6: the group's name"),
        ("[[replica]]\ngroup = \"a\"\nservice = \"echo\"\nack = \"two\"\n", "line 8"),
        ("[[program]]\ngroup = \"a\"\ncommand = [\"a\"]\n", "line 5: [[program]] needs `admin"),
        ("[[replica]]\ngroup = \"a\"\nservice = \"echo\"\nstyle = \"lively\"\n", "`semi-active`"),
        (
            "[[replica]]\ngroup = \"a\"\nservice = \"echo\"\nstyle = \"stateless\"\nack = \"all\"\n",
            "line 9: a stateless group orders no calls",
        ),
        (
            "[[replica]]\ngroup = \"a\"\nservice = \"echo\"\nexecution = \"lanes\"\n",
            "line 8: execution = \"lanes\" is for stateless groups",
        ),
    ];
    for (addition, expected) in cases {
        let refusal = refusal(&format!("{MINIMAL}{addition}"));
        assert!(refusal.contains(expected), "{addition:?} gives {refusal:?}");
    }
    let refusal = refusal(&MINIMAL.replace("node = 1", "node = 9"));
    assert!(refusal.starts_with("line 1: node = 9"), "{refusal}");
}

#[test]
fn a_node_has_an_address_on_each_link() {
    let two = |second: &str| {
        format!(
            "node = 1\n[[nodes]]\nid = 1\nring = [\"127.0.0.1:7201\", \"127.0.0.2:7201\"]\n\
             [[nodes]]\nid = 2\nring = {second}\n"
        )
    };
    let config = Config::from_toml(&two("[\"127.0.0.1:7202\", \"127.0.0.2:7202\"]")).unwrap();
    assert!(config.nodes.iter().all(|node| node.ring.len() == 2));
    assert_eq!(config.ring_addresses()[1], "127.0.0.2:7201".parse().unwrap());
    assert_eq!(Config::from_toml(&config.to_toml()).unwrap(), config, "printed and read alike");
    let cases = [
        ("\"127.0.0.1:7202\"", "line 7: a node with 1 ring addresses, this one has 2"),
        ("[]", "line 7: a node with 0 ring addresses"),
        ("[\"127.0.0.1:7202\", \"127.0.0.1:7203\"]", "line 7: ring address 127.0.0.1:7203 is on"),
        ("[\"127.0.0.1:7202\", \"127.0.0.2:7201\"]", "line 7: [[nodes]] lists ring address"),
        ("[\"127.0.0.1:7202\", \"10.0.0.2:7202\"]", "line 7: ring address 10.0.0.2:7202 and"),
        ("[\"127.0.0.1:7202\", \"b\"]", "write ADDRESS:PORT or HOST:PORT"),
    ];
    for (second, expected) in cases {
        let refusal = refusal(&two(second));
        assert!(refusal.contains(expected), "{second} gives {refusal:?}");
    }
}

#[test]
fn listening_beyond_loopback_must_be_asked_for() {
    let open = MINIMAL.replace("127.0.0.1", "192.0.2.1");
    let refusal = refusal(&open);
    assert!(refusal.contains("line 4"), "{refusal}");
    assert!(refusal.contains("reached from other hosts"), "it says why: {refusal}");
    assert!(refusal.contains("steadfast init"), "and the remedy: {refusal}");
    assert!(refusal.contains("insecure = true"), "and the other one: {refusal}");
    assert!(Config::from_toml(&format!("insecure = true\n{open}")).is_ok());
}

const KEYS: &str = "[security]\ncluster_key = \"cluster.key\"\nauthority = \"authority.pem\"\n\
                    certificate = \"node-1.pem\"\nkey = \"node-1.key\"\n";

#[test]
fn with_all_keys_a_node_listens_beyond_loopback() {
    let open = MINIMAL.replace("127.0.0.1", "192.0.2.1");
    let all =
        format!("{open}{KEYS}[listen]\nclient = \"0.0.0.0:7100\"\nadmin = \"0.0.0.0:7101\"\n");
    assert!(Config::from_toml(&all).is_ok());
    for lost in ["cluster_key", "authority", "certificate", "key"] {
        let is_lost = |line: &&str| line.starts_with(&format!("{lost} ="));
        let line = all.lines().find(is_lost).unwrap();
        let refusal = refusal(&all.replace(&format!("{line}\n"), ""));
        assert!(refusal.contains(lost) && refusal.contains("steadfast init"), "{refusal}");
    }
}

#[test]
fn the_admin_port_needs_tls_and_a_port_of_its_own() {
    let with = |keys, port| format!("{MINIMAL}{keys}[listen]\nadmin = \"127.0.0.1:{port}\"\n");
    assert!(refusal(&with("", 7101)).contains("speaks TLS only"));
    assert!(refusal(&with(KEYS, 7201)).contains("give it another"));
    let clients = with(KEYS, 7100) + "client = \"127.0.0.1:7100\"\n";
    assert!(refusal(&clients).contains("give it another"));
    assert!(Config::from_toml(&with(KEYS, 7101)).is_ok());
}

#[test]
fn relative_paths_are_those_of_the_files_folder() {
    let text = format!("data_dir = \"data\"\nadmin = \"/run/node.sock\"\n{MINIMAL}{KEYS}");
    let mut config = Config::from_toml(&text).unwrap();
    let folder = std::path::Path::new("/etc/steadfast");
    let mut apart = config.clone();
    config.resolve(&Folders::one(folder));
    let path = |text: &str| Some(std::path::PathBuf::from(text));
    assert_eq!(config.data_dir, path("/etc/steadfast/data"));
    assert_eq!(config.admin, path("/run/node.sock"), "absolute ones stay");
    assert_eq!(config.security.cluster_key, path("/etc/steadfast/cluster.key"));
    assert_eq!(config.security.key, path("/etc/steadfast/node-1.key"));

    apart.admin = path("node.sock");
    let (state, runtime) = ("/var/lib/steadfast".into(), "/run/steadfast".into());
    apart.resolve(&Folders { config: folder.into(), state, runtime });
    assert_eq!(apart.data_dir, path("/var/lib/steadfast/data"));
    assert_eq!(apart.admin, path("/run/steadfast/node.sock"));
    assert_eq!(apart.security.cluster_key, path("/var/lib/steadfast/cluster.key"), "it rotates");
    assert_eq!(apart.security.key, path("/etc/steadfast/node-1.key"));
}

#[test]
fn fractions_of_a_millisecond_are_kept() {
    let config = Config::from_toml(&format!("{MINIMAL}[ring]\nack_wait_ms = 0.25\n")).unwrap();
    assert_eq!(config.ring.timing.ack_wait, wire::Duration::from_micros(250));
    assert_eq!(Config::from_toml(&config.to_toml()).unwrap(), config);
}
