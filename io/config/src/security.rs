//! Where the keys are, and which of them a node must have before others may reach it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The files that keep strangers out. `steadfast init` makes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Security {
    /// The ring's keys: datagrams are encrypted and authenticated with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_key: Option<PathBuf>,
    /// The authorities' certificates, which those of nodes and clients are checked against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<PathBuf>,
    /// This node's certificate chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Its private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Certificates that are not accepted, though they are by the authority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<PathBuf>,
}

/// The files of TLS: all, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsFiles<'a> {
    /// The authorities' certificates.
    pub authority: &'a Path,
    /// This node's certificate chain.
    pub certificate: &'a Path,
    /// Its private key.
    pub key: &'a Path,
}

impl Security {
    /// The files of TLS, if they are configured.
    pub fn tls(&self) -> Option<TlsFiles<'_>> {
        Some(TlsFiles {
            authority: self.authority.as_deref()?,
            certificate: self.certificate.as_deref()?,
            key: self.key.as_deref()?,
        })
    }

    /// The keys of the configuration that have no file.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        self.keys().into_iter().filter(|(_, file)| file.is_none()).map(|(key, _)| key).collect()
    }

    /// The first of TLS's three files that is missing, if others are configured.
    pub(crate) fn gap(&self) -> Option<&'static str> {
        let tls = &self.keys()[1..];
        let any = tls.iter().any(|(_, file)| file.is_some());
        tls.iter().find(|(_, file)| any && file.is_none()).map(|(key, _)| *key)
    }

    /// Relative paths of what the node only reads are those of this folder.
    pub(crate) fn resolve(&mut self, folder: &Path) {
        let files = [&mut self.authority, &mut self.certificate, &mut self.key, &mut self.denied];
        files.into_iter().flatten().for_each(|file| *file = folder.join(&*file));
    }

    fn keys(&self) -> [(&'static str, &Option<PathBuf>); 4] {
        [
            ("cluster_key", &self.cluster_key),
            ("authority", &self.authority),
            ("certificate", &self.certificate),
            ("key", &self.key),
        ]
    }
}
