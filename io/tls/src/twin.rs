//! The other form of a certificate, which is as good.
//!
//! An ECDSA signature (r, s) also holds as (r, n - s), n being the order of the curve (FIPS 186-5,
//! 6.4). So the owner of a certificate can write it anew without its authority, with another
//! fingerprint. A list of fingerprints has to know both.

/// INTEGER, BIT STRING and SEQUENCE (X.690, 8).
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// The orders of P-256, P-384 and P-521 (SP 800-186, 3.2.1): the certificate does not say which
/// curve its authority's key is on.
const ORDERS: [&[u8]; 3] = [
    &[
        0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63,
        0x25, 0x51,
    ],
    &[
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc7, 0x63, 0x4d, 0x81, 0xf4, 0x37,
        0x2d, 0xdf, 0x58, 0x1a, 0x0d, 0xb2, 0x48, 0xb0, 0xa7, 0x7a, 0xec, 0xec, 0x19, 0x6a, 0xcc,
        0xc5, 0x29, 0x73,
    ],
    &[
        0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xfa, 0x51, 0x86, 0x87, 0x83, 0xbf, 0x2f, 0x96, 0x6b, 0x7f, 0xcc, 0x01,
        0x48, 0xf7, 0x09, 0xa5, 0xd0, 0x3b, 0xb5, 0xc9, 0xb8, 0x89, 0x9c, 0x47, 0xae, 0xbb, 0x6f,
        0xb7, 0x1e, 0x91, 0x38, 0x64, 0x09,
    ],
];

/// The certificates that differ in the form of the signature alone, for each curve that its
/// authority's key may be on. None if the signature is not one of ECDSA.
pub(crate) fn twins(certificate: &[u8]) -> Vec<Vec<u8>> {
    let Some((signed, r, s)) = parts(certificate) else { return Vec::new() };
    let twin = |order: &&[u8]| {
        let signature = [wrap(INTEGER, r), wrap(INTEGER, &difference(order, s)?)].concat();
        let bits = [&[0][..], &wrap(SEQUENCE, &signature)].concat();
        Some(wrap(SEQUENCE, &[signed, &wrap(BIT_STRING, &bits)].concat()))
    };
    ORDERS.iter().filter_map(twin).collect()
}

/// The signed part with the name of the algorithm, and the two numbers of the signature.
fn parts(certificate: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (whole, []) = take(SEQUENCE, certificate)? else { return None };
    let (_, rest) = take(SEQUENCE, whole)?;
    let (_, rest) = take(SEQUENCE, rest)?;
    let signed = &whole[..whole.len() - rest.len()];
    let (bits, []) = take(BIT_STRING, rest)? else { return None };
    let (signature, []) = take(SEQUENCE, bits.strip_prefix(&[0])?)? else { return None };
    let (r, rest) = take(INTEGER, signature)?;
    let (s, []) = take(INTEGER, rest)? else { return None };
    Some((signed, r, s))
}

/// The contents of the first element, if it has this tag, and all behind it.
fn take(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[first, length], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
        0x82 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    let split = rest.split_at_checked(length)?;
    (first == tag).then_some(split)
}

/// An element with this tag and these contents.
fn wrap(tag: u8, contents: &[u8]) -> Vec<u8> {
    let [.., high, low] = contents.len().to_be_bytes();
    let head: &[u8] = match contents.len() {
        0..=0x7f => &[tag, low],
        0x80..=0xff => &[tag, 0x81, low],
        _ => &[tag, 0x82, high, low],
    };
    [head, contents].concat()
}

/// `order - s`, in as few bytes as a positive INTEGER takes. `None`: it would be none.
fn difference(order: &[u8], s: &[u8]) -> Option<Vec<u8>> {
    let first = s.iter().position(|byte| *byte != 0)?;
    let s = &s[first..];
    let missing = order.len().checked_sub(s.len())?;
    let mut less = 0;
    let mut bytes = vec![0; order.len()];
    for place in (0..order.len()).rev() {
        let taken = place.checked_sub(missing).map_or(0, |place| i16::from(s[place]));
        let left = i16::from(order[place]) - taken - less;
        less = i16::from(left < 0);
        bytes[place] = left.rem_euclid(256) as u8;
    }
    let first = bytes.iter().position(|byte| *byte != 0).filter(|_| less == 0)?;
    let sign: &[u8] = if bytes[first] < 0x80 { &[] } else { &[0] };
    Some([sign, &bytes[first..]].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn certificate(tail: &[u8]) -> Vec<u8> {
        let signed = [wrap(SEQUENCE, &[7; 300]), wrap(SEQUENCE, &[5; 4])].concat();
        wrap(SEQUENCE, &[&signed[..], tail].concat())
    }

    fn signed(r: &[u8], s: &[u8]) -> Vec<u8> {
        let signature = wrap(SEQUENCE, &[wrap(INTEGER, r), wrap(INTEGER, s)].concat());
        certificate(&wrap(BIT_STRING, &[&[0][..], &signature].concat()))
    }

    #[test]
    fn a_twin_has_the_difference_to_the_order() {
        let [mine, ..] = &twins(&signed(&[9], &[2]))[..] else { panic!("none") };
        let mut less_two = [&[0], ORDERS[0]].concat();
        *less_two.last_mut().unwrap() -= 2;
        assert_eq!(*mine, signed(&[9], &less_two));
        assert_eq!(twins(mine)[0], signed(&[9], &[2]), "and the other way round");
    }

    #[test]
    fn what_is_no_such_signature_has_no_twin() {
        assert!(twins(&certificate(&wrap(BIT_STRING, &[0; 64]))).is_empty(), "Ed25519");
        assert!(twins(&signed(&[9], &[])).is_empty() && twins(&signed(&[9], &[0])).is_empty());
        assert!(twins(&signed(&[9], &[0x7f; 67])).is_empty(), "above all orders");
        assert!(twins(b"").is_empty());
    }

    proptest! {
        #[test]
        fn a_twins_twin_is_oneself(mut s in proptest::collection::vec(any::<u8>(), 1..=32)) {
            s[0] = s[0] % 0x7f + 1;
            let own = signed(&[9], &s);
            prop_assert_eq!(twins(&own).len(), ORDERS.len());
            for (place, twin) in twins(&own).iter().enumerate() {
                prop_assert!(twins(twin).contains(&own), "curve {}", place);
            }
        }

        #[test]
        fn any_bytes_are_looked_at(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(twins(&bytes).len() <= ORDERS.len());
        }
    }
}
