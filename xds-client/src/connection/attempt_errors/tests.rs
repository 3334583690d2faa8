use super::*;

fn address(last: u8) -> Option<SocketAddr> {
    Some(SocketAddr::from(([10, 0, 0, last], 15012)))
}

#[test]
fn every_address_is_in_the_line_whatever_the_order() {
    let mut errors = vec![
        (Stage::Lookup, "b:1", None, "no such host"),
        (Stage::Connect, "a:1", address(2), "refused"),
        (Stage::Handshake, "a:1", address(3), "TLS handshake: certificate expired"),
        (Stage::Connect, "a:1", address(1), "refused"),
        (Stage::Connect, "a:1", address(4), "timed out"),
    ];
    for _ in 0..errors.len() {
        errors.rotate_left(1);
        let mut all = AttemptErrors::default();
        for (stage, server, address, error) in &errors {
            all.add(*stage, server, *address, (*error).to_owned());
        }
        assert_eq!(
            all.line(),
            "a:1 (10.0.0.3:15012): TLS handshake: certificate expired; a:1 (10.0.0.1:15012, 10.0.0.2:15012): refused; \
             a:1 (10.0.0.4:15012): timed out; b:1: no such host"
        );
    }
}

#[test]
fn the_line_is_bounded() {
    assert_eq!(AttemptErrors::default().line(), "no address found");
    let mut all = AttemptErrors::default();
    for last in 0..=200 {
        all.add(Stage::Connect, "a:1", address(last), "refused".to_owned());
        all.add(Stage::Connect, &format!("s{last}:1"), address(last), "refused".to_owned());
    }
    all.add(Stage::Handshake, "z:1", address(250), "expired".to_owned());
    let line = all.line();
    assert!(line.starts_with("z:1 (10.0.0.250:15012): expired; a:1 (10.0.0.0:15012, "), "{line}");
    assert!(line.contains("10.0.0.7:15012, and 193 more): refused; s0:1") && line.len() < 1000, "{line}");
    assert!(line.ends_with("; and 195 more"), "{line}");
}
