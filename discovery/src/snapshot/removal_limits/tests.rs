//! Tests of which machines of a service are preserved, as rows.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::objects::Spec;

/// The time of the snapshot.
const NOW: i64 = 1_000;

/// Builds a machine from a word: `ok`, `missing` (its stream was lost), `silent@900` (since that
/// time), `bad@900` (unhealthy since that time), `left` (it terminated). With `*` the previous
/// snapshot preserved it. With `/1` it is in the IPv6 network 1.
fn machine(number: usize, word: &str) -> Workload {
    let (word, network) = word.split_once('/').unwrap_or((word, ""));
    let network: Option<u16> = network.parse().ok();
    let source = network.map(|network| IpAddr::from([0x2001, 0xdb8, 0, network, 0, 0, 0, 1]).into());
    let (word, since) = word.trim_end_matches('*').split_once('@').unwrap_or((word, "0"));
    let since = Timestamp::from_seconds(since.trim_end_matches('*').parse().expect("seconds"));
    let presence = match word {
        "silent" => Presence::Silent(since),
        "missing" => Presence::Missing,
        _ => Presence::Reporting,
    };
    let served = matches!(word, "ok" | "missing");
    Workload {
        key: Key::new("shop", format!("m{number:02}")),
        spec: Arc::new(Spec::default()),
        served,
        preservable: matches!(word, "silent" | "bad"),
        unserved_since: (!served).then_some(since),
        presence,
        accounted_for: true,
        source,
    }
}

/// Returns one letter for each machine: `-` (not preserved), S(ilent), R(ecovering), U(nhealthy),
/// or r(emoved, but may be preserved later).
fn preserved(removal_limits: RemovalLimits, words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let machines: Vec<Workload> =
        words.iter().enumerate().map(|(number, word)| machine(number, word)).collect();
    let preserved_before = |key: &Key| {
        machines.iter().zip(&words).any(|(machine, word)| machine.key == *key && word.ends_with('*'))
    };
    let preserved =
        removal_limits.preserved(machines.iter().collect(), &preserved_before, Timestamp::from_seconds(NOW));
    let letter = |machine: &Workload| match preserved.iter().find(|(key, _)| **key == machine.key) {
        None => '-',
        Some((_, Preserved::Silent)) => 'S',
        Some((_, Preserved::Recovering)) => 'R',
        Some((_, Preserved::Unhealthy)) => 'U',
        Some((_, Preserved::Removed)) => 'r',
        Some((_, Preserved::LastEndpoint)) => 'L',
    };
    machines.iter().map(letter).collect()
}

#[test]
fn mass_silence_is_preserved() {
    let removal_limits = RemovalLimits {
        max_silent_percent: 25,
        window: Duration::from_secs(60),
        max_unhealthy_percent: None,
    };
    for (words, expected) in [
        ("ok ok ok", "---"),
        // Two machines are removed, whatever their share is.
        ("silent@1000 silent@1000", "--"),
        ("silent@1000 silent@1000 ok", "rr-"),
        ("silent@1000 silent@1000 silent@1000", "SSS"),
        // A quarter is removed, more is not.
        ("silent@1000 silent@1000 silent@1000 ok ok ok ok ok ok ok ok ok", "rrr---------"),
        ("silent@1000 silent@1000 silent@1000 ok ok ok ok ok ok ok ok", "SSS--------"),
        // The first that is silent is not removed while the others are missing.
        ("silent@1000 missing missing ok", "S---"),
        ("silent@939 missing missing ok", "r---"),
        // A chain of windows, and machines that became silent long before.
        ("silent@100 silent@900 silent@930 silent@955 silent@985", "rSSSS"),
        ("silent@100 silent@200 silent@300 silent@400", "rrrr"),
        // The clock was set back since.
        ("silent@1000 silent@4600 silent@4700", "SSS"),
        // Reports of ill health do not count.
        ("silent@1000 silent@1000 bad@1000 left ok", "rr---"),
        // The others of the set have returned.
        ("silent@1000* silent@1000* ok ok", "RR--"),
        ("silent@1000* ok", "R-"),
        ("ok* ok", "--"),
    ] {
        assert_eq!(preserved(removal_limits, words), expected, "{words}");
    }
    let off = RemovalLimits { max_silent_percent: 100, ..removal_limits };
    assert_eq!(preserved(off, "silent@1000 silent@1000 silent@1000"), "rrr");
}

#[test]
fn unhealthy_machines_over_the_limit_stay_endpoints() {
    let window = Duration::from_secs(60);
    let of = |percent| RemovalLimits { max_silent_percent: 25, window, max_unhealthy_percent: percent };
    for (percent, words, expected) in [
        (None, "bad@1 bad@2 bad@3 bad@4", "----"),
        (Some(50), "bad@1 bad@2 bad@3 bad@4", "--UU"),
        (Some(50), "bad@4 bad@3 bad@2 bad@1", "UU--"),
        (Some(50), "bad@1 bad@2 ok ok", "----"),
        (Some(0), "bad@1 ok left", "U--"),
        (Some(50), "left left left bad@1", "----"),
        (Some(100), "bad@1 bad@2", "--"),
        // Both limits.
        (Some(0), "bad@1 silent@1000 silent@1000 silent@1000", "USSS"),
    ] {
        assert_eq!(preserved(of(percent), words), expected, "{percent:?}: {words}");
    }
}

#[test]
fn machines_of_one_network_count_only_up_to_their_share() {
    let removal_limits = RemovalLimits {
        max_silent_percent: 25,
        window: Duration::from_secs(60),
        max_unhealthy_percent: None,
    };
    let check = |parts: &[(&str, usize)], expected: &[(&str, usize)]| {
        let words: Vec<&str> = parts.iter().flat_map(|(word, times)| vec![*word; *times]).collect();
        let expected: String = expected.iter().map(|(letter, times)| letter.repeat(*times)).collect();
        assert_eq!(preserved(removal_limits, &words.join(" ")), expected, "{parts:?}");
    };
    // One client with many addresses leaves.
    check(&[("silent@1000/1", 200), ("ok", 20)], &[("r", 200), ("-", 20)]);
    check(&[("silent@1000/1", 16), ("ok", 2)], &[("r", 16), ("-", 2)]);
    check(&[("silent@1000/1", 16), ("missing", 1), ("ok", 3)], &[("r", 16), ("-", 4)]);
    // It does not hide that the others are silent.
    check(&[("ok/1", 200), ("silent@1000", 20)], &[("-", 200), ("S", 20)]);
    // All machines are in one, two or four networks.
    check(&[("silent@1000/1", 16)], &[("S", 16)]);
    check(&[("silent@1000/1", 16), ("silent@1000/2", 16)], &[("S", 32)]);
    check(&[("silent@1000/1", 16), ("ok/2", 16)], &[("r", 16), ("-", 16)]);
    let rest = [("ok/3", 10), ("ok/4", 10)];
    check(&[&[("silent@1000/1", 10), ("silent@1000/2", 10)][..], &rest].concat(), &[("S", 20), ("-", 20)]);
    check(&[&[("silent@1000/1", 10), ("ok/2", 10)][..], &rest].concat(), &[("r", 10), ("-", 30)]);
}

#[test]
fn unhealthy_machines_of_one_network_do_not_use_up_the_limit() {
    let window = Duration::from_secs(60);
    let removal_limits = RemovalLimits { max_silent_percent: 25, window, max_unhealthy_percent: Some(50) };
    // Two of the four that count are removed; the second machine of the network is removed too.
    assert_eq!(preserved(removal_limits, "bad@1/1 bad@2/1 bad@3 bad@4 ok"), "---U-");
    assert_eq!(preserved(removal_limits, "bad@1 bad@2 bad@3/1 bad@4/1 ok"), "--U--");
}
