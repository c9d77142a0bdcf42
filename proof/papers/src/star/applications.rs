//! Applications of table 2 as ranks: Gaussian elimination, the product of two matrices, and many
//! Fourier transforms.

use std::f64::consts::PI;
use std::time::Duration;

use harness::Outcome;
use harness::jobs::Turns;
use rank::Job;
use serde::{Deserialize, Serialize};

/// Rows of C that a turn computes.
const ROWS: usize = 16;

/// Columns of A, and rows of B, whose products are added at a time.
const BLOCK: usize = 32;

/// Columns of C that are computed at a time, so that what is used fits into a cache.
const TILE: usize = 1_024;

/// Points of a transform, as in the paper.
const POINTS: usize = 32_768;

/// Transforms of a turn.
const AT_ONCE: u64 = 10;

/// A rank of one of them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Application {
    /// Elimination with partial pivoting, of so many rows and columns. A rank has each so-manieth
    /// column, and who has the pivot sends its column to all others.
    Gauss(usize),
    /// C = A B, of so many rows and columns. A rank has some rows of C.
    Matmul(usize),
    /// So many transforms in each rank, whose powers are added.
    Fft(u64),
}

impl Application {
    /// The rank's life.
    pub fn live(self) -> Outcome<()> {
        let job = Job::connect()?;
        match self {
            Application::Gauss(n) => gauss(job, n),
            Application::Matmul(n) => matmul(job, n),
            Application::Fft(transforms) => fft(job, transforms),
        }
    }

    /// Bytes that a rank saves.
    pub fn saved(self, ranks: u32) -> u64 {
        match self {
            Application::Gauss(n) | Application::Matmul(n) => {
                8 * (n * n.div_ceil(ranks as usize)) as u64
            }
            Application::Fft(_) => 8 * 3 * POINTS as u64,
        }
    }
}

/// A number of a matrix or a signal, from 0 to 1: it depends on its place alone.
fn number(seed: u64, row: usize, column: usize) -> f64 {
    // SplitMix64: neighbours have nothing in common.
    let mut bits = seed ^ ((row as u64) << 32 | column as u64);
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

fn read(bytes: &[u8], to: &mut [f64]) {
    for (number, bytes) in to.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = f64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    }
}

fn write(numbers: &[f64], to: &mut [u8]) {
    for (number, bytes) in numbers.iter().zip(to.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&number.to_ne_bytes());
    }
}

/// Waits so long at a time.
const WAIT: Duration = Duration::from_secs(1);

/// All columns are saved. A turn eliminates one of them.
fn gauss(mut job: Job, n: usize) -> Outcome<()> {
    let (rank, ranks) = (job.rank() as usize, job.ranks() as usize);
    let own: Vec<usize> = (rank..n).step_by(ranks).collect();
    let form = format!("<f8 ({}, {n})", own.len());
    let (array, known) = job.array("columns", &form, 8 * (own.len() * n) as u64)?;
    let mut column = vec![0.0; n];
    for (bytes, j) in job.bytes_mut(array).chunks_mut(8 * n).zip(&own).filter(|_| !known) {
        column.iter_mut().enumerate().for_each(|(i, it)| *it = number(4, i, *j) - 0.5);
        write(&column, bytes);
    }
    let (depth, from) = job.begin_loop(n as u64);
    let mut turns = Turns::begin()?;
    let mut factors = vec![0.0; n];
    for k in from as usize..n {
        turns.turn(&mut job, depth, k as u64)?;
        if k % ranks == rank {
            read(&job.bytes(array)[8 * n * (k / ranks)..], &mut column);
            factors[k] = pivot(&column, k, &mut factors[k + 1..]);
            let mut bytes = vec![0; 8 * (n - k)];
            write(&factors[k..], &mut bytes);
            for other in (0..ranks).filter(|other| *other != rank) {
                job.send(other as u32, 0, [&bytes, &[]])?;
            }
        } else {
            let message = loop {
                if let Some(message) = job.receive(Some((k % ranks) as u32), Some(0), WAIT)? {
                    break message;
                }
            };
            read(&message.bytes()?, &mut factors[k..]);
        }
        let row = factors[k] as usize;
        // Columns before this one are done, but for the exchange of rows.
        let first = own.partition_point(|j| *j < k);
        for bytes in job.bytes_mut(array).chunks_mut(8 * n).skip(first) {
            read(bytes, &mut column);
            column.swap(k, row);
            let top = column[k];
            let below = column[k + 1..].iter_mut().zip(&factors[k + 1..]);
            below.for_each(|(it, factor)| *it -= factor * top);
            write(&column, bytes);
        }
    }
    let mut sum = 0.0;
    for (bytes, j) in job.bytes(array).chunks(8 * n).zip(&own) {
        read(bytes, &mut column);
        sum += column[..=*j].iter().sum::<f64>();
    }
    turns.end(sum)?;
    job.end_loop(depth);
    Ok(job.finish()?)
}

/// The row of a column's pivot, and the factors by which the rows below lose it.
fn pivot(column: &[f64], k: usize, factors: &mut [f64]) -> f64 {
    let larger = |best: usize, row: usize| {
        if column[row].abs() > column[best].abs() { row } else { best }
    };
    let row = (k..column.len()).fold(k, larger);
    let value = |place: usize| match place {
        place if place == row => column[k],
        place => column[place],
    };
    for (place, factor) in factors.iter_mut().enumerate() {
        *factor = value(k + 1 + place) / column[row];
    }
    row as f64
}

/// Only C is saved: A and B are made again at each start. A turn computes some rows of C, so that
/// little changes between two checkpoints, as in the paper.
fn matmul(mut job: Job, n: usize) -> Outcome<()> {
    let (rank, ranks) = (job.rank() as usize, job.ranks() as usize);
    let (first, last) = (n * rank / ranks, n * (rank + 1) / ranks);
    let length = 8 * ((last - first) * n) as u64;
    let (c, _) = job.array("c", &format!("<f8 ({}, {n})", last - first), length)?;
    let mut b = vec![0.0; n * n];
    for (k, row) in b.chunks_mut(n).enumerate() {
        row.iter_mut().enumerate().for_each(|(j, it)| *it = number(2, k, j));
    }
    let count = (last - first).div_ceil(ROWS);
    let (depth, from) = job.begin_loop(count as u64);
    let mut turns = Turns::begin()?;
    for turn in from..count as u64 {
        turns.turn(&mut job, depth, turn)?;
        let begin = turn as usize * ROWS;
        let end = (begin + ROWS).min(last - first);
        let rows = &mut job.bytes_mut(c)[8 * begin * n..8 * end * n];
        // A turn that is done once more begins with what it began with.
        rows.fill(0);
        for (block, b) in b.chunks(BLOCK * n).enumerate() {
            add(rows, |row, k| number(1, first + begin + row, block * BLOCK + k), b, n);
        }
    }
    let (mut sum, mut part) = (0.0, [0.0; TILE]);
    for bytes in job.bytes(c).chunks(8 * TILE) {
        let part = &mut part[..bytes.len() / 8];
        read(bytes, part);
        sum += part.iter().sum::<f64>();
    }
    turns.end(sum)?;
    job.end_loop(depth);
    Ok(job.finish()?)
}

/// Adds the products of a block of columns of A with as many rows of B to some rows of C.
fn add(rows: &mut [u8], a: impl Fn(usize, usize) -> f64, b: &[f64], n: usize) {
    let width = b.len() / n;
    let (mut tile, mut block) = ([0.0; TILE], [[0.0; BLOCK]; ROWS]);
    for (row, block) in block.iter_mut().enumerate().take(rows.len() / (8 * n)) {
        block.iter_mut().enumerate().take(width).for_each(|(k, it)| *it = a(row, k));
    }
    for begin in (0..n).step_by(TILE) {
        let end = (begin + TILE).min(n);
        // The part of B stays in the cache for all rows.
        for (row, a) in rows.chunks_mut(8 * n).zip(&block) {
            let (bytes, tile) = (&mut row[8 * begin..8 * end], &mut tile[..end - begin]);
            read(bytes, tile);
            for (a, b) in a.iter().zip(b.chunks(n)) {
                tile.iter_mut().zip(&b[begin..end]).for_each(|(c, b)| *c += a * b);
            }
            write(tile, bytes);
        }
    }
}

/// The points of the last transform and the sum of all powers are saved.
fn fft(mut job: Job, transforms: u64) -> Outcome<()> {
    let length = 8 * POINTS as u64;
    let form = format!("<f8 ({POINTS},)");
    let mut arrays = [0; 3];
    for (array, name) in arrays.iter_mut().zip(["re", "im", "power"]) {
        *array = job.array(name, &form, length)?.0;
    }
    let mut power = vec![0.0; POINTS];
    read(job.bytes(arrays[2]), &mut power);
    let (mut re, mut im) = (vec![0.0; POINTS], vec![0.0; POINTS]);
    let roots: Vec<(f64, f64)> = (0..POINTS / 2)
        .map(|k| (-2.0 * PI * k as f64 / POINTS as f64).sin_cos())
        .map(|(sin, cos)| (cos, sin))
        .collect();
    let (seed, count) = (u64::from(job.rank()) + 3, transforms.div_ceil(AT_ONCE));
    let (depth, from) = job.begin_loop(count);
    let mut turns = Turns::begin()?;
    for turn in from..count {
        turns.turn(&mut job, depth, turn)?;
        for signal in turn * AT_ONCE..transforms.min((turn + 1) * AT_ONCE) {
            let points = re.iter_mut().enumerate();
            points.for_each(|(k, it)| *it = number(seed, signal as usize, k) - 0.5);
            im.fill(0.0);
            transform(&mut re, &mut im, &roots);
            let points = re.iter().zip(&im);
            power.iter_mut().zip(points).for_each(|(sum, (re, im))| *sum += re * re + im * im);
        }
        for (array, numbers) in arrays.into_iter().zip([&re, &im, &power]) {
            write(numbers, job.bytes_mut(array));
        }
    }
    turns.end(power.iter().sum())?;
    job.end_loop(depth);
    Ok(job.finish()?)
}

/// The Fourier transform in place, by powers of two.
fn transform(re: &mut [f64], im: &mut [f64], roots: &[(f64, f64)]) {
    let n = re.len();
    let shift = usize::BITS - n.trailing_zeros();
    for k in 0..n {
        let other = k.reverse_bits() >> shift;
        if k < other {
            re.swap(k, other);
            im.swap(k, other);
        }
    }
    let mut half = 1;
    while half < n {
        let step = n / (2 * half);
        for begin in (0..n).step_by(2 * half) {
            let ((r0, r1), (i0, i1)) = (
                re[begin..begin + 2 * half].split_at_mut(half),
                im[begin..begin + 2 * half].split_at_mut(half),
            );
            for k in 0..half {
                let (cos, sin) = roots[k * step];
                let (r, i) = (r1[k] * cos - i1[k] * sin, r1[k] * sin + i1[k] * cos);
                (r1[k], i1[k]) = (r0[k] - r, i0[k] - i);
                (r0[k], i0[k]) = (r0[k] + r, i0[k] + i);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_is_the_sum_that_defines_it() {
        let n = 16;
        let root = |k: usize| {
            let (sin, cos) = (-2.0 * PI * k as f64 / n as f64).sin_cos();
            (cos, sin)
        };
        let signal: Vec<f64> = (0..n).map(|k| number(1, 0, k)).collect();
        let (mut re, mut im) = (signal.clone(), vec![0.0; n]);
        transform(&mut re, &mut im, &(0..n / 2).map(root).collect::<Vec<_>>());
        for k in 0..n {
            let terms = signal.iter().enumerate().map(|(j, it)| (it, root(j * k % n)));
            let (r, i) =
                terms.fold((0.0, 0.0), |(r, i), (it, (cos, sin))| (r + it * cos, i + it * sin));
            assert!((re[k] - r).abs() < 1e-9 && (im[k] - i).abs() < 1e-9, "{k}");
        }
    }

    #[test]
    fn the_pivot_is_the_largest_and_the_factors_are_by_it() {
        let column = [9.0, 2.0, -8.0, 4.0];
        let mut factors = [0.0; 2];
        assert_eq!(pivot(&column, 1, &mut factors), 2.0);
        // Row 1 is where the pivot was.
        assert_eq!(factors, [2.0 / -8.0, 4.0 / -8.0]);
    }

    #[test]
    fn a_block_of_products_is_added() {
        let n = TILE + 3;
        let b: Vec<f64> = (0..2 * n).map(|k| number(2, k / n, k % n)).collect();
        let mut rows = vec![0; 2 * 8 * n];
        write(&vec![1.0; 2 * n], &mut rows);
        add(&mut rows, |row, k| (2 * row + k) as f64, &b, n);
        let mut c = vec![0.0; 2 * n];
        read(&rows, &mut c);
        let right = |row: usize, j: usize| {
            let wanted = 1.0 + (2 * row) as f64 * b[j] + (2 * row + 1) as f64 * b[n + j];
            (c[row * n + j] - wanted).abs() < 1e-12
        };
        assert!((0..2 * n).all(|place| right(place / n, place % n)));
    }
}
