use super::*;

fn disk(troubles: Troubles, seed: u64) -> Disk {
    let mut disk = Disk::new(1 << 20, troubles, Draw::new(seed));
    run(&mut disk, Op::Create { file: FileName::Segment(1), size: 4_096 }).unwrap();
    run(&mut disk, Op::SyncFolder).unwrap();
    disk
}

fn run(disk: &mut Disk, op: Op) -> Result<Done, Failure> {
    disk.begin(&op)?;
    disk.finish(&op)
}

fn write(disk: &mut Disk, byte: u8, synced: bool) -> Result<Done, Failure> {
    let (file, bytes) = (FileName::Segment(1), Bytes::from(vec![byte; 4_096]));
    run(
        disk,
        match synced {
            true => Op::Append { file, offset: 0, bytes },
            false => Op::Write { file, offset: 0, bytes },
        },
    )
}

fn content(disk: &mut Disk) -> Vec<u8> {
    let op = Op::Read { file: FileName::Segment(1), offset: 0, length: 8_192 };
    let Ok(Done::Read(bytes)) = run(disk, op) else { panic!("it is there") };
    bytes.to_vec()
}

#[test]
fn what_is_synced_stays_and_the_rest_survives_in_any_part() {
    let (mut mixed, mut lost) = (0, 0);
    for seed in 0..50 {
        let mut disk = disk(Troubles::default(), seed);
        write(&mut disk, 1, true).unwrap();
        disk.lose_power();
        assert_eq!(content(&mut disk), vec![1; 4_096]);
        write(&mut disk, 2, false).unwrap();
        disk.lose_power();
        let left = content(&mut disk);
        assert!(left.iter().all(|&byte| byte == 1 || byte == 2));
        mixed += usize::from(left.contains(&1) && left.contains(&2));
        run(&mut disk, Op::Create { file: FileName::Spare, size: 0 }).unwrap();
        disk.lose_power();
        lost += usize::from(!disk.names.contains_key(&FileName::Spare));
    }
    assert!(mixed > 40 && (10..40).contains(&lost), "{mixed} {lost}");
}

#[test]
fn a_sync_that_failed_is_not_made_good_by_another() {
    let unsynced = Troubles { unsynced: 1_000, ..Troubles::default() };
    let mut disk = disk(Troubles::default(), 7);
    disk.troubles = unsynced;
    assert_eq!(write(&mut disk, 1, true).unwrap_err().kind, FailureKind::Unsynced);
    disk.troubles = Troubles::default();
    run(&mut disk, Op::Sync { file: FileName::Segment(1) }).unwrap();
    assert_eq!(content(&mut disk), vec![1; 4_096], "it is shown");
    disk.lose_power();
    assert!(content(&mut disk).contains(&0), "it was not on the disk");
}

#[test]
fn a_full_disk_says_so() {
    let mut disk = disk(Troubles::default(), 1);
    disk.capacity = 8_192;
    let create = |size| Op::Create { file: FileName::Segment(2), size };
    assert_eq!(run(&mut disk, create(4_097)).unwrap_err().kind, FailureKind::Full);
    run(&mut disk, create(4_096)).unwrap();
    write(&mut disk, 1, true).unwrap();
}
