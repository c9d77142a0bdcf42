//! Mistakes that the simulator plants, to prove that its checkers would find them.

wire::planted_bugs! {
    /// All of them.
    ALL {
        /// A part is believed whatever its checksum says.
        RestoreUnverified,
    }
}
