use probe::Reason;
use proptest::prelude::*;

use super::{from_code_details, from_local_reply};

const RESET: &str = "upstream_reset_before_response_started";

#[test]
fn reasons_from_response_code_details() {
    for (details, failure, expected) in [
        ("via_upstream", "", None),
        ("via_upstream", "delayed_connect_error:_Connection_refused", None),
        ("response_timeout", "", Some(Reason::Timeout)),
        ("upstream_per_try_timeout", "", Some(Reason::Timeout)),
        ("upstream_response_timeout", "", Some(Reason::Timeout)),
        ("stream_idle_timeout", "", Some(Reason::Timeout)),
        ("max_duration_timeout", "", Some(Reason::Timeout)),
        ("no_healthy_upstream", "", Some(Reason::Configuration)),
        ("cluster_not_found", "", Some(Reason::Configuration)),
        ("route_not_found", "", Some(Reason::Configuration)),
        ("direct_response", "", Some(Reason::Configuration)),
        ("maintenance_mode", "", Some(Reason::Configuration)),
        ("wasm_fail_stream", "", Some(Reason::Configuration)),
        ("", "", Some(Reason::Configuration)),
        ("via_upstream2", "", Some(Reason::Configuration)),
        ("http1.codec_error", "", Some(Reason::Protocol)),
        ("http2.violation.of.messaging.rule", "", Some(Reason::Protocol)),
        ("response_headers_too_large", "", Some(Reason::Protocol)),
        ("upstream_cluster_overflow", "", Some(Reason::Overloaded)),
    ] {
        assert_eq!(from_code_details(details.as_bytes(), failure.as_bytes()), expected, "{details}");
    }
}

#[test]
fn reasons_of_reset_routes() {
    for (reset, failure, expected) in [
        ("remote_connection_failure", "delayed_connect_error:_Connection_refused", Reason::Refused),
        ("remote_connection_failure|delayed_connect_error:_Connection_refused", "", Reason::Refused),
        ("remote_connection_failure", "delayed connect error: 111", Reason::Unreachable),
        ("remote_connection_failure", "delayed_connect_error:_Connection_timed_out", Reason::Timeout),
        ("remote_connection_failure", "immediate_connect_error:_Network_is_unreachable", Reason::Unreachable),
        (
            "remote_connection_failure|immediate_connect_error:_Cannot_assign_requested_address",
            "",
            Reason::Unreachable,
        ),
        ("remote_connection_failure", "immediate_connect_error:_Invalid_argument", Reason::Unreachable),
        ("remote_connection_failure", "delayed_connect_error:_No_route_to_host", Reason::Unreachable),
        ("local_connection_failure|failed_to_bind_to_[::6]:0", "", Reason::Unreachable),
        ("remote_connection_failure|delayed_connect_error:_Connection_reset_by_peer", "", Reason::Closed),
        ("remote_connection_failure", "", Reason::Unreachable),
        (
            "remote_connection_failure",
            "TLS_error:|268435703:SSL_routines:OPENSSL_internal:WRONG_VERSION_NUMBER",
            Reason::Tls,
        ),
        ("remote_connection_failure|TLS_error:_268436496:SSL_routines", "", Reason::Tls),
        ("connection_timeout", "", Reason::Timeout),
        ("connection_termination", "", Reason::Closed),
        ("remote_reset", "", Reason::Closed),
        ("local_reset", "", Reason::Closed),
        ("remote_refused_stream_reset", "", Reason::Closed),
        ("local_refused_stream_reset", "", Reason::Closed),
        // An unknown reset reason does not prove that a connection was established.
        ("something_new", "", Reason::Configuration),
        ("", "", Reason::Configuration),
        ("protocol_error", "", Reason::Protocol),
        ("overflow", "", Reason::Overloaded),
    ] {
        let details = format!("{RESET}{{{reset}}}");
        assert_eq!(
            from_code_details(details.as_bytes(), failure.as_bytes()),
            Some(expected),
            "{details} {failure}"
        );
    }
}

#[test]
fn reasons_from_callout_bodies() {
    const CONNECT: &str = "upstream connect error or disconnect/reset before headers. reset reason: ";
    for (text, expected) in [
        ("upstream request timeout", Some(Reason::Timeout)),
        ("no healthy upstream", Some(Reason::Configuration)),
        ("no cluster", Some(Reason::Configuration)),
        (&format!("{CONNECT}remote connection failure"), Some(Reason::Refused)),
        (&format!("{CONNECT}local connection failure"), Some(Reason::Refused)),
        (
            &format!(
                "{CONNECT}remote connection failure, transport failure reason: TLS_error:|268435703:SSL routines"
            ),
            Some(Reason::Tls),
        ),
        (
            &format!(
                "{CONNECT}remote connection failure, transport failure reason: delayed connect error: Connection refused"
            ),
            Some(Reason::Refused),
        ),
        (&format!("{CONNECT}connection timeout"), Some(Reason::Timeout)),
        (&format!("{CONNECT}connection termination"), Some(Reason::Closed)),
        (&format!("{CONNECT}remote reset"), Some(Reason::Closed)),
        (&format!("{CONNECT}remote refused stream reset"), Some(Reason::Closed)),
        (&format!("{CONNECT}protocol error"), Some(Reason::Protocol)),
        (&format!("{CONNECT}overflow"), Some(Reason::Overloaded)),
        (&format!("{CONNECT}something new"), Some(Reason::Configuration)),
        (CONNECT, Some(Reason::Configuration)),
        ("upstream connect error or disconnect/reset before headers", None),
        ("reset reason: overflow", None),
        ("Service Unavailable", None),
        ("the upstream request timeout", None),
        ("", None),
    ] {
        assert_eq!(from_local_reply(text.as_bytes()), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn arbitrary_details_have_a_failure_reason(
        details in prop::collection::vec(any::<u8>(), 0..60),
        failure in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let reset = [RESET.as_bytes(), b"{", &details].concat();
        let reasons = [from_code_details(&details, &failure), from_code_details(&reset, &failure), from_local_reply(&details)];
        prop_assert!(!reasons.into_iter().flatten().any(Reason::is_success));
    }
}

#[test]
fn resets_after_an_informational_answer() {
    let details = b"upstream_reset_after_response_started{connection_termination}";
    assert_eq!(super::from_code_details(details, b""), Some(Reason::Closed));
}
