//! How the errors of nested calls are numbered between a node and its programs.

use engine::NestedError;
use wire::limits::MAX_BODY;

/// The number of an error that is no reply.
pub(crate) fn number_of(error: &NestedError) -> u8 {
    match error {
        NestedError::Service(_) | NestedError::Refused(..) => 0,
        NestedError::Deadline => 1,
        NestedError::NoReplica => 2,
        NestedError::NoSuchGroup => 3,
        NestedError::Diverged => 4,
        NestedError::Cycle => 5,
        NestedError::TooDeep => 6,
        NestedError::TooMany => 7,
        NestedError::TooLarge(_) => 8,
        NestedError::Void => 9,
        NestedError::Unable(_) => 10,
    }
}

pub(crate) fn error_of(number: u8) -> NestedError {
    match number {
        1 => NestedError::Deadline,
        2 => NestedError::NoReplica,
        3 => NestedError::NoSuchGroup,
        4 => NestedError::Diverged,
        5 => NestedError::Cycle,
        6 => NestedError::TooDeep,
        7 => NestedError::TooMany,
        8 => NestedError::TooLarge(MAX_BODY + 1),
        10 => NestedError::Unable("the node says that handlers cannot call from where they run"),
        _ => NestedError::Void,
    }
}
