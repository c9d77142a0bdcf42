//! Names, read and refused.

use proptest::prelude::*;

use super::*;

#[test]
fn a_name_is_read_as_it_was_written() {
    for identity in [
        Identity::node("plant", NodeId(7)).unwrap(),
        Identity::client("plant-2", "hmi").unwrap(),
        Identity::admin("p", "on-call").unwrap(),
        Identity::node("cell.porto", NodeId(7)).unwrap(),
        Identity::client("cell.line-a.porto", "hmi").unwrap(),
    ] {
        assert_eq!(read(&identity.to_string()), Some(identity));
    }
}

#[test]
fn what_is_no_name_of_ours_gives_no_role() {
    for name in [
        "node.plant.steadfast",
        "node-+7.plant.steadfast",
        "node-007.plant.steadfast",
        "node-7.plant.steadfast.org",
        "node-7.plant.example",
        "root-x.plant.steadfast",
        "admin-.plant.steadfast",
        "x.admin-ops.plant.steadfast",
        "*.plant.steadfast",
        "admin-ops.Plant.steadfast",
        "admin-ops.a.plant.steadfast",
        "node.cell.porto.steadfast",
        "node-1.cell.cell.porto.steadfast",
        "node-1.cell.a.cell.porto.steadfast",
        "node-1.cell..porto.steadfast",
        "node-1.a.cell.porto.steadfast",
        "node-1.cell.portosteadfast",
    ] {
        assert_eq!(read(name), None, "{name}");
    }
}

#[test]
fn clusters_that_cannot_stand_in_a_certificate_are_refused() {
    for cluster in ["", "Plant", "plant.two", "-plant", "plant-", "a b", "ä"] {
        assert_eq!(check_cluster(cluster), Err(NameError::Cluster(cluster.into())));
    }
    assert!(check_cluster(&"x".repeat(64)).is_err() && check_cluster("steadfast").is_ok());
    assert!(Identity::client("plant", &"x".repeat(51)).is_err());
}

#[test]
fn a_cell_has_a_path_and_a_system_and_other_clusters_have_none() {
    let cell = Identity::node("cell.line-a.porto", NodeId(7)).unwrap();
    assert_eq!((cell.path(), cell.system()), (Some("line-a.porto"), Some("porto")));
    let names = ["node-7.cell.line-a.porto.steadfast", "node.cell.line-a.porto.steadfast"];
    assert_eq!(cell.names(), names);
    let root = Identity::client("cell.porto", "hmi").unwrap();
    let elsewhere = Identity::client("cell.line-a.lisboa", "hmi").unwrap();
    let plain = Identity::client("porto", "hmi").unwrap();
    assert!(cell.shares_system(&root) && root.shares_system(&cell));
    assert!(!cell.shares_system(&elsewhere) && !root.shares_system(&plain));
    assert!(!plain.shares_system(&plain), "a cluster alone is no system");
    assert_eq!((plain.path(), plain.system()), (None, None));
    assert_eq!((parent_of("a.b.c"), parent_of("c"), root_of("a.b.c")), (Some("b.c"), None, "c"));
}

#[test]
fn whole_names_of_a_system_and_short_ones_of_a_cluster_are_known() {
    let named = |name, cluster| Identity::named(name, cluster).map(|it| it.to_string());
    let far = "node-1.cell.b.porto.steadfast";
    assert_eq!(named(far, "cell.a.porto").as_deref(), Some(far));
    let near = "client-hmi.cell.a.porto.steadfast";
    assert_eq!(named("client-hmi", "cell.a.porto").as_deref(), Some(near));
    assert_eq!(named(far, "cell.a.lisboa"), None, "another system");
    assert_eq!(named(far, "porto"), None, "a cluster alone");
    assert_eq!(named("client-hmi.cell", "porto"), None, "half of a name is none");
}

fn paths() -> impl Strategy<Value = String> {
    proptest::collection::vec("[a-z0-9]([a-z0-9-]{0,6}[a-z0-9])?", 1..=path::MAX_DEPTH)
        .prop_map(|labels| labels.join("."))
        .prop_filter("a path", |path| check_path(path).is_ok())
}

proptest! {
    #[test]
    fn every_identity_of_a_cell_is_read_as_it_was_written(
        path in paths(), node: u32, name in "[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?",
    ) {
        let cluster = cell(&path);
        for identity in [
            Identity::node(&cluster, NodeId(node)).unwrap(),
            Identity::client(&cluster, &name).unwrap(),
            Identity::admin(&cluster, &name).unwrap(),
        ] {
            prop_assert_eq!(identity.path(), Some(path.as_str()));
            prop_assert!(identity.names().iter().all(|name| name.len() <= 253), "RFC 1035");
            prop_assert_eq!(read(&identity.to_string()), Some(identity));
        }
    }

    /// The reason for the label `cell`: a cell's authority may make all names below its own.
    #[test]
    fn no_cell_covers_the_names_of_another(one in paths(), below in "[a-z]{1,4}", node: u32) {
        let covers = |path: &str, name: &str| name.ends_with(&format!(".cell.{path}.steadfast"));
        let under = format!("{below}.{one}");
        prop_assume!(check_path(&under).is_ok());
        for (owner, other) in [(&one, &under), (&under, &one)] {
            let identity = Identity::node(&cell(owner), NodeId(node)).unwrap();
            prop_assert!(identity.names().iter().all(|name| covers(owner, name)));
            prop_assert!(!identity.names().iter().any(|name| covers(other, name)));
        }
    }

    #[test]
    fn a_name_that_is_read_is_written_alike(
        name in "(node|client|admin|x)(-[a-z0-9+]{0,3})?(\\.(cell|a|B|-|)){0,4}\\.(steadfast|org)",
    ) {
        if let Some(identity) = read(&name) {
            prop_assert!(check_cluster(&identity.cluster).is_ok());
            prop_assert_eq!(identity.to_string(), name);
        }
    }
}
