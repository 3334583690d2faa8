use super::*;

fn peer(last: u8) -> Peer {
    let identity = Identity { namespace: "shop".to_owned(), service_account: "payments".to_owned() };
    (identity, IpAddr::from([10, 0, 0, last]))
}

#[test]
fn streams_are_limited_per_identity_and_address() {
    let mut admission = Admission::new(16);
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
fn streams_of_one_network_are_limited_whatever_their_addresses_are() {
    let identity = || Identity { namespace: "shop".to_owned(), service_account: "payments".to_owned() };
    let of_network =
        |network: u16, host: u16| (identity(), IpAddr::from([0x2001, 0xdb8, 0, network, 0, 0, 0, host]));
    let mut admission = Admission::new(16);
    let admitted = (0..200).filter(|host| admission.admit(&of_network(1, *host), Duration::ZERO).is_ok());
    assert_eq!(admitted.count(), 64);
    assert_eq!(admission.admit(&of_network(1, 999), Duration::from_secs(60)), Err(AdmissionError::Source));
    assert_eq!(admission.admit(&of_network(2, 0), Duration::ZERO), Ok(()));
    admission.release(&of_network(1, 0));
    assert_eq!(admission.admit(&of_network(1, 999), Duration::from_secs(60)), Ok(()));
}
