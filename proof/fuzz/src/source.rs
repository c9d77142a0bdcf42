//! Choices out of an input's bytes. When they are used up every choice is the first one.

/// The rest of an input.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    /// All of it.
    pub fn new(bytes: &'a [u8]) -> Self {
        Source(bytes)
    }

    /// Nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// A number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// Eight bytes.
    pub fn word(&mut self) -> u64 {
        let mut word = [0; 8];
        for byte in &mut word {
            *byte = self.byte();
        }
        u64::from_le_bytes(word)
    }

    /// A number that is small, large or anything.
    pub fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => self.word(),
            1 => u64::MAX - u64::from(self.byte()),
            2 => 1 << self.below(64),
            _ => u64::from(self.byte()),
        }
    }

    /// Up to `most` bytes (at most 255), as many as are left.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let many = self.below(most + 1).min(self.0.len());
        let (bytes, rest) = self.0.split_at(many);
        self.0 = rest;
        bytes
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_ends_in_first_choices() {
        let mut source = Source::new(&[7, 2, 1, 2, 3]);
        assert_eq!(source.below(4), 3);
        assert_eq!(source.bytes(9), [1, 2]);
        assert_eq!(source.word(), 3);
        assert!(source.is_empty());
        assert_eq!((source.byte(), source.number()), (0, 0));
        assert_eq!(source.bytes(5), [0_u8; 0]);
    }
}
