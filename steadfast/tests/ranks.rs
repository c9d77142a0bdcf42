//! A rank without an agent: the only one of its job, which sends to itself.

use std::ops::Add;

use steadfast::job::{self, ANY, Error, Rank, State, Status};

#[derive(State)]
struct Nothing {
    turns: u64,
}

/// Does this as the only rank.
fn alone(work: impl FnOnce(&mut Rank) -> Result<(), Error>) -> Result<(), Error> {
    job::run(|_| Nothing { turns: 0 }, |rank, _| work(rank))
}

#[test]
fn messages_come_in_order_by_their_tags_and_types() {
    alone(|rank| {
        rank.send(0, 7, &[1.5, -0.0])?;
        rank.send::<u8>(0, 8, &[])?;
        rank.send(0, 7, &[u32::MAX])?;
        assert!(rank.probe(0, 8)? && !rank.probe(ANY, 9)?);
        let (empty, status) = rank.receive::<i64>(ANY, 8)?;
        assert_eq!((&empty[..], status), (&[][..], Status { source: 0, tag: 8 }));
        let mut two = [0.0_f64; 2];
        assert_eq!(rank.receive_into(0, ANY, &mut two)?, Status { source: 0, tag: 7 });
        assert_eq!(two.map(f64::to_bits), [1.5, -0.0].map(f64::to_bits));
        assert_eq!(rank.receive::<u32>(0, 7)?.0, [u32::MAX]);
        assert_eq!(rank.exchange(0, 0, 3, &[7_i16; 3])?, [7; 3]);
        assert_eq!(rank.record(7)?, 7);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_message_is_found_behind_many_others() {
    alone(|rank| {
        for number in 0..3_000_u64 {
            rank.send(0, 1, &[number; 8])?;
        }
        rank.send(0, 2, &[5_u8])?;
        assert!(rank.probe(0, 2)?);
        assert_eq!(rank.receive::<u8>(0, 2)?.0, [5]);
        for number in 0..3_000 {
            assert_eq!(rank.receive::<u64>(ANY, ANY)?.0, [number; 8]);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_log_that_grows_keeps_what_was_taken() {
    alone(|rank| {
        for number in 0..10_000_u64 {
            assert_eq!(rank.exchange(0, 0, 0, &[number; 8])?, [number; 8]);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_only_rank_sends_itself_more_than_a_log_has_room_for() {
    job::run(
        |_| Nothing { turns: 0 },
        |rank, nothing| {
            rank.turns(nothing, 0..300, |rank, nothing, turn| {
                let sent = vec![turn; 128 << 10];
                rank.send(0, 0, &sent)?;
                assert_eq!(rank.receive::<u64>(ANY, 0)?.0, sent);
                nothing.turns += 1;
                Ok(())
            })
        },
    )
    .unwrap();
}

#[test]
fn the_only_rank_has_all_that_all_have() {
    alone(|rank| {
        let mut values = [0.1, f64::NAN, f64::MAX];
        let before = values.map(f64::to_bits);
        rank.broadcast(&mut values, 0)?;
        rank.reduce(&mut values, f64::add, 0)?;
        rank.all_reduce(&mut values, f64::max)?;
        assert_eq!(values.map(f64::to_bits), before);
        assert_eq!(rank.gather(&[1, 2, 3_u8], 0)?, Some(vec![vec![1, 2, 3]]));
        assert_eq!(rank.all_gather(&[4_i32])?, [[4]]);
        let parts = [vec![5_u16, 6]];
        assert_eq!(rank.scatter(Some(&parts), 0)?, [5, 6]);
        assert_eq!(rank.all_to_all(&parts)?, parts);
        rank.barrier()
    })
    .unwrap();
}

#[test]
fn what_cannot_be_is_an_error_with_its_reason() {
    let refused = |work: fn(&mut Rank) -> Result<(), Error>| alone(work).unwrap_err().to_string();
    let tag = refused(|rank| rank.send(0, 1 << 31, &[0_u8]));
    assert_eq!(tag, "tags of programs are below 2^31, and 2147483648 is not: take another");
    assert_eq!(
        refused(|rank| rank.receive::<u8>(0, u32::MAX).map(drop)),
        tag.replace("2147483648", "4294967295")
    );
    assert!(refused(|rank| rank.probe(ANY, 1 << 31).map(drop)).contains("tags of programs"));
    assert!(refused(|rank| rank.probe(u32::MAX, 0).map(drop)).contains("no rank 4294967295"));
    assert!(refused(|rank| rank.send(1, 0, &[0_u8])).contains("nobody else is there"));
    assert!(refused(|rank| rank.receive::<u8>(0, 0).map(drop)).contains("nobody sends"));
    assert!(refused(|rank| rank.reduce(&mut [0_u8], u8::add, 1)).contains("no rank 1"));
    let parts = refused(|rank| rank.scatter::<u8>(None, 0).map(drop));
    assert_eq!(parts, "there are 0 parts for 1 ranks: give one for each");
    let elements = refused(|rank| {
        rank.send(0, 5, &[0_u8; 12])?;
        rank.receive::<f64>(0, 5).map(drop)
    });
    assert!(elements.contains("rank 0 with tag 5 has 12 bytes, which are no elements of 8"));
    for room in [2, 4] {
        let length = alone(|rank| {
            rank.send(0, 5, &[0.0_f64; 3])?;
            rank.receive_into(0, 5, &mut vec![0.0_f64; room]).map(drop)
        });
        let length = length.unwrap_err().to_string();
        assert!(length.contains(&format!("24 bytes, and there is room for {}", 8 * room)));
    }
}
