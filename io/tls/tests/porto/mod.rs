//! A system called "porto", those who pose as parts of it, and handshakes without sockets.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, Error, RootCertStore, ServerConfig, ServerConnection,
};
use steadfast_tls::issue::{Authority, Issued, SystemAuthority};
use steadfast_tls::{
    Client, Credentials, CredentialsError, Identity, Port, Reach, Server, Visitor, cell, explain,
};
use wire::NodeId;

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const PORT: Port = Port::States;

/// A system.
pub struct Porto {
    pub authority: SystemAuthority,
    pub pem: String,
}

/// A cell's authority, with its key and certificate.
pub struct Cell {
    pub authority: Authority,
    pub own: Issued,
}

impl Porto {
    pub fn new() -> Porto {
        let (authority, own) = SystemAuthority::new("porto").unwrap();
        Porto { authority, pem: own.certificate }
    }

    pub fn cell(&self, path: &str) -> Cell {
        let (authority, own) = self.authority.cell(path).unwrap();
        Cell { authority, own }
    }

    pub fn read(&self, issued: &Issued) -> Result<Credentials, CredentialsError> {
        let Issued { certificate, key } = issued;
        Credentials::from_pem(self.pem.as_bytes(), certificate.as_bytes(), key.as_bytes())
    }

    pub fn credentials(&self, issued: &Issued) -> Credentials {
        self.read(issued).unwrap()
    }

    pub fn client(&self, issued: &Issued, reach: Reach) -> Client {
        Client::reaching(&self.credentials(issued), PORT, reach).unwrap()
    }

    pub fn server(&self, issued: &Issued, reach: Reach) -> Server {
        Server::reaching(&self.credentials(issued), PORT, reach).unwrap()
    }
}

impl Cell {
    /// By the key and the certificate alone.
    pub fn stolen(path: &str, from: &Cell) -> Cell {
        let own = from.own.clone();
        Cell { authority: Authority::of_cell(path, &own.key, &own.certificate).unwrap(), own }
    }

    pub fn identity(&self) -> Identity {
        Identity::node(self.authority.cluster(), NodeId(1)).unwrap()
    }

    pub fn node(&self) -> Issued {
        self.issue(&self.identity())
    }

    pub fn issue(&self, identity: &Identity) -> Issued {
        self.authority.issue(identity, &[ADDRESS]).unwrap()
    }

    /// The certificate of its authority.
    pub fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.own.certificate.as_bytes()).unwrap()
    }

    fn issuer(&self) -> Issuer<'static, KeyPair> {
        issuer(self.authority.cluster(), "Steadfast authority", &self.own.key)
    }
}

pub fn node(path: &str) -> Identity {
    Identity::node(&cell(path), NodeId(1)).unwrap()
}

/// The key's holder, who signs in this name.
fn issuer(organization: &str, name: &str, key: &str) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, name);
    Issuer::new(params, KeyPair::from_pem(key).unwrap())
}

fn leaf(names: &[&str], address: Option<IpAddr>, by: &Issuer<'_, KeyPair>) -> Issued {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.subject_alt_names.extend(address.map(SanType::IpAddress));
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap().pem();
    Issued { certificate, key: key.serialize_pem() }
}

/// A certificate of these names, by this cell's key.
pub fn with_name(by: &Cell, names: &[&str], address: Option<IpAddr>) -> Issued {
    let mut issued = leaf(names, address, &by.issuer());
    issued.certificate += &by.own.certificate;
    issued
}

/// An authority that may make what it likes.
fn further(by: &Issuer<'_, KeyPair>, organization: &str) -> Issued {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, "Steadfast authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap().pem();
    Issued { certificate, key: key.serialize_pem() }
}

/// A certificate of this name, by an authority that this cell's key made.
pub fn by_further_authority(by: &Cell, name: &str) -> Issued {
    let made = further(&by.issuer(), "thief");
    let mut issued = leaf(&[name], None, &issuer("thief", "Steadfast authority", &made.key));
    issued.certificate += &made.certificate;
    issued.certificate += &by.own.certificate;
    issued
}

/// A node of this cell, by a cell's authority that the key of another system made.
pub fn cell_by(system: &str, key: &str, path: &str) -> Issued {
    let cluster = cell(path);
    let made = further(&issuer(system, "Steadfast system", key), &cluster);
    let names = [format!("node-1.{cluster}.steadfast"), format!("node.{cluster}.steadfast")];
    let by = issuer(&cluster, "Steadfast authority", &made.key);
    let mut issued = leaf(&[&names[0], &names[1]], None, &by);
    issued.certificate += &made.certificate;
    issued
}

/// Shakes hands. An error is that of the side that found it.
pub fn meet(
    client: &Arc<ClientConfig>,
    name: ServerName<'static>,
    server: &Arc<ServerConfig>,
) -> Result<(ClientConnection, ServerConnection), Error> {
    let mut near = ClientConnection::new(client.clone(), name).unwrap();
    let mut far = ServerConnection::new(server.clone()).unwrap();
    while near.wants_write() || far.wants_write() {
        let mut bytes = Vec::new();
        while near.wants_write() {
            near.write_tls(&mut bytes).unwrap();
        }
        let mut left = &bytes[..];
        while !left.is_empty() {
            far.read_tls(&mut left).unwrap();
            far.process_new_packets()?;
        }
        bytes.clear();
        while far.wants_write() {
            far.write_tls(&mut bytes).unwrap();
        }
        let mut left = &bytes[..];
        while !left.is_empty() {
            near.read_tls(&mut left).unwrap();
            near.process_new_packets()?;
        }
    }
    assert!(!near.is_handshaking() && !far.is_handshaking(), "nobody has anything to say");
    Ok((near, far))
}

/// The chain and the key of a certificate, for those who check nothing of their own.
pub fn shown(issued: &Issued) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = CertificateDer::pem_slice_iter(issued.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    (chain.map(Result::unwrap).collect(), key)
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// The words of a node of this cell against a client with this certificate.
pub fn at_server(porto: &Porto, honest: &Cell, reach: Reach, forged: &Issued) -> String {
    let server = porto.server(&honest.node(), reach);
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(porto.pem.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let (chain, key) = shown(forged);
    let mut client = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    client.alpn_protocols = server.config().alpn_protocols.clone();
    let name = format!("node.{}.steadfast", honest.authority.cluster());
    let name = ServerName::try_from(name).unwrap();
    match meet(&client.into(), name, &server.config()) {
        Err(Error::AlertReceived(alert)) => panic!("the client refuses the node: {alert:?}"),
        Err(error) => explain(&error),
        Ok((_, far)) => match server.admit_connection(&far) {
            Visitor::Refused(why) => why,
            Visitor::Welcome(whom) => panic!("{whom} was let in"),
        },
    }
}

/// The words of a node of this cell against a server with this certificate.
pub fn at_client(porto: &Porto, honest: &Cell, reach: Reach, forged: &Issued) -> String {
    let client = porto.client(&honest.node(), reach);
    let (chain, key) = shown(forged);
    let mut server = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    server.alpn_protocols = client.config().alpn_protocols.clone();
    match meet(&client.config(), client.server_name(), &server.into()) {
        Err(Error::AlertReceived(alert)) => panic!("the server refuses the node: {alert:?}"),
        Err(error) => explain(&error),
        Ok((near, _)) => panic!("{:?} was taken", steadfast_tls::Peer::of(&near)),
    }
}

/// The same certificate with (r, n - s) for its signature (r, s) on P-256, computed anew here.
pub fn turned(certificate: &[u8]) -> CertificateDer<'static> {
    const ORDER: [u128; 2] =
        [0xffff_ffff_0000_0000_ffff_ffff_ffff_ffff, 0xbce6_faad_a717_9e84_f3b9_cac2_fc63_2551];
    // The last element: 03 LENGTH 00, 30 LENGTH, 02 LENGTH r, 02 LENGTH s.
    let is_last = |at: &usize| {
        let tail = &certificate[*at..];
        tail[0] == 3 && usize::from(tail[1]) + 2 == tail.len() && tail[2..4] == [0, 0x30]
    };
    let at = (0..certificate.len() - 4).find(is_last).unwrap();
    let r = &certificate[at + 5..];
    let (r, s) = r.split_at(2 + usize::from(r[1]));
    let mut wide = [0; 33];
    wide[33 - (s.len() - 2)..].copy_from_slice(&s[2..]);
    let half = |at: usize| u128::from_be_bytes(wide[at..at + 16].try_into().unwrap());
    let (low, less) = ORDER[1].overflowing_sub(half(17));
    let high = ORDER[0] - half(1) - u128::from(less);
    let bytes = [&[0][..], &high.to_be_bytes(), &low.to_be_bytes()].concat();
    let needless = |pair: &[u8]| pair[0] == 0 && pair[1] < 0x80;
    let first = bytes.windows(2).position(|pair| !needless(pair)).unwrap();
    let wrap = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
    let signature = wrap(0x30, &[r, &wrap(2, &bytes[first..])].concat());
    let whole = [&certificate[4..at], &wrap(3, &[&[0][..], &signature].concat())].concat();
    let length = (whole.len() as u16).to_be_bytes();
    CertificateDer::from([&[0x30, 0x82][..], &length, &whole].concat())
}
