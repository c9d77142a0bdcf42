//! Mistakes that the simulator plants, to prove that its checkers would find them.

wire::planted_bugs! {
    /// All of them.
    ALL {
        /// The replay window forgets what has come: a recording is opened again.
        ForgetWindow,
        /// What a life sealed is taken before it has proved that it is going on: a recording of
        /// what an earlier life of this node was sent is opened.
        TrustUnmet,
        /// What was sealed for another node is opened.
        OpenForOthers,
    }
}
