//! Numbers, and what has them: fields of states, results, messages.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The state of a rank: numbers, and vectors and arrays of numbers, each by its name. Derive it.
pub trait State {
    /// The fields, in an order that is the same each time.
    fn fields(&self) -> Vec<(&'static str, &dyn Field)>;

    /// The same, to be restored.
    fn fields_mut(&mut self) -> Vec<(&'static str, &mut dyn Field)>;
}

/// A field of a state, and a result: a number, a vector or an array of numbers.
pub trait Field {
    /// Kind and shape, as NumPy has them: `<f8 (1000,)`.
    fn form(&self) -> String;

    /// Its bytes.
    fn bytes(&self) -> &[u8];

    /// Its bytes, to be restored.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A number, as NumPy knows it.
pub trait Number: IntoBytes + FromBytes + Immutable + Copy {
    /// Its kind: `f8`.
    const KIND: &'static str;
}

const ORDER: &str = if cfg!(target_endian = "little") { "<" } else { ">" };

macro_rules! numbers {
    ($($number:ty: $kind:literal),* $(,)?) => {$(
        impl Number for $number {
            const KIND: &'static str = $kind;
        }

        impl Field for $number {
            fn form(&self) -> String {
                format!("{ORDER}{} ()", $kind)
            }

            fn bytes(&self) -> &[u8] {
                self.as_bytes()
            }

            fn bytes_mut(&mut self) -> &mut [u8] {
                self.as_mut_bytes()
            }
        }
    )*};
}

numbers! {
    u8: "u1", u16: "u2", u32: "u4", u64: "u8",
    i8: "i1", i16: "i2", i32: "i4", i64: "i8",
    f32: "f4", f64: "f8",
}

impl<T: Number> Field for Vec<T> {
    fn form(&self) -> String {
        format!("{ORDER}{} ({},)", T::KIND, self.len())
    }

    fn bytes(&self) -> &[u8] {
        self.as_slice().as_bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice().as_mut_bytes()
    }
}

impl<T: Number, const N: usize> Field for [T; N] {
    fn form(&self) -> String {
        format!("{ORDER}{} ({N},)", T::KIND)
    }

    fn bytes(&self) -> &[u8] {
        self.as_slice().as_bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice().as_mut_bytes()
    }
}
