use core::time::Duration;

use wire::Random;

use super::*;

fn host(platform: Platform) -> Host {
    let devices = BTreeMap::from([("254:0".into(), Rate { read: 100, write: 50 })]);
    let (taken, most) = (Share::percent(5), Share::percent(90));
    let networks = BTreeMap::from([("eth0".into(), 1_000), ("eth1".into(), 500)]);
    Host::new(Capacity { processors: 2, taken, most, memory: 1_000, devices, networks }, platform)
}

const ALL: Platform =
    Platform { deadline: true, fifo: 40, memory: true, devices: true, networks: true };

fn cpu(percent: u32) -> Ask {
    let period = Duration::from_millis(10);
    Ask { cpu: Some(Task::new(period * percent / 100, period)), ..Ask::default() }
}

#[test]
fn a_reserve_is_admitted_as_long_as_there_is_room() {
    let mut host = host(ALL);
    for number in 0..6 {
        host.admit(&alloc::format!("n{number}/plane"), cpu(25)).unwrap();
    }
    let Err(Refusal::Processors { asked, left }) = host.admit("n9/plane", cpu(35)) else {
        panic!("150 % of 180 % are in use")
    };
    assert_eq!((asked, left), (Share::percent(35), Share::percent(30)));
    host.release("n0/plane").unwrap();
    host.admit("n9/plane", cpu(25)).unwrap();
}

/// 13 ms in every 10 ms are more than any thread can have, and 60 % three times more than two
/// processors can give in time.
#[test]
fn threads_run_on_one_processor() {
    let mut host = host(ALL);
    assert_eq!(host.admit("n1/plane", cpu(130)), Err(Refusal::Impossible));
    host.admit("n1/plane", cpu(60)).unwrap();
    host.admit("n2/plane", cpu(60)).unwrap();
    assert!(host.admit("n3/plane", cpu(60)).is_err());
}

#[test]
fn a_change_is_made_as_a_whole_or_not_at_all() {
    let mut host = host(ALL);
    host.admit("n1/orders", Ask { memory: 600, ..cpu(20) }).unwrap();
    host.admit("n1/stock", Ask { memory: 300, ..cpu(20) }).unwrap();
    let before: alloc::vec::Vec<_> =
        host.reserves().map(|(path, it)| (String::from(path), it.clone())).collect();
    let refused = host.admit("n1/stock", Ask { memory: 500, ..cpu(30) });
    assert_eq!(refused, Err(Refusal::Memory { asked: 500, left: 400 }));
    let after: alloc::vec::Vec<_> =
        host.reserves().map(|(path, it)| (String::from(path), it.clone())).collect();
    assert_eq!(before, after);
    host.admit("n1/stock", Ask { memory: 400, ..cpu(30) }).unwrap();
}

#[test]
fn devices_have_a_rate_for_each_way() {
    let mut host = host(ALL);
    let ask = |device: &str, read, write| Ask {
        devices: BTreeMap::from([(device.into(), Rate { read, write })]),
        ..Ask::default()
    };
    host.admit("n1/orders", ask("254:0", 60, 50)).unwrap();
    let refused = host.admit("n1/stock", ask("254:0", 40, 1));
    let (device, way) = ("254:0".into(), "write");
    assert_eq!(refused, Err(Refusal::Device { device, way, asked: 1, left: 0 }));
    host.admit("n1/stock", ask("8:0", 1 << 40, 0)).unwrap();
}

#[test]
fn each_platform_has_its_mechanism() {
    let one = cpu(10);
    let program = Ask { threads: Threads::Program, ..one.clone() };
    let with =
        |platform: Platform, ask: &Ask| host(platform).admit("n1/x", ask.clone()).unwrap().cpu;
    assert!(matches!(with(ALL, &one), Mechanism::Deadline(_)));
    // A period of 10 ms is six classes of the grid below 1 ms.
    assert_eq!(with(ALL, &program), Mechanism::Fifo(34));
    assert_eq!(with(Platform { deadline: false, ..ALL }, &one), Mechanism::Fifo(34));
    assert_eq!(with(Platform::default(), &one), Mechanism::Degraded);
    assert_eq!(with(ALL, &Ask::default()), Mechanism::None);
}

#[test]
fn a_path_is_the_name_of_a_control_group() {
    let mut host = host(ALL);
    for path in ["", "plane", "n1/", "/n1", "n1/../x", "n1/a b", "n1//x", &"n/1".repeat(100)] {
        assert!(matches!(host.admit(path, Ask::default()), Err(Refusal::Path(_))), "{path}");
    }
    host.admit("n1/steadfast.manager", Ask::default()).unwrap();
}

/// After requests, changes and releases in any order, the admitted reserves never exceed the host.
#[test]
fn what_is_admitted_never_exceeds_the_host() {
    let mut random = Random::new(5);
    let (mut refused, mut admitted) = (0, 0);
    for _ in 0..200 {
        let mut host = host(ALL);
        for _ in 0..60 {
            let path = alloc::format!("n{}/{}", random.below(3), random.below(5));
            match random.below(5) {
                0 => drop(host.release(&path)),
                _ => {
                    let percent = 1 + random.below(70) as u32;
                    let ask = Ask { memory: random.below(500), ..cpu(percent) };
                    match host.admit(&path, ask) {
                        Ok(_) => admitted += 1,
                        Err(_) => refused += 1,
                    }
                }
            }
            let tasks: alloc::vec::Vec<Task> =
                host.reserves().filter_map(|(_, it)| it.ask.cpu).collect();
            assert!(global::admits(&tasks, 2, Share::percent(5)));
            let used: Share = tasks.iter().map(Task::share).sum();
            assert!(used <= Share::percent(180), "{used}");
            assert!(host.reserves().map(|(_, it)| it.ask.memory).sum::<u64>() <= 1_000);
        }
    }
    assert!(refused > 100 && admitted > 100, "{refused} refused, {admitted} admitted");
}

#[test]
fn packets_have_a_rate_at_every_interface_and_a_port_has_one_reserve() {
    let mut host = host(ALL);
    let traffic = |rate, ports: &[u16]| Ask {
        traffic: Traffic { rate, ports: ports.into() },
        ..Ask::default()
    };
    host.admit("n1/plane", traffic(300, &[7_100, 7_201])).unwrap();
    let slow = Refusal::Network { network: "eth1".into(), asked: 201, left: 200 };
    assert_eq!(host.admit("n2/plane", traffic(201, &[7_101])), Err(slow));
    assert_eq!(host.admit("n2/plane", traffic(1, &[7_201])), Err(Refusal::Port(7_201)));
    host.admit("n1/plane", traffic(500, &[7_201])).unwrap();
    for wrong in [
        traffic(1, &[]),
        traffic(0, &[1]),
        traffic(1, &[0]),
        traffic(1, &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ] {
        assert_eq!(host.admit("n3/plane", wrong), Err(Refusal::Impossible));
    }
}
