//! Callouts: redirects, gRPC checks, and what remains of a stream that has ended.

use super::*;

#[test]
fn redirects() {
    let config = config();
    let location = |value| [(Attribute::ResponseHeader("location"), value)];
    let mut stream = Stream::default();
    request(&mut stream, &config, HTTP);
    let mut first = Table::response("302", location("/b"));
    first.elapsed = Some(Duration::from_millis(500));
    let effect = line(stream.on_response_headers(&first));
    assert_eq!(effect, "callout app_health_callout_http /b 1500ms");
    stream.callout_started(7);
    let size = CalloutSize { headers: 2, ..CalloutSize::default() };
    let mut second = Table::new([
        (Attribute::CalloutHeader(":status"), "301"),
        (Attribute::CalloutHeader("location"), "https://10.0.0.5:8443/c"),
    ]);
    second.elapsed = Some(Duration::from_millis(1999));
    let effect = line(stream.on_callout_response(size, &second));
    assert_eq!(effect, "callout app_health_callout_https /c 1ms");
    assert!(!stream.awaits(7), "the new callout has no token yet");
    stream.callout_started(8);
    assert!(stream.awaits(8));
    let last = Table::new([(Attribute::CalloutHeader(":status"), "204")]);
    assert_eq!(line(stream.on_callout_response(size, &last)), "reply 204 ok");
    assert_eq!(line(stream.on_callout_response(size, &last)), "continue");

    for (elapsed, unreadable, expected) in [
        (Some(2000), None, "reply 504 timeout"),
        (None, None, "reply 530 configuration"),
        (Some(0), Some(Attribute::ResponseHeader("location")), "reply 528 redirect"),
    ] {
        let mut stream = Stream::default();
        request(&mut stream, &config, HTTP);
        let elapsed = elapsed.map(Duration::from_millis);
        let envoy = Table { elapsed, unreadable, ..Table::response("302", location("/b")) };
        assert_eq!(line(stream.on_response_headers(&envoy)), expected);
    }
}

#[test]
fn responses_to_a_grpc_check() {
    let config = config();
    let serving = Table::new([
        (Attribute::CalloutHeader("content-type"), "application/grpc"),
        (Attribute::CalloutTrailer("grpc-status"), "0"),
        (Attribute::CalloutBody(7), "\0\0\0\0\u{2}\u{8}\u{1}"),
    ]);
    let failed = CalloutSize::default();
    let late = Table { elapsed: Some(Duration::from_millis(950)), ..Table::new([]) };
    let status = Table::new([
        (Attribute::CalloutHeader("content-type"), "application/grpc"),
        (Attribute::CalloutHeader("grpc-status"), "12"),
    ]);
    let (complete, headers) =
        (CalloutSize { headers: 2, body: 7, trailers: 1 }, CalloutSize { headers: 2, ..failed });
    for (size, envoy, probe, hook) in [
        (complete, &serving, "reply 200 ok", "reply 200 ok"),
        (headers, &status, "reply 524 grpc_unimplemented", "reset grpc_unimplemented"),
        (CalloutSize { body: 1, ..headers }, &status, "reply 526 grpc_error", "reset grpc_error"),
        (failed, &late, "reply 504 timeout", "reset grpc_error"),
        (failed, &Table::new([]), "reply 526 grpc_error", "reset grpc_error"),
    ] {
        // A hook has a day.
        for (path, expected) in [(GRPC, probe), (GRPC_HOOK, hook)] {
            let mut stream = Stream::default();
            request(&mut stream, &config, path);
            stream.callout_started(1);
            assert_eq!(line(stream.on_callout_response(size, envoy)), expected, "{path}");
            assert_eq!(free_permits(&config, path), CLIENTS_PERMITS, "{path}");
        }
    }
}

#[test]
fn a_grpc_check_over_a_stale_connection_is_repeated_over_a_new_one() {
    let reuse = CONFIG.replacen('{', r#"{"reuseConnections":true,"#, 1);
    let reuse = Rc::new(Config::parse(reuse.as_bytes()).unwrap_or_else(|error| panic!("{error}")));
    let closed = |milliseconds| Table {
        elapsed: Some(Duration::from_millis(milliseconds)),
        ..Table::new([
            (Attribute::CalloutHeader("grpc-status"), "14"),
            (
                Attribute::CalloutHeader("grpc-message"),
                "upstream connect error or disconnect/reset before headers. reset reason: connection termination",
            ),
        ])
    };
    let refused = Table::new([
        (Attribute::CalloutHeader("grpc-status"), "14"),
        (
            Attribute::CalloutHeader("grpc-message"),
            "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure",
        ),
    ]);
    let size = CalloutSize { headers: 2, ..CalloutSize::default() };
    let check = "/grpc.health.v1.Health/Check";
    for (config, path, responses) in [
        (config(), GRPC, vec![(closed(10), "reply 520 closed".to_owned())]),
        (reuse.clone(), GRPC, vec![(refused, "reply 502 refused".into())]),
        (reuse.clone(), GRPC, vec![(closed(1000), "reply 504 timeout".into())]),
        (
            reuse.clone(),
            GRPC,
            vec![
                (closed(10), format!("callout app_health_grpc {check} 990ms")),
                (closed(20), "reply 520 closed".into()),
            ],
        ),
        (
            reuse.clone(),
            GRPC_HOOK,
            vec![
                (closed(10), format!("callout app_health_grpc {check} 86399990ms")),
                (closed(20), "reset closed".into()),
            ],
        ),
    ] {
        let mut stream = Stream::default();
        request(&mut stream, &config, path);
        for (token, (response, expected)) in (1..).zip(responses) {
            stream.callout_started(token);
            assert_eq!(line(stream.on_callout_response(size, &response)), expected, "{path}");
        }
        assert_eq!(free_permits(&config, path), CLIENTS_PERMITS, "the probe has ended");
    }
}

#[test]
fn orphaned_callouts_count_as_in_flight() {
    let config = config();
    let mut orphans = Orphans::default();
    for token in 1..=3 {
        let mut stream = Stream::default();
        request(&mut stream, &config, GRPC);
        stream.callout_started(token);
        orphans.add(stream, || token * SECOND);
    }
    assert_eq!(free_permits(&config, GRPC), CLIENTS_PERMITS - 3);
    orphans.expire(|| 2 * SECOND);
    assert_eq!(free_permits(&config, GRPC), CLIENTS_PERMITS - 3, "the first timeout has just passed");
    orphans.expire(|| 2 * SECOND + 1);
    assert_eq!(free_permits(&config, GRPC), CLIENTS_PERMITS - 2);
    orphans.expire(|| u64::MAX);
    assert_eq!(free_permits(&config, GRPC), CLIENTS_PERMITS);
    let mut stream = Stream::default();
    request(&mut stream, &config, HTTP);
    orphans.add(stream, || panic!("no callout"));
    orphans.expire(|| panic!("no orphan"));
    assert_eq!(free_permits(&config, HTTP), CLIENTS_PERMITS);
}
