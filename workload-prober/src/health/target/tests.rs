use super::*;

fn rules(instance_ip: &str, capture: bool, allow_remote: bool) -> TargetRules {
    TargetRules { instance_ip: instance_ip.parse().unwrap(), capture, allow_remote }
}

#[test]
fn permitted_targets_and_source_addresses() {
    let own: Vec<SocketAddr> = ["127.0.0.1:0", "10.0.0.7:0", "[fd00::7]:0", "[fe80::7%3]:0", "[::1]:0"]
        .map(|address| address.parse().unwrap())
        .to_vec();
    for (capture, ip, address, source) in [
        (false, "10.0.0.7", "10.0.0.7:80", None),
        (true, "10.0.0.7", "10.0.0.7:80", Some("127.0.0.6")),
        (true, "fd00::7", "[fd00::7]:80", Some("::6")),
        (true, "fe80::7", "[fe80::7%3]:80", Some("::6")),
        (true, "127.0.0.1", "127.0.0.1:80", None),
        (true, "127.9.9.9", "127.9.9.9:80", None),
        (true, "::1", "[::1]:80", None),
        (true, "0.0.0.0", "127.0.0.1:80", None),
        (true, "::", "[::1]:80", None),
        (true, "::ffff:10.0.0.7", "10.0.0.7:80", Some("127.0.0.6")),
    ] {
        let found = permitted(&rules("10.0.0.7", capture, false), ip.parse().unwrap(), 80, &own);
        let expected = Target {
            address: address.parse().unwrap(),
            source: source.map(|source| source.parse().unwrap()),
        };
        assert_eq!(found, Some(expected), "{ip}");
    }
    let other = "10.0.0.8".parse().unwrap();
    assert_eq!(permitted(&rules("10.0.0.7", true, false), other, 80, &own), None);
    let remote = permitted(&rules("10.0.0.7", true, true), other, 80, &own);
    assert_eq!(
        remote,
        Some(Target { address: "10.0.0.8:80".parse().unwrap(), source: None }),
        "no source address"
    );
}

#[tokio::test]
async fn other_machines_are_rejected() {
    let port = NonZeroU16::new(80).unwrap();
    for (instance_ip, host, text) in [
        ("192.0.2.1", None, "192.0.2.1, which is not an address"),
        ("127.0.0.1", Some("192.0.2.1"), "192.0.2.1, which is not an address"),
        ("127.0.0.1", Some("2001:db8::1"), "2001:db8::1, which is not an address"),
    ] {
        let error =
            TargetResolver::new(rules(instance_ip, false, false)).resolve(host, port).await.unwrap_err();
        assert_eq!(error.reason(), HealthReason::TargetNotLocal);
        assert!(error.text().starts_with(text), "{}", error.text());
    }
    let found =
        TargetResolver::new(rules("192.0.2.1", false, false)).resolve(Some("LocalHost"), port).await.unwrap();
    let addresses = found.iter().map(|target| target.address.to_string()).collect::<Vec<_>>();
    assert_eq!(addresses, ["127.0.0.1:80", "[::1]:80"]);
}

#[tokio::test]
async fn one_reachable_target_is_enough() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = Target { address: listener.local_addr().unwrap(), source: None };
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        Target { address: listener.local_addr().unwrap(), source: None }
    };
    assert!(connect(&[closed, open]).await.is_ok());
    let error = connect(&[closed]).await.unwrap_err();
    assert_eq!(error.reason(), HealthReason::ConnectionRefused);
    assert_eq!(error.text(), format!("{}: connection refused", closed.address));
}

#[test]
fn a_missing_source_address_is_reported() {
    let error = bind_error(PROBE_SOURCE6.into(), &io::ErrorKind::AddrNotAvailable.into());
    assert_eq!(error.reason(), HealthReason::CannotRun);
    assert!(error.text().ends_with("ip -6 address add ::6/128 dev lo"), "{}", error.text());
}

#[tokio::test]
async fn one_lookup_at_a_time() {
    let targets = TargetResolver::new(rules("127.0.0.1", false, true));
    let _held = targets.lookups.clone().try_acquire_owned().unwrap();
    let error = targets.resolve(Some("app.example"), NonZeroU16::MIN).await.unwrap_err();
    assert_eq!(error.text(), "cannot look up app.example: the previous DNS lookup has not finished");
}

#[tokio::test]
async fn the_first_error_is_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    // As with ::1 on a machine without IPv6, the source address cannot be bound.
    let other =
        Target { address: "127.0.0.1:80".parse().unwrap(), source: Some("192.0.2.1".parse().unwrap()) };
    let error = check_tcp(&[Target { address, source: None }, other]).await.unwrap_err();
    assert_eq!(error.text(), format!("{address}: connection refused"));
}
