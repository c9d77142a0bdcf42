//! A rank where it may not do all: as Docker limits system calls, and in a process that is not
//! dumpable. It says so, and what has changed is found all the same.
//!
//! Each limit is that of a thread, which a test takes for itself alone.
#![allow(unsafe_code)]

use std::io;
use std::thread;

use steadfast_rank::{Arena, Kind, Tracker};
use wire::rank::{Array, PAGE};

/// System calls that Docker's default profile refuses (moby/profiles, `seccomp/default.json`) and
/// that a tracker could want.
const REFUSED: [libc::c_long; 6] = [
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_process_madvise,
    libc::SYS_mount,
];

const NOBODY: libc::uid_t = 65_534;

fn ended(outcome: libc::c_long) -> io::Result<()> {
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// This thread gets `EPERM` from these system calls, from here on.
fn refuse(calls: &[libc::c_long]) -> io::Result<()> {
    const NUMBER: u32 = 0; // its place in seccomp_data
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let give = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut program = vec![step(load, 0, NUMBER)];
    for (place, call) in calls.iter().enumerate() {
        // Over the calls that are left, and over the permission.
        let jump = (calls.len() - place) as u8;
        program.push(step(equal, jump, *call as u32));
    }
    program.push(step(give, 0, libc::SECCOMP_RET_ALLOW));
    program.push(step(give, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: without TSYNC both concern this thread alone; the kernel copies the program, which
    // lives until the calls return.
    unsafe {
        ended(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        ended(libc::syscall(libc::SYS_seccomp, mode, 0, &raw const filter))
    }
}

/// This process is not dumpable any more, and this thread has no privilege to look all the same.
fn hide() -> io::Result<()> {
    // SAFETY: the calls take numbers. The raw one, unlike the library's, changes this thread alone.
    unsafe {
        if libc::geteuid() == 0 {
            ended(libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY))?;
        }
        ended(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0).into())
    }
}

/// The kind in force where `limit` holds, once it has found what has changed.
fn tracks_under(limit: impl FnOnce() -> io::Result<()> + Send + 'static) -> (Kind, Option<String>) {
    let body = move || {
        limit().expect("a thread may limit itself");
        let array = Array { name: "a".into(), form: "|u1".into(), length: 100 * PAGE };
        let mut arena = Arena::new(vec![array]).expect("memory needs no permission");
        let mut tracker = Tracker::new(&arena);
        tracker.changed(&arena).expect("all is owed at first");
        tracker.saved();
        arena.bytes_mut(0)[7 * PAGE as usize] = 1;
        arena.bytes_mut(0)[42 * PAGE as usize + 9] = 1;
        let changed = tracker.changed(&arena).expect("it tells");
        let pages = changed.iter().map(|it| (it.from() / PAGE, it.to() / PAGE));
        assert_eq!(pages.collect::<Vec<_>>(), [(7, 8), (42, 43)]);
        (tracker.kind(), tracker.instead().map(String::from))
    };
    thread::spawn(body).join().expect("what has changed is found")
}

#[test]
fn the_next_tracker_is_taken_and_said() {
    let (free, _) = tracks_under(|| Ok(()));
    for (limited, instead) in [tracks_under(|| refuse(&REFUSED)), tracks_under(hide)] {
        assert_eq!(limited, Kind::Compared);
        let instead = instead.expect("it says what is missing");
        let why = ["Operation not permitted", "Permission denied"];
        // Where the kernel has no such tracker, that is said, limited or not.
        let known = why.iter().any(|why| instead.contains(why)) || free == Kind::Compared;
        assert!(known, "{instead}");
    }
}
