//! The figures of `star.txt`, section 6, as its text has them: its charts are drawn only.

use harness::jobs::Kind;

/// The sizes of figures 3 to 5, in thousands of bytes.
pub const SIZES: [u64; 2] = [100, 1_150];

/// Seconds of a checkpoint, in words: figures 3 and 4.
pub fn checkpoint(kind: Kind, kilobytes: u64, copies: u8) -> Option<&'static str> {
    match (kind, kilobytes, copies) {
        (Kind::Blocking, 1_150, 1) => Some("3.4 s"),
        (Kind::Blocking, 1_150, 4) => Some("10.3 s"),
        (Kind::Incremental, 100, _) => Some("below 1 s"),
        (Kind::Incremental, 1_150, _) => Some("about a third of a full one"),
        _ => None,
    }
}

/// Seconds of a recovery: figure 5.
pub fn recovery(kilobytes: u64) -> Option<f64> {
    match kilobytes {
        100 => Some(2.5),
        1_150 => Some(6.8),
        _ => None,
    }
}

/// Tables 1 and 2 of one application.
pub struct Application {
    /// Seconds without fault tolerance.
    pub running: f64,
    /// Memory of a process, in KiB.
    pub memory_kib: u64,
    /// By the way to save, as in [`Kind::ALL`]: seconds, and percent of overhead.
    pub saved: [(f64, f64); 3],
}

/// Eliminates with partial pivoting.
pub const GAUSS: Application = Application {
    running: 344.0,
    memory_kib: 1_704,
    saved: [(567.0, 64.92), (505.0, 46.80), (457.0, 32.85)],
};

/// Multiplies two matrices.
pub const MATMUL: Application = Application {
    running: 723.0,
    memory_kib: 2_688,
    saved: [(844.0, 16.79), (768.0, 6.34), (748.0, 3.57)],
};

/// Computes Fourier transforms.
pub const FFT: Application = Application {
    running: 1_177.0,
    memory_kib: 1_200,
    saved: [(1_244.0, 5.75), (1_228.0, 4.36), (1_194.0, 1.50)],
};
