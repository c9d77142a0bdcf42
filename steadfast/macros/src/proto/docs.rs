//! The comments of a file as documentation.

use protox::prost_reflect::FileDescriptor;
use syn::{Attribute, parse_quote};

/// The comment before the declaration with this path, or else the one behind it.
pub fn of(file: &FileDescriptor, path: &[i32]) -> Vec<Attribute> {
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let location = info.and_then(|info| info.location.iter().find(|it| it.path == path));
    let comment = location.map(|location| match location.leading_comments() {
        "" => location.trailing_comments(),
        before => before,
    });
    attributes(comment.unwrap_or_default())
}

/// Code in a comment is no test: fences say `text`, and no line is indented as code is.
fn attributes(comment: &str) -> Vec<Attribute> {
    let mut in_code = false;
    let line = |line: &str| -> Attribute {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        let fence = if is_fence && !in_code { "```text" } else { "```" };
        in_code ^= is_fence;
        let line = if is_fence { fence } else { line };
        let text = format!(" {line}");
        let text = text.trim_end();
        parse_quote! { #[doc = #text] }
    };
    comment.trim().lines().map(line).collect()
}
