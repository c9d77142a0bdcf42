//! Keys and certificates for a cluster that is measured with them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use node::Security;
use steadfast::{NodeConfig, Tls};
use tls::Identity;
use tls::issue::{Authority, Issued};

use crate::Outcome;

/// How much of a cluster is protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Protect {
    /// Nothing.
    #[default]
    None,
    /// Clients talk TLS.
    Tls,
    /// And the ring's datagrams are sealed.
    All,
}

/// The list of certificates that are denied.
const DENIED: &str = "denied.txt";

/// A cluster's authority, with the folder for its files.
#[derive(Debug)]
pub struct Keys {
    authority: Authority,
    pem: String,
    folder: PathBuf,
}

impl Keys {
    /// New ones, in this folder.
    pub fn new(folder: &Path) -> Outcome<Keys> {
        let (authority, own) = Authority::new(&NodeConfig::default().cluster)?;
        let keys = Keys { authority, pem: own.certificate, folder: folder.into() };
        keys.write("authority.pem", &keys.pem)?;
        keys.write(DENIED, "")?;
        node::key_file::create(&folder.join("cluster.key"))?;
        Ok(keys)
    }

    /// The security section of a node's configuration.
    pub fn node(&self, config: &NodeConfig, protect: Protect) -> Outcome<Security> {
        if protect == Protect::None {
            return Ok(Security::default());
        }
        let identity = Identity::node(&config.cluster, config.node)?;
        let Issued { certificate, key } = self.authority.issue(&identity, &[])?;
        let label = identity.label();
        Ok(Security {
            cluster_key: (protect == Protect::All).then(|| self.folder.join("cluster.key")),
            authority: Some(self.folder.join("authority.pem")),
            certificate: Some(self.write(&format!("{label}.pem"), &certificate)?),
            key: Some(self.write(&format!("{label}.key"), &key)?),
            denied: Some(self.folder.join(DENIED)),
        })
    }

    /// The owner of this label is denied, when nodes read that.
    pub fn deny(&self, label: &str) -> Outcome<()> {
        let text = fs::read_to_string(self.folder.join(DENIED))?;
        self.write(DENIED, &format!("{text}{label}\n")).map(drop)
    }

    /// The certificate and key of a client of this name.
    pub fn client(&self, name: &str) -> Outcome<Tls> {
        let identity = Identity::client(self.authority.cluster(), name)?;
        let Issued { certificate, key } = self.authority.issue(&identity, &[])?;
        Ok(Tls::from_pem(self.pem.as_bytes(), certificate.as_bytes(), key.as_bytes())?)
    }

    fn write(&self, name: &str, text: &str) -> Outcome<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(path)
    }
}
