//! Mistakes that the simulator plants, to prove that its checkers would find them.

wire::planted_bugs! {
    /// All of them.
    OF_DISKS {
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
        /// An unreadable batch is always taken for the log's torn end.
        TruncateSilently,
        /// The former content of a reused segment is taken for its own.
        TrustStale,
        /// The last batch that can be read is taken for durable.
        TrustTail,
        /// A segment is written to before the manifest names it.
        UseUnnamedSegment,
        /// The log is not told that its last batch is on the disk.
        ForgetMark,
        /// A write begins with the block that the last one ended with, as if blocks were to be
        /// filled up.
        #[cfg(feature = "planted-bugs")]
        RewriteLastBlock,
        /// The manifest names a snapshot before it is on the disk.
        NameUnsyncedSnapshot,
        /// A snapshot is named although records that it covers are not on the disk, whose numbers
        /// may be given anew.
        SnapshotAhead,
        /// That a write to the log finds the disk full is told to nobody.
        FullInSilence,
        /// Files that the manifest does not name are always ignored.
        TrustOldManifest,
        /// A snapshot that was asked for is not asked for again, whatever became of it.
        AskOnce,
        /// A segment that nobody needs, and for whose sake nobody is asked, stays.
        KeepUnneeded,
        /// A close drops strands that wait to be forgotten when the log rests.
        CloseAtRest,
        /// The reserve is believed to be whole because there is a file of its name.
        TrustReserve,
    }
    /// Those that show below whole clusters.
    OF_CLUSTERS {
        /// A record that found no room on the disk is reported as persisted.
        AcknowledgeFull,
    }
}
