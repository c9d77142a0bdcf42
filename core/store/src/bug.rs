//! Mistakes that the simulator plants, to prove that its checkers would find them.

/// A realistic mistake. Exists only under the feature `planted-bugs`.
#[cfg(feature = "planted-bugs")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Records are said to be persisted when their write is asked for.
    ReportBeforeSync,
    /// A new manifest is relied upon before its name is on the disk.
    SkipFolderSync,
    /// Recovery goes on behind a batch that it cannot read.
    AcceptPastGap,
    /// Segments go as soon as a snapshot that covers them is asked for.
    CutBeforeSnapshot,
    /// A sync that failed is asked for once more, and believed.
    RetryFailedSync,
    /// What cannot be read is always taken for the log's torn end.
    TruncateSilently,
    /// What a segment was used for before is taken for its content.
    TrustStale,
    /// The last batch that can be read is taken for durable.
    TrustTail,
    /// A segment is written to before the manifest names it.
    UseUnnamedSegment,
    /// The log is not told that its last batch is on the disk.
    ForgetMark,
    /// A write begins with the block that the last one ended with, as if blocks were to be filled up.
    RewriteLastBlock,
    /// The manifest names a snapshot before it is on the disk.
    NameUnsyncedSnapshot,
    /// A snapshot is named although records that it covers are not on the disk, whose numbers may be given anew.
    SnapshotAhead,
    /// That a write to the log finds the disk full is told to nobody.
    FullInSilence,
    /// What the manifest does not name is of no meaning, whatever it is.
    TrustOldManifest,
    /// A snapshot that was asked for is not asked for again, whatever became of it.
    AskOnce,
    /// A segment that nobody needs, and for whose sake nobody is asked, stays.
    KeepUnneeded,
    /// What waits to be forgotten when the log rests is dropped by a close.
    CloseAtRest,
    /// The reserve is believed to be whole because there is a file of its name.
    TrustReserve,
    /// What found no room on the disk is said to be persisted.
    AcknowledgeFull,
}

#[cfg(feature = "planted-bugs")]
impl Bug {
    /// All of them.
    pub const ALL: [Bug; 19] = [
        Bug::ReportBeforeSync,
        Bug::SkipFolderSync,
        Bug::AcceptPastGap,
        Bug::CutBeforeSnapshot,
        Bug::RetryFailedSync,
        Bug::TruncateSilently,
        Bug::TrustStale,
        Bug::TrustTail,
        Bug::UseUnnamedSegment,
        Bug::ForgetMark,
        Bug::RewriteLastBlock,
        Bug::NameUnsyncedSnapshot,
        Bug::SnapshotAhead,
        Bug::FullInSilence,
        Bug::TrustOldManifest,
        Bug::AskOnce,
        Bug::KeepUnneeded,
        Bug::CloseAtRest,
        Bug::TrustReserve,
    ];

    /// Those that show below whole clusters.
    pub const OF_CLUSTERS: [Bug; 1] = [Bug::AcknowledgeFull];
}

/// True when the mistake is planted in this configuration. Costs nothing without the feature.
macro_rules! planted {
    ($config:expr, $bug:ident) => {{
        #[cfg(feature = "planted-bugs")]
        let planted = $config.bug == Some($crate::Bug::$bug);
        #[cfg(not(feature = "planted-bugs"))]
        let planted = {
            let _ = &$config;
            false
        };
        planted
    }};
}
pub(crate) use planted;
