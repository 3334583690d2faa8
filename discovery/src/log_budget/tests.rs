use std::net::IpAddr;

use super::*;

#[test]
fn one_network_causes_few_lines_in_a_minute() {
    let mut budget = LogBudget::default();
    let of_network =
        |network: u16, host: u16| IpAddr::from([0x2001, 0xdb8, 0, network, 0, 0, 0, host]).into();
    let logged = (0..60_000).filter(|millisecond| {
        let host = u16::try_from(*millisecond).expect("few");
        budget.take(of_network(1, host), Duration::from_millis(*millisecond)).is_some()
    });
    assert!((16..=32).contains(&logged.count()));
    let now = Duration::from_secs(60);
    assert_eq!(budget.take(of_network(2, 1), now), Some(0));
    assert!(budget.take(of_network(1, 1), now + INTERVAL).is_some_and(|suppressed| suppressed > 1_000));
}
