use std::time::UNIX_EPOCH;

use super::*;

const SCHEDULE: Schedule = Schedule { grace: 0.5, jitter: 0.01 };

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn issued(created: u64, not_after: u64) -> Issued {
    let text = String::new();
    Issued {
        chain: text.clone(),
        key: text.clone(),
        roots: text,
        created: at(created),
        not_after: at(not_after),
    }
}

#[test]
fn a_certificate_is_renewed_about_half_way() {
    for (random, due) in [(0.0, 151_000), (0.5, 150_000), (1.0, 149_000)] {
        let mut renewal = Renewal::new(SCHEDULE, None, at(0), random);
        assert_eq!(renewal.due(), Due::After(Duration::ZERO));
        renewal.issued(issued(100_000, 200_000), random);
        let Due::At(found) = renewal.due() else { panic!("no time") };
        let difference = found.duration_since(at(due)).unwrap_or_else(|error| error.duration());
        assert!(difference <= Duration::from_secs(10), "{random}: {found:?}");
    }
}

/// A ratio above 1 would request certificates without a pause.
#[test]
fn a_schedule_cannot_request_without_a_pause() {
    for grace in [0.0, 1.0, 7.0, -7.0] {
        let mut renewal = Renewal::new(Schedule { grace, jitter: 0.0 }, None, at(0), 0.0);
        renewal.issued(issued(100, 200), 0.0);
        let expected = if grace >= 1.0 { 101 } else { 200 };
        assert_eq!(renewal.due(), Due::At(at(expected)), "{grace}");
    }
}

#[test]
fn a_failed_renewal_keeps_a_valid_certificate() {
    let mut renewal = Renewal::new(SCHEDULE, Some(issued(100, 200)), at(120), 0.5);
    assert_eq!(renewal.due(), Due::After(Duration::from_secs(5)));
    let mut delays = Vec::new();
    for _ in 0..12 {
        renewal.failed(1.0);
        assert!(renewal.certificate(at(199)) == Some(&issued(100, 200)));
        let Due::After(delay) = renewal.due() else { panic!("no delay") };
        delays.push(delay.as_millis());
    }
    assert_eq!(delays[..5], [100, 200, 400, 800, 1_600]);
    assert_eq!(delays[9..], [30_000, 30_000, 30_000]);
    assert!(renewal.certificate(at(200)).is_none());
    renewal.issued(issued(200, 300), 0.5);
    assert!(renewal.certificate(at(200)) == Some(&issued(200, 300)));
    renewal.failed(1.0);
    assert_eq!(renewal.due(), Due::After(Duration::from_millis(100)));
}

#[test]
fn an_expired_certificate_of_an_earlier_process_is_not_used() {
    let renewal = Renewal::new(SCHEDULE, Some(issued(100, 200)), at(200), 0.5);
    assert!(renewal.certificate(at(200)).is_none());
    assert_eq!(renewal.due(), Due::After(Duration::ZERO));
}

#[test]
fn variables_are_read_as_in_istio() {
    let read = |grace, jitter| {
        Schedule::from_variables(|name| if name.ends_with("JITTER") { jitter } else { grace })
    };
    assert_eq!(read(None, None), SCHEDULE);
    assert_eq!(read(Some("0.25"), Some("0")), Schedule { grace: 0.25, jitter: 0.0 });
    assert_eq!(read(Some("half"), Some("NaN")), SCHEDULE);
}
