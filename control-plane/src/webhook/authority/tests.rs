use super::*;

const DAY: i64 = 86_400;

fn at(days: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000 + days * DAY).expect("a date")
}

#[test]
fn a_new_ca_is_published_before_it_signs() {
    let first = Authority::new(at(0)).expect("an authority");
    assert_eq!(first.bundle(), first.current.certificate);
    assert_eq!(
        first.advance(at(242), true).expect("a step"),
        None,
        "two thirds of the validity have not passed"
    );
    let second = first.advance(at(244), true).expect("a step").expect("another CA");
    let next = second.next.clone().expect("the next one");
    assert_eq!(second.current, first.current);
    assert_eq!(second.bundle(), first.bundle() + &next.certificate);
    assert_eq!(second.advance(at(244) + Duration::minutes(9), true).expect("a step"), None);
    assert_eq!(second.advance(at(245), false).expect("a step"), None, "the API server does not have it yet");
    let third = second.advance(at(244) + Duration::minutes(10), true).expect("a step").expect("it signs");
    assert_eq!((&third.current, &third.next), (&next, &None));
    assert!(
        third.bundle().contains(&first.current.certificate),
        "leaves of the previous CA are still served"
    );
    assert_eq!(third.advance(at(273), true).expect("a step"), None);
    let fourth = third.advance(at(275), true).expect("a step").expect("the previous one has gone");
    assert_eq!(fourth.bundle(), next.certificate);
}

#[test]
fn leaf_validity_and_renewal() {
    let authority = Authority::new(at(0)).expect("an authority");
    let leaf =
        authority.leaf(&["app-health-webhook.app-health-system.svc".to_owned()], at(1)).expect("a leaf");
    assert_eq!(not_after(leaf.certificate.as_bytes()), Some(at(31).unix_timestamp()));
    let late = authority.leaf(&["x".to_owned()], at(360)).expect("a leaf");
    assert_eq!(
        not_after(late.certificate.as_bytes()),
        Some(at(365).unix_timestamp()),
        "not longer than its CA"
    );
    assert!(
        !is_due(leaf.created_at, LEAF_VALIDITY, at(20)) && is_due(leaf.created_at, LEAF_VALIDITY, at(21))
    );
}

/// After a year without the API server, the expired CA signed for ten minutes what it then rejected.
#[test]
fn an_expired_ca_signs_nothing_and_is_replaced_at_once() {
    let names = ["x".to_owned()];
    let first = Authority::new(at(0)).expect("an authority");
    assert!(first.leaf(&names, at(365) - Duration::seconds(1)).is_ok());
    first.leaf(&names, at(365)).expect_err("it has expired");
    let second = first.advance(at(365), false).expect("a step").expect("another CA");
    assert!(second.current != first.current && second.bundle() == second.current.certificate);
    let leaf = second.leaf(&names, at(365)).expect("a leaf");
    assert_eq!(not_after(leaf.certificate.as_bytes()), Some(at(395).unix_timestamp()));

    let with_next = first.advance(at(364), false).expect("a step").expect("a next CA");
    let next = with_next.next.clone().expect("a next CA");
    let third = with_next.advance(at(366), false).expect("a step").expect("a step");
    assert_eq!(third, Authority { current: next.clone(), next: None, previous: None });
    let late = with_next.advance(at(800), false).expect("a step").expect("a step");
    assert!(late.current != next, "that one has expired, too");
}

#[test]
fn certificates_are_valid_for_clocks_that_are_an_hour_behind() {
    let authority = Authority::new(at(0)).expect("an authority");
    let leaf = authority.leaf(&["x".to_owned()], at(1)).expect("a leaf");
    for (pair, from) in [(&authority.current, at(0)), (&leaf, at(1))] {
        let (_, pem) = x509_parser::pem::parse_x509_pem(pair.certificate.as_bytes()).expect("PEM");
        let validity = pem.parse_x509().expect("a certificate").validity().clone();
        assert_eq!(validity.not_before.timestamp(), (from - Duration::hours(1)).unix_timestamp());
    }
}

#[test]
fn the_authority_round_trips_as_json() {
    let authority = Authority::new(at(0))
        .expect("an authority")
        .advance(at(300), true)
        .expect("a step")
        .expect("a next one");
    let text = serde_json::to_string(&authority).expect("JSON");
    assert_eq!(serde_json::from_str::<Authority>(&text).expect("an authority"), authority);
}

#[test]
fn each_ca_has_its_own_name() {
    let name = |authority: &Authority| {
        let (_, pem) =
            x509_parser::pem::parse_x509_pem(authority.current.certificate.as_bytes()).expect("PEM");
        pem.parse_x509().expect("a certificate").subject().to_string()
    };
    let [first, second] = [0, 1].map(|day| name(&Authority::new(at(day)).expect("an authority")));
    assert!(first.contains("app-health webhook") && first != second, "{first} {second}");
}
