//! One service, and the versions of its state.

use std::collections::BTreeMap;

use harness::Outcome;
use serde::{Deserialize, Serialize};

/// Accounts in cents.
#[steadfast::service]
pub trait Accounts {
    /// Pays so many cents into an account; returns its balance.
    fn pay(&mut self, account: u32, cents: u64) -> u64;
}

/// A version of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// As it began.
    First,
    /// Accounts have a limit, too.
    Added,
    /// The fields stand in another order.
    Reordered,
    /// The balance has another name.
    Renamed,
    /// Nobody has a credit any more.
    Removed,
    /// Money is a struct of its own.
    Nested,
    /// Each account must have an owner, and there is no default.
    Misfit,
}

impl Version {
    /// Those that read the state of the one before, in order.
    pub const FITTING: [Version; 5] =
        [Version::Added, Version::Reordered, Version::Renamed, Version::Removed, Version::Nested];

    /// Serves a replica of it.
    pub fn serve(self) -> Outcome<()> {
        match self {
            Version::First => steadfast::attach(|| AccountsService::new(first::Bank::default())),
            Version::Added => steadfast::attach(|| AccountsService::new(added::Bank::default())),
            Version::Reordered => {
                steadfast::attach(|| AccountsService::new(reordered::Bank::default()))
            }
            Version::Renamed => {
                steadfast::attach(|| AccountsService::new(renamed::Bank::default()))
            }
            Version::Removed => {
                steadfast::attach(|| AccountsService::new(removed::Bank::default()))
            }
            Version::Nested => steadfast::attach(|| AccountsService::new(nested::Bank::default())),
            Version::Misfit => steadfast::attach(|| AccountsService::new(misfit::Bank::default())),
        }?;
        Ok(())
    }
}

/// A version: an account's fields, how it is begun, and where its cents are.
macro_rules! version {
    ($name:ident, { $($fields:tt)* }, $account:ident => $cents:expr $(, $more:item)*) => {
        mod $name {
            use super::{Accounts, BTreeMap, Deserialize, Serialize};

            #[derive(Default, Serialize, Deserialize)]
            pub struct Bank {
                accounts: BTreeMap<u32, Account>,
            }

            #[derive(Default, Serialize, Deserialize)]
            struct Account {
                $($fields)*
            }

            $($more)*

            impl Accounts for Bank {
                fn pay(&mut self, account: u32, cents: u64) -> u64 {
                    let $account = self.accounts.entry(account).or_default();
                    $cents += cents;
                    $cents
                }
            }
        }
    };
}

version!(first, { balance: u64, credit: Option<u32>, payments: u64, }, it => it.balance);
version!(
    added,
    { balance: u64, credit: Option<u32>, payments: u64, #[serde(default)] limit: u32, },
    it => it.balance
);
version!(
    reordered,
    { limit: u32, payments: u64, credit: Option<u32>, balance: u64, },
    it => it.balance
);
version!(
    renamed,
    { limit: u32, payments: u64, credit: Option<u32>, #[serde(alias = "balance")] cents: u64, },
    it => it.cents
);
version!(removed, { limit: u32, payments: u64, cents: u64, }, it => it.cents);
version!(
    nested,
    { payments: u64, #[serde(flatten)] money: Money, },
    it => it.money.cents,
    #[derive(Default, Serialize, Deserialize)]
    struct Money {
        limit: u32,
        cents: u64,
    }
);
version!(misfit, { payments: u64, limit: u32, cents: u64, owner: String, }, it => it.cents);
