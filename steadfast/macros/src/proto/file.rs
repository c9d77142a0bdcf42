//! A file of protobuf and its imports, compiled.

use std::path::Path;

use base64ct::{Base64, Encoding};
use proc_macro2::TokenStream;
use protox::Compiler;
use protox::prost_reflect::{DescriptorPool, FileDescriptor};
use quote::quote;

use crate::given::Refusal;

/// The files, and what is made of them.
pub struct Compiled {
    compiler: Compiler,
    pool: DescriptorPool,
    name: String,
    /// The names in the file's imports, and the files' paths in the package.
    sources: Vec<(String, String)>,
}

impl Compiled {
    /// Compiles the file at a path in a package. Its imports are looked for in the file's own
    /// folder, and then in the package's.
    pub fn new(package: &Path, path: &str) -> Result<Compiled, Refusal> {
        let whole = package.join(path);
        if !whole.is_file() {
            return Err(format!(
                "{path}: there is no such file in {}; the path begins in the package's folder",
                package.display()
            ));
        }
        let folder = whole.parent().unwrap_or(package);
        let name = whole.file_name().and_then(|name| name.to_str()).unwrap_or(path).to_owned();
        let failed = |error: protox::Error| format!("{path} is no file of protobuf: {error:?}");
        let mut compiler = Compiler::new([folder, package]).map_err(failed)?;
        compiler.include_imports(true);
        compiler.open_file(&name).map_err(failed)?;
        let of_package = |path: &Path| {
            let within = path.strip_prefix(package).unwrap_or(path).to_str();
            within.map(str::to_owned).ok_or("the path of a file is not Unicode: rename it")
        };
        let mut sources = Vec::new();
        for file in compiler.files() {
            if let Some(path) = file.path() {
                sources.push((file.name().to_owned(), of_package(path)?));
            }
        }
        let pool = compiler.descriptor_pool();
        Ok(Compiled { compiler, pool, name, sources })
    }

    /// The file itself.
    pub fn file(&self) -> FileDescriptor {
        self.pool.get_file_by_name(&self.name).expect("it is compiled")
    }

    /// All files as a `FileDescriptorSet` in base64, without places and comments.
    pub fn descriptors(&self) -> String {
        Base64::encode_string(&self.compiler.encode_file_descriptor_set())
    }

    /// The constant with the names and texts of all files, which fit a contract together with so
    /// many bytes of descriptors.
    pub fn sources(&self, descriptors: usize) -> TokenStream {
        let all = self.sources.iter().map(|(name, path)| {
            let path = format!("/{path}");
            quote! {
                (#name, ::core::include_str!(
                    ::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), #path)
                ))
            }
        });
        quote! {
            const __SOURCES: &[(&str, &str)] = &[#(#all),*];
            const _: () = {
                let mut bytes: usize = #descriptors;
                let mut index = 0;
                while index < __SOURCES.len() {
                    bytes += __SOURCES[index].1.len();
                    index += 1;
                }
                assert!(bytes <= ::steadfast::contract::MAX_PROTO, #TOO_LONG);
            };
        }
    }
}

const TOO_LONG: &str = "the file and its imports, with their descriptors, have more than 192 KiB: \
                        leave out what the service does not need";
