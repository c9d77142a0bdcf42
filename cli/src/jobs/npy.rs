//! Arrays as .npy files (NumPy's format, version 1.0).

use std::io::{self, Write};

/// The magic number and the version.
const MAGIC: &[u8; 8] = b"\x93NUMPY\x01\x00";

/// The header begins the data at a multiple of this.
const ALIGN: usize = 64;

/// Writes an array of this form ("<f8 (2, 3)"); one of another form as bytes.
pub fn write(out: &mut impl Write, form: &str, bytes: &[u8]) -> io::Result<()> {
    let (kind, shape) = match form.split_once(' ') {
        Some((kind, shape)) if fits(kind, shape, bytes.len()) => (kind, shape.to_owned()),
        _ => ("|u1", format!("({},)", bytes.len())),
    };
    let dictionary = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let length = (MAGIC.len() + 2 + dictionary.len() + 1).next_multiple_of(ALIGN);
    let header = length - MAGIC.len() - 2;
    out.write_all(MAGIC)?;
    // Names and shapes are far shorter than the format permits.
    out.write_all(&(header as u16).to_le_bytes())?;
    writeln!(out, "{dictionary:width$}", width = header - 1)?;
    out.write_all(bytes)
}

/// A simple element type, and a shape of it that has so many bytes.
fn fits(kind: &str, shape: &str, bytes: usize) -> bool {
    let size = match kind.as_bytes() {
        [b'<' | b'>' | b'|', b'a'..=b'z' | b'A'..=b'Z', size @ ..] => {
            std::str::from_utf8(size).ok().and_then(|text| text.parse::<usize>().ok())
        }
        _ => None,
    };
    let inside = shape.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let (Some(size), Some(inside)) = (size, inside) else { return false };
    let mut count = Some(1_usize);
    for part in inside.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        count = count
            .zip(part.parse().ok())
            .and_then(|(all, one): (usize, usize)| all.checked_mul(one));
    }
    count.and_then(|count| count.checked_mul(size)) == Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: &str, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, form, bytes).unwrap();
        out
    }

    #[test]
    fn a_file_has_header_and_data_as_numpy_has_them() {
        let file = written("<f8 (1, 2)", &[7; 16]);
        assert_eq!(&file[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert_eq!(file.len(), 128 + 16);
        let header = std::str::from_utf8(&file[10..128]).unwrap();
        let expected = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }";
        assert_eq!(header.trim_end_matches(' ').trim_end(), expected);
        assert!(header.ends_with('\n') && file[128..] == [7; 16]);
    }

    #[test]
    fn what_is_no_simple_array_is_bytes() {
        for form in ["", "pickle", "<f8 (3,)", "<f8 2", "O8 (2,)", "<f8 (99999999999999999999, 9)"]
        {
            let file = written(form, &[1; 16]);
            assert!(String::from_utf8_lossy(&file).contains("'|u1'"), "{form}");
        }
        assert!(String::from_utf8_lossy(&written("<i4 ()", &[1; 4])).contains("'<i4'"));
    }
}
