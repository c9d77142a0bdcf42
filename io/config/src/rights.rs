//! The calls that clients may make.

use serde::{Deserialize, Serialize};
use wire::{GroupId, MethodId};

use crate::error::Problem;

/// Bytes of a rule's name: refusals have room for it.
const MAX_RULE_NAME: usize = 64;

/// The rules. A call is governed by the rules that name its group and its method. If there are any,
/// one of them has to name the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rights {
    /// The treatment of calls that no rule governs.
    #[serde(default)]
    pub others: Others,
    /// The rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<Rule>,
}

/// The treatment of calls that no rule governs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Others {
    /// Every client with a certificate may make them.
    #[default]
    Allow,
    /// Nobody may.
    Refuse,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name, which refusals tell.
    pub name: String,
    /// The groups that it governs.
    pub groups: Vec<String>,
    /// The methods; all, if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// The clients that may make them: the names of clients' certificates, without `client-`; or `admin-NAME`.
    pub clients: Vec<String>,
}

impl Rights {
    /// Whether every call is permitted.
    pub fn are_all(&self) -> bool {
        self.rule.is_empty() && self.others == Others::Allow
    }

    /// Why this client may not make this call, if it may not. `client` is the first label of its
    /// certificate's name; `None`: it has none.
    pub fn refuse(&self, client: Option<&str>, group: GroupId, method: MethodId) -> Option<String> {
        let mut governing = self.rule.iter().filter(|rule| rule.governs(group, method)).peekable();
        let who = client.map_or("a client without a certificate".into(), |it| format!("\"{it}\""));
        match governing.peek() {
            None if self.others == Others::Allow => None,
            None => Some("no rule in [rights] permits this call, and others = \"refuse\"".into()),
            Some(first) => {
                let name = &first.name;
                let permits = governing.any(|rule| client.is_some_and(|it| rule.names(it)));
                (!permits).then(|| format!("{who} is not among the clients of rule \"{name}\""))
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), Problem> {
        for (index, rule) in self.rule.iter().enumerate() {
            let lacks = [("name", rule.name.is_empty()), ("groups", rule.groups.is_empty())];
            if let Some((key, _)) = lacks.into_iter().find(|(_, lacks)| *lacks) {
                return Err(Problem::RightLacks { index, key });
            }
            if rule.name.len() > MAX_RULE_NAME {
                return Err(Problem::RightNameLong { index, most: MAX_RULE_NAME });
            }
            if self.rule[..index].iter().any(|other| other.name == rule.name) {
                return Err(Problem::RightTwice { index, name: rule.name.clone() });
            }
        }
        Ok(())
    }
}

impl Rule {
    fn governs(&self, group: GroupId, method: MethodId) -> bool {
        let methods = &self.methods;
        self.groups.iter().any(|name| name == "*" || GroupId::of(name) == group)
            && (methods.is_empty() || methods.iter().any(|name| MethodId::of(name) == method))
    }

    fn names(&self, label: &str) -> bool {
        // A client may call itself "admin-ops", which is no administrator's certificate.
        let is_label =
            |name: &str| ["admin-", "node-", "client-"].iter().any(|it| name.starts_with(it));
        let client = label.strip_prefix("client-").filter(|client| !is_label(client));
        self.clients
            .iter()
            .any(|name| name == "*" || Some(name.as_str()) == client || name == label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, groups: &[&str], methods: &[&str], clients: &[&str]) -> Rule {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Rule {
            name: name.into(),
            groups: owned(groups),
            methods: owned(methods),
            clients: owned(clients),
        }
    }

    fn refused(rights: &Rights, client: Option<&str>, group: &str, method: &str) -> Option<String> {
        rights.refuse(client, GroupId::of(group), MethodId::of(method))
    }

    #[test]
    fn a_governed_call_is_for_those_that_a_rule_names() {
        let rules = vec![
            rule("orders", &["orders"], &[], &["hmi"]),
            rule("cancel", &["orders"], &["cancel"], &["desk", "admin-ops"]),
        ];
        let rights = Rights { rule: rules, ..Rights::default() };
        let may = |client, group, method| refused(&rights, client, group, method).is_none();
        assert!(may(Some("client-hmi"), "orders", "list"));
        assert!(may(Some("client-desk"), "orders", "cancel"));
        assert!(may(Some("admin-ops"), "orders", "cancel"));
        assert!(may(Some("client-desk"), "counter", "add"), "nobody governs it");
        assert!(may(None, "counter", "add"));
        let why = refused(&rights, Some("client-desk"), "orders", "list").unwrap();
        assert_eq!(why, "\"client-desk\" is not among the clients of rule \"orders\"");
        let why = refused(&rights, None, "orders", "list").unwrap();
        assert_eq!(
            why,
            "a client without a certificate is not among the clients of rule \"orders\""
        );
        assert!(!may(Some("client-ops"), "orders", "cancel"), "an administrator is no client");
        assert!(!may(Some("client-admin-ops"), "orders", "cancel"), "nor one that is called so");
    }

    #[test]
    fn others_may_be_refused_and_stars_name_all() {
        let all = rule("all", &["*"], &["get"], &["*"]);
        let rights = Rights { others: Others::Refuse, rule: vec![all] };
        assert_eq!(refused(&rights, Some("client-a"), "counter", "get"), None);
        assert!(refused(&rights, None, "counter", "get").is_some(), "it has no name at all");
        let why = refused(&rights, Some("client-a"), "counter", "add").unwrap();
        assert!(why.contains("no rule in [rights] permits"), "{why}");
        let long =
            Rights { rule: vec![rule(&"x".repeat(65), &["*"], &[], &[])], ..Rights::default() };
        assert!(long.check().unwrap_err().to_string().contains("64 bytes"));
        assert!(Rights::default().are_all() && !rights.are_all());
    }
}
