use super::*;

fn peer(last: u8) -> Peer {
    let identity = Identity { namespace: "shop".to_owned(), service_account: "payments".to_owned() };
    (identity, IpAddr::from([10, 0, 0, last]))
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
