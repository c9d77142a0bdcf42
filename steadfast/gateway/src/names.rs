//! From the path of a gRPC request to a group and a method, and back.
//!
//! The path is `/GROUP.SERVICE/METHOD`, or `/GROUP/METHOD`. A group's name may have characters that
//! no name of protobuf has: each stands in the path as `_x` and its two hexadecimal digits. An
//! underscore before an `x` is written so, too.

use std::fmt::Write;

/// The last part of a path is the method.
///
/// `None`: this is no path of a call.
pub(crate) fn split(path: &str) -> Option<(&str, &str)> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    let fits = !service.is_empty() && !method.is_empty() && !method.contains('/');
    fits.then_some((service, method))
}

/// The group in the name of a gRPC service.
pub(crate) fn group_of(service: &str) -> String {
    let package = service.split_once('.').map_or(service, |(package, _)| package);
    unescaped(package)
}

/// The group that a channel's target names, as in `xds:///counter`.
///
/// `None`: it is the address of a host.
pub(crate) fn group_of_target(authority: &str) -> Option<String> {
    let is_address = authority.is_empty() || authority.contains(['.', ':', '[', '@']);
    (!is_address).then(|| authority.to_owned())
}

/// A group's name as a package of protobuf.
pub(crate) fn package_of(group: &str) -> String {
    let mut package = String::with_capacity(group.len());
    let bytes = group.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        let first = index == 0;
        let plain = byte.is_ascii_alphabetic()
            || !first && byte.is_ascii_digit()
            || *byte == b'_' && bytes.get(index + 1) != Some(&b'x');
        if plain {
            package.push(char::from(*byte));
        } else {
            write!(package, "_x{byte:02x}").expect("a string takes everything");
        }
    }
    package
}

fn unescaped(package: &str) -> String {
    let mut bytes = Vec::with_capacity(package.len());
    let mut rest = package.as_bytes();
    while let [first, others @ ..] = rest {
        let escaped = match rest {
            [b'_', b'x', high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = &rest[4..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_a_service_and_a_method() {
        assert_eq!(split("/counter.Counter/add"), Some(("counter.Counter", "add")));
        assert_eq!(split("/counter/add"), Some(("counter", "add")));
        for path in ["", "/", "counter/add", "/counter", "//add", "/counter/", "/a/b/c"] {
            assert_eq!(split(path), None, "{path}");
        }
    }

    #[test]
    fn every_group_has_a_package_and_is_found_by_it() {
        for (group, package) in [
            ("counter", "counter"),
            ("line-a", "line_x2da"),
            ("a.b", "a_x2eb"),
            ("2nd", "_x32nd"),
            ("a_x2d", "a_x5fx2d"),
            ("a_b", "a_b"),
            ("größe", "gr_xc3_xb6_xc3_x9fe"),
        ] {
            assert_eq!(package_of(group), package);
            assert_eq!(group_of(&format!("{package}.Counter")), group);
            assert_eq!(group_of(package), group);
        }
    }

    #[test]
    fn a_target_is_a_group_unless_it_is_an_address() {
        assert_eq!(group_of_target("line-a").as_deref(), Some("line-a"));
        for address in ["10.0.0.1", "localhost:7443", "[::1]", "gateway.example", "me@x", ""] {
            assert_eq!(group_of_target(address), None, "{address}");
        }
    }

    #[test]
    fn a_name_that_escapes_nothing_stands_for_itself() {
        for name in ["_", "_x", "_xg0", "a_x2"] {
            assert_eq!(group_of(name), name);
        }
    }
}
