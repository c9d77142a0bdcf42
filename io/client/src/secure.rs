//! TLS, or, without the feature, the types that have no values in its place.

#[cfg(feature = "tls")]
mod with {
    use std::io::{self, IoSlice, Write};

    use wire::NodeId;
    use wire::path::Path;

    use crate::Trouble;

    pub(crate) type Tls = tls::Client;

    /// A connection's records, whose failures are told in words.
    #[derive(Debug)]
    pub(crate) struct Records(tls::Records);

    /// For calls to the own cluster, or to this cell.
    pub(crate) fn begin(tls: &Tls, address: std::net::SocketAddr, cell: Option<&Path>) -> Records {
        Records(match cell {
            None => tls.connect(address),
            Some(cell) => tls.connect_by(address, &cell.cluster()),
        })
    }

    impl Records {
        pub(crate) fn receive(
            &mut self,
            bytes: &[u8],
            plain: impl FnMut(&[u8]),
        ) -> Result<(), Trouble> {
            let result = self.0.receive(bytes, plain);
            result.map_err(|error| Trouble::Distrusted(tls::explain(&error)))
        }

        pub(crate) fn is_open(&self) -> bool {
            self.0.is_open()
        }

        pub(crate) fn seal(&mut self, slices: &[IoSlice<'_>]) -> usize {
            self.0.seal(slices)
        }

        pub(crate) fn wants_to_write(&self) -> bool {
            self.0.wants_to_write()
        }

        pub(crate) fn write(&mut self, stream: &mut dyn Write) -> io::Result<usize> {
            self.0.write(stream)
        }

        /// A node must be the one that its certificate is for.
        pub(crate) fn check_node(&self, says: NodeId) -> Result<(), Trouble> {
            match self.0.identity() {
                Some(identity) if identity.role == tls::Role::Node(says) => Ok(()),
                Some(identity) => Err(Trouble::Distrusted(format!(
                    "it claims to be node {}, but has the certificate of {identity}: give each \
                     node its own",
                    says.0
                ))),
                None => Err(Trouble::Distrusted("its certificate names no node".into())),
            }
        }
    }
}

#[cfg(not(feature = "tls"))]
mod without {
    use std::io::{self, IoSlice, Write};

    use wire::NodeId;
    use wire::path::Path;

    use crate::Trouble;

    #[derive(Clone, Debug)]
    pub(crate) enum Tls {}

    #[derive(Debug)]
    pub(crate) enum Records {}

    pub(crate) fn begin(tls: &Tls, _: std::net::SocketAddr, _: Option<&Path>) -> Records {
        match *tls {}
    }

    impl Records {
        pub(crate) fn receive(&mut self, _: &[u8], _: impl FnMut(&[u8])) -> Result<(), Trouble> {
            match *self {}
        }

        pub(crate) fn is_open(&self) -> bool {
            match *self {}
        }

        pub(crate) fn seal(&mut self, _: &[IoSlice<'_>]) -> usize {
            match *self {}
        }

        pub(crate) fn wants_to_write(&self) -> bool {
            match *self {}
        }

        pub(crate) fn write(&mut self, _: &mut dyn Write) -> io::Result<usize> {
            match *self {}
        }

        pub(crate) fn check_node(&self, _: NodeId) -> Result<(), Trouble> {
            match *self {}
        }
    }
}

#[cfg(feature = "tls")]
pub(crate) use with::{Records, Tls, begin};
#[cfg(not(feature = "tls"))]
pub(crate) use without::{Records, Tls, begin};
