//! The certificate of one side, and the authorities that it trusts.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::name::{Identity, NameError};

/// Largest file that is read: a thousand times what a chain needs.
const MAX_FILE: u64 = 1 << 20;

/// A certificate with its key, and the authorities that the other side's must be by.
#[derive(Debug)]
pub struct Credentials {
    /// The identity in the certificate.
    pub identity: Identity,
    pub(crate) authorities: Arc<RootCertStore>,
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Files or PEM texts that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}; `steadfast init` makes keys and certificates", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Others may read a private key.
    #[error(
        "{} may be read by others (mode {mode:03o}): whoever has it can pose as its owner; \
         `chmod 600` it, and make a new one if others may have had it", path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// No PEM section of the kind that is needed.
    #[error("{what} is no PEM text with a {kind}: is it the right file?")]
    Pem {
        /// The file, or what was given.
        what: String,
        /// The kind that is needed.
        kind: &'static str,
    },
    /// The certificate has no name of ours.
    #[error("{what}: {source}")]
    Name {
        /// The file, or what was given.
        what: String,
        /// The problem with it.
        source: NameError,
    },
    /// The certificate is for somebody else.
    #[error(
        "{what} is the certificate of {theirs}, and that of {ours} is needed: is it the right file?"
    )]
    Other {
        /// The file, or what was given.
        what: String,
        /// The identity in the certificate.
        theirs: String,
        /// The identity that is needed.
        ours: String,
    },
    /// Other cells are asked for, and this is none.
    #[error(
        "{ours} is of no cell: a system of cells takes certificates that `steadfast init --system` made"
    )]
    NoCell {
        /// The identity in the certificate.
        ours: String,
    },
    /// TLS does not take them.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(String),
}

impl Credentials {
    /// From PEM texts.
    ///
    /// # Errors
    /// Something is missing, or the certificate is not one of Steadfast.
    pub fn from_pem(
        authority: &[u8],
        certificate: &[u8],
        key: &[u8],
    ) -> Result<Credentials, CredentialsError> {
        Self::read([
            ("the authority", authority),
            ("the certificate", certificate),
            ("the key", key),
        ])
    }

    /// From files in PEM. The key's must be for its owner alone (mode 0600).
    ///
    /// # Errors
    /// A file cannot be used; which one, and why.
    pub fn from_files(
        authority: &Path,
        certificate: &Path,
        key: &Path,
    ) -> Result<Credentials, CredentialsError> {
        let data = fs::metadata(key).map_err(unreadable(key))?;
        let mode = data.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(CredentialsError::Open { path: key.into(), mode });
        }
        let texts = [read(authority)?, read(certificate)?, read(key)?];
        let names = [authority, certificate, key].map(|path| path.display().to_string());
        Self::read([(&names[0], &texts[0]), (&names[1], &texts[1]), (&names[2], &texts[2])])
    }

    /// From a folder that `steadfast init` made for a client: `authority.pem`, and one certificate
    /// `NAME.pem` with its key `NAME.key`.
    ///
    /// # Errors
    /// The folder has not exactly one key, or a file cannot be used.
    pub fn from_dir(folder: &Path) -> Result<Credentials, CredentialsError> {
        let [authority, certificate, key] = Self::files_in(folder)?;
        Self::from_files(&authority, &certificate, &key)
    }

    /// The authority, the certificate and its key in such a folder.
    ///
    /// # Errors
    /// The folder has not exactly one key.
    pub fn files_in(folder: &Path) -> Result<[PathBuf; 3], CredentialsError> {
        let mut keys = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
            let path = entry.map_err(unreadable(folder))?.path();
            // A node's folder has the ring's keys too, which have no certificate.
            if path.extension().is_some_and(|it| it == "key") && path.with_extension("pem").exists()
            {
                keys.push(path);
            }
        }
        let [key] = &keys[..] else {
            let reason = format!("{} files NAME.key with a NAME.pem, one is needed", keys.len());
            return Err(unreadable(folder)(io::Error::other(reason)));
        };
        Ok([folder.join("authority.pem"), key.with_extension("pem"), key.clone()])
    }

    fn read(texts: [(&str, &[u8]); 3]) -> Result<Credentials, CredentialsError> {
        let [authority, certificate, (key_name, key)] = texts;
        let mut authorities = RootCertStore::empty();
        for certificate in certificates(authority)? {
            authorities.add(certificate).map_err(|_| CredentialsError::Pem {
                what: authority.0.into(),
                kind: "authority's certificate",
            })?;
        }
        let chain = certificates(certificate)?;
        let identity = Identity::of(&chain[0])
            .map_err(|source| CredentialsError::Name { what: certificate.0.into(), source })?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| CredentialsError::Pem { what: key_name.into(), kind: "private key" })?;
        Ok(Credentials { identity, authorities: Arc::new(authorities), chain, key })
    }

    /// Makes sure that the certificate is this one's.
    ///
    /// # Errors
    /// It is another one's.
    pub fn expect(self, ours: &Identity) -> Result<Credentials, CredentialsError> {
        if self.identity == *ours {
            return Ok(self);
        }
        Err(CredentialsError::Other {
            what: "[security] certificate".into(),
            theirs: self.identity.to_string(),
            ours: ours.to_string(),
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CredentialsError> {
    let length = fs::metadata(path).map_err(unreadable(path))?.len();
    if length > MAX_FILE {
        let reason = format!("{length} bytes, at most {MAX_FILE} are read");
        return Err(unreadable(path)(io::Error::other(reason)));
    }
    fs::read(path).map_err(unreadable(path))
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> CredentialsError {
    move |source| CredentialsError::Read { path: path.into(), source }
}

/// One or more certificates.
fn certificates(
    (what, text): (&str, &[u8]),
) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let none = || CredentialsError::Pem { what: what.into(), kind: "certificate" };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    all.ok().filter(|all| !all.is_empty()).ok_or_else(none)
}
