//! Mistakes planted on purpose, to prove that checkers and tests see them.

/// Declares a crate's planted mistakes: lists by where they show, each mistake with what it does.
///
/// The crate gets an enum `Bug`, a constant of `Bug` for each list, `Bug::all` in the order of the
/// lists, and `Planted`, which a machine asks whether it is to err. Without the crate's feature
/// `planted-bugs` there are no lists, `Planted` has no size, and its answer is always no.
#[macro_export]
macro_rules! planted_bugs {
    ($( $(#[$of:meta])* $list:ident { $( $(#[$what:meta])* $bug:ident, )+ } )+) => {
        /// A realistic mistake. A machine makes it where it is planted, and nowhere else.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Bug { $($( $(#[$what])* $bug, )+)+ }

        #[cfg(feature = "planted-bugs")]
        impl Bug {
            $( $(#[$of])* pub const $list: &[Bug] = &[$( Bug::$bug ),+]; )+

            /// Those of all lists.
            pub fn all() -> impl Iterator<Item = Bug> {
                [$( Bug::$list ),+].into_iter().flatten().copied()
            }
        }

        /// The mistake, if any, that is planted in a machine.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Planted {
            #[cfg(feature = "planted-bugs")]
            pub(crate) bug: Option<Bug>,
        }

        #[cfg(feature = "planted-bugs")]
        impl Planted {
            /// The mistake that is planted.
            pub fn bug(self) -> Option<Bug> {
                self.bug
            }
        }

        #[cfg(feature = "planted-bugs")]
        impl From<Option<Bug>> for Planted {
            fn from(bug: Option<Bug>) -> Planted {
                Planted { bug }
            }
        }

        impl Planted {
            /// This mistake is planted.
            #[cfg(feature = "planted-bugs")]
            pub(crate) fn is(self, bug: Bug) -> bool {
                self.bug == Some(bug)
            }

            /// Nothing is planted.
            #[cfg(not(feature = "planted-bugs"))]
            pub(crate) fn is(self, _: Bug) -> bool {
                false
            }
        }
    };
}
