use super::*;

fn peer(last: u8) -> Peer {
    let identity = Identity { namespace: "shop".to_owned(), service_account: "payments".to_owned() };
    (identity, IpAddr::from([10, 0, 0, last]))
}

#[test]
fn bucket_allows_its_burst_then_its_rate() {
    let mut bucket = TokenBucket::new(2.0, 3.0);
    let mut take = |milliseconds| bucket.take(Duration::from_millis(milliseconds));
    for _ in 0..3 {
        assert_eq!(take(0), Ok(()));
    }
    assert_eq!(take(0), Err(Duration::from_millis(500)));
    assert_eq!(take(500), Ok(()));
    assert_eq!(take(400), Err(Duration::from_millis(600)), "a clock that goes backwards adds no tokens");
    assert_eq!(take(60_000), Ok(()));
}

#[test]
fn streams_are_limited_per_identity_and_address() {
    let mut admission = Admission::default();
    let enter =
        |admission: &mut Admission, last, seconds| admission.admit(&peer(last), Duration::from_secs(seconds));
    for _ in 0..5 {
        assert_eq!(enter(&mut admission, 1, 0), Ok(()));
    }
    assert_eq!(enter(&mut admission, 1, 0), Err(AdmissionError::Rate));
    assert_eq!(enter(&mut admission, 2, 0), Ok(()));
    for second in 1..=11 {
        assert_eq!(enter(&mut admission, 1, second), Ok(()));
    }
    assert_eq!(enter(&mut admission, 1, 20), Err(AdmissionError::Streams));
    admission.release(&peer(1));
    assert_eq!(enter(&mut admission, 1, 20), Ok(()));
}

#[test]
fn idle_peers_are_removed() {
    let mut admission = Admission::default();
    for number in 0..5000_u32 {
        let now = Duration::from_millis(number.into());
        let peer = (peer(0).0, IpAddr::from(number.to_be_bytes()));
        admission.admit(&peer, now).expect("a place");
        admission.release(&peer);
    }
    assert!(admission.peers.len() < 2500, "{}", admission.peers.len());
}
