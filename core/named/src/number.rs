//! Varints.

use alloc::vec::Vec;

/// Appends a varint.
#[inline]
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a varint off the front. None: there is none, or not in its shortest form.
#[inline]
pub fn take(input: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = input.split_first()?;
    if first < 0x80 {
        *input = rest;
        return Some(u64::from(first));
    }
    take_long(input)
}

fn take_long(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for (i, &byte) in input.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7f);
        if i == 9 && part > 1 {
            return None;
        }
        number |= part << (7 * i);
        if byte < 0x80 {
            if byte == 0 && i > 0 {
                return None;
            }
            *input = &input[i + 1..];
            return Some(number);
        }
    }
    None
}

/// Signed numbers near zero become small ones.
#[inline]
pub fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// The reverse of [`zigzag`].
#[inline]
pub fn from_zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_form() {
        for shift in 0..64 {
            for number in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1] {
                let mut out = Vec::new();
                put(&mut out, number);
                let mut input = &out[..];
                assert_eq!(take(&mut input), Some(number));
                assert!(input.is_empty());
                assert_eq!(from_zigzag(zigzag(number as i64)), number as i64);
            }
        }
        for wrong in [&[0x80, 0x00][..], &[0xff; 10], &[0x80], &[]] {
            assert_eq!(take(&mut &*wrong), None, "{wrong:?}");
        }
    }
}
