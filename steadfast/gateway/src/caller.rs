//! The other side of a connection, and what it may call.

use std::sync::Arc;

use config::Rights;
use wire::{GroupId, MethodId};

use crate::status::Failure;
use tonic::Code;

/// One caller, for as long as its connection lasts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The first label of its certificate's name. `None`: it needs no certificate here.
    name: Option<Arc<str>>,
    rights: Option<Arc<Rights>>,
}

impl Caller {
    /// A caller with this certificate, and the rights that bind it.
    pub(crate) fn named(name: &str, rights: &Arc<Rights>) -> Caller {
        Caller { name: Some(name.into()), rights: Some(rights.clone()) }
    }

    /// Refuses a call that the caller has no right to make.
    pub(crate) fn check(&self, group: &str, method: MethodId) -> Result<(), Failure> {
        let Some(rights) = self.rights.as_ref().filter(|rights| !rights.are_all()) else {
            return Ok(());
        };
        match rights.refuse(self.name.as_deref(), GroupId::of(group), method) {
            Some(reason) => Err(Failure::new(Code::PermissionDenied, reason)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_those_of_the_nodes() {
        let rule = config::Rule {
            name: "orders".into(),
            groups: vec!["orders".into()],
            methods: Vec::new(),
            clients: vec!["desk".into()],
        };
        let rights = Arc::new(Rights { rule: vec![rule], ..Rights::default() });
        let may = |name: &str| Caller::named(name, &rights).check("orders", MethodId::of("list"));
        assert_eq!(may("client-desk"), Ok(()));
        let refused = may("client-hmi").expect_err("the rule names another");
        assert_eq!(refused.code, Code::PermissionDenied);
        assert!(refused.message.contains("rule \"orders\""), "{}", refused.message);
        assert_eq!(Caller::default().check("orders", MethodId::of("list")), Ok(()));
    }
}
