//! Mistakes that the simulator plants, to prove that its checkers would find them.

wire::planted_bugs! {
    /// All of them.
    ALL {
        /// The replay window forgets what has come: a recording is opened again.
        ForgetWindow,
        /// The datagrams of a life are opened before it has proved that it is going on. So a
        /// recording of datagrams to an earlier life of this node is opened.
        TrustUnmet,
        /// A datagram that was sealed for another node is opened.
        OpenForOthers,
    }
}
