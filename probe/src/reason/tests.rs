use std::collections::BTreeSet;

use super::Reason;

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
fn words_and_statuses_are_unique() {
    let words: BTreeSet<&str> = Reason::ALL.map(Reason::word).into();
    assert_eq!(words.len(), Reason::ALL.len());
    let failures: Vec<u16> =
        Reason::ALL.into_iter().filter(|reason| !reason.is_success()).map(Reason::status).collect();
    let statuses: BTreeSet<u16> = failures.iter().copied().collect();
    assert_eq!(statuses.len(), failures.len(), "the status identifies the failure");
    assert!(!statuses.iter().any(|status| (200..400).contains(status)), "kubelet must count it as a failure");
}

#[test]
fn kubelet_counts_few_as_a_success_and_clients_cause_few() {
    let words = |is: fn(Reason) -> bool| {
        Reason::ALL.into_iter().filter(|reason| is(*reason)).map(Reason::word).collect::<Vec<_>>()
    };
    assert_eq!(words(Reason::is_success), ["ok", "ok_redirect"]);
    assert_eq!(words(Reason::is_client_error), ["bad_request", "forbidden", "unknown_probe", "method"]);
}
