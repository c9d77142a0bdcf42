//! The file of protobuf that a service begins with, as its contract tells it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::limits::{MAX_PARTS, MAX_TYPE, limited, name, printable};

/// Bytes of the sources and descriptors in a contract: the other parts have the rest of
/// [`MAX_CONTRACT`](super::MAX_CONTRACT).
pub const MAX_PROTO: usize = 192 << 10;

/// A file of protobuf, with its imports.
///
/// The contract's methods are the rpcs of its service, in order. An argument and a result have the
/// form of protobuf's JSON: fields by the names in the file, 64-bit numbers as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtoContract {
    /// The service's name with its package, such as `shop.Orders`.
    pub service: String,
    /// The name of the file that has the service.
    pub file: String,
    /// The texts of the files as people have written them, by the names that imports use.
    pub sources: BTreeMap<String, String>,
    /// All files as a `google.protobuf.FileDescriptorSet`, in base64.
    pub descriptors: String,
}

impl ProtoContract {
    /// The sources as one text. Of several files, each follows a line with its name.
    pub fn text(&self) -> String {
        if let (1, Some(only)) = (self.sources.len(), self.sources.get(&self.file)) {
            return only.clone();
        }
        self.sources.iter().map(|(name, text)| format!("// File: {name}\n{text}\n")).collect()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        name("the service of protobuf", &self.service)?;
        printable("a file", &self.file, MAX_TYPE)?;
        limited("a file", self.sources.len(), MAX_PARTS)?;
        for (file, text) in &self.sources {
            printable("a file", file, MAX_TYPE)?;
            let is_control = |letter: char| letter.is_control() && !"\n\r\t".contains(letter);
            if text.chars().any(is_control) {
                return Err(format!("the file {file} has a control character"));
            }
        }
        Ok(())
    }
}
