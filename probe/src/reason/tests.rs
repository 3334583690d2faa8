use std::collections::BTreeSet;

use super::Reason;

/// The table in `docs/answers.md`: word, status, text, and whether kubelet treats the probe as
/// successful.
const TABLE: [(&str, u16, &str, bool); 22] = [
    ("ok", 200, "", true),
    ("ok_redirect", 200, "", true),
    ("application", 500, "", false),
    ("bad_request", 400, "a probe must not have a body", false),
    ("forbidden", 403, "the client may not call hooks", false),
    ("unknown_probe", 404, "no such probe is declared", false),
    ("method", 405, "only GET is allowed", false),
    ("busy", 429, "too many of these probes in flight", false),
    ("refused", 502, "nothing listens on the declared port", false),
    ("overloaded", 503, "too many probe connections", false),
    ("timeout", 504, "no response within the timeout", false),
    ("closed", 520, "connection closed without a response", false),
    ("grpc_not_serving", 521, "the service is not serving", false),
    ("grpc_unknown", 522, "the service's health is unknown", false),
    ("grpc_service_unknown", 523, "the server does not know this service", false),
    ("grpc_unimplemented", 524, "the server has no health service", false),
    ("tls", 525, "TLS handshake failed", false),
    ("grpc_error", 526, "not a valid health response", false),
    ("protocol", 527, "not a valid HTTP response", false),
    ("redirect", 528, "the redirect cannot be followed", false),
    ("unreachable", 529, "the pod's address cannot be reached", false),
    ("configuration", 530, "the proxy is not set up for this probe", false),
];

#[test]
fn reasons_match_the_documented_table() {
    let rows = Reason::ALL.map(|reason| (reason.word(), reason.status(), reason.text(), reason.is_success()));
    assert_eq!(rows, TABLE);
}

#[test]
fn bodies_contain_word_and_text_or_nothing() {
    for (reason, body) in [
        (Reason::Ok, ""),
        (Reason::OkRedirect, ""),
        (Reason::Application, ""),
        (Reason::Refused, "refused: nothing listens on the declared port"),
        (Reason::Configuration, "configuration: the proxy is not set up for this probe"),
    ] {
        assert_eq!(reason.body(), body);
    }
}

#[test]
fn words_are_unique() {
    assert_eq!(Reason::ALL.map(Reason::word).into_iter().collect::<BTreeSet<_>>().len(), TABLE.len());
    let failures = Reason::ALL.into_iter().filter(|reason| !reason.is_success());
    let statuses: BTreeSet<u16> = failures.map(Reason::status).collect();
    assert_eq!(statuses.len(), TABLE.len() - 2, "the status identifies the failure");
    assert!(!statuses.iter().any(|status| (200..400).contains(status)), "kubelet must count it as a failure");
}
