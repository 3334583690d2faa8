use rcgen::{CertificateParams, KeyPair, SanType};

use super::*;

fn certificate(uris: &[&str]) -> Vec<u8> {
    let mut params = CertificateParams::new(vec!["vm-7".to_owned()]).expect("names");
    params.not_after = rcgen::date_time_ymd(2031, 2, 3);
    params.subject_alt_names.extend(uris.iter().map(|uri| SanType::URI((*uri).try_into().expect("ASCII"))));
    let key = KeyPair::generate().expect("a key");
    params.self_signed(&key).expect("a certificate").der().to_vec()
}

/// Checks that the URIs give this namespace and service account, or an error that contains this
/// text.
fn check(uris: &[&str], expected: Result<(&str, &str), &str>) {
    let domains = ["cluster.local".to_owned(), "old.example".to_owned()];
    let found = parse_certificate(&certificate(uris), &domains);
    match expected {
        Ok((namespace, service_account)) => {
            let certified = found.expect("an identity");
            let names = (certified.identity.namespace.as_str(), certified.identity.service_account.as_str());
            assert_eq!(names, (namespace, service_account));
            assert_eq!(certified.not_after, 1_927_843_200);
        }
        Err(text) => {
            let error = found.expect_err(text).to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}

#[test]
fn identity_requires_one_uri_of_a_known_trust_domain() {
    check(&["spiffe://cluster.local/ns/shop/sa/payments"], Ok(("shop", "payments")));
    check(&["spiffe://old.example/ns/a/sa/b"], Ok(("a", "b")));
    check(&[], Err("found 0"));
    check(&["spiffe://cluster.local/ns/a/sa/b", "spiffe://cluster.local/ns/a/sa/c"], Err("found 2"));
    check(&["spiffe://elsewhere/ns/a/sa/b"], Err("\"elsewhere\" is not one of --trust-domain"));
    for wrong in [
        "https://cluster.local/ns/a/sa/b",
        "spiffe://cluster.local/ns/a/sa",
        "spiffe://cluster.local/ns//sa/b",
        "spiffe://cluster.local/ns/a/sa/b/c",
        "spiffe://cluster.local/sa/a/ns/b",
        "spiffe://cluster.local/ns/A/sa/b",
        "SPIFFE://cluster.local/ns/a/sa/b",
    ] {
        check(&[wrong], Err("must be spiffe://"));
    }
    assert_eq!(parse_certificate(b"no certificate", &[]), Err(IdentityError::Unreadable));
}
