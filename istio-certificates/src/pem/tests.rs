use rcgen::{CertificateParams, KeyPair};

use super::*;

fn issue() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["a.example".to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

#[test]
fn roots_are_sorted_and_each_once() {
    let (one, _) = issue();
    let (other, _) = issue();
    let broken = format!("{BEGIN}\nAAAA\n{END}\n");
    let mut sorted = [one.trim(), other.trim()];
    sorted.sort_unstable();
    let expected = format!("{}\n{}\n", sorted[0], sorted[1]);
    let bundle = format!("# the old one\n{one}\n\n{broken}{other}");
    assert_eq!(roots([bundle.as_str(), one.as_str()]), expected);
    assert_eq!(roots([other.as_str(), one.as_str()]), expected);
    assert_eq!(roots([broken.as_str(), ""]), "");
    assert_eq!(roots([BEGIN, END]), "");
}

#[test]
fn a_key_must_belong_to_its_certificate() {
    let (one, own) = issue();
    let (_, other) = issue();
    assert_eq!(check_pair(&one, &own), Ok(()));
    assert!(matches!(check_pair(&one, &other), Err(Unusable::Rejected(_))));
    assert_eq!(check_pair("", &own), Err(Unusable::NoCertificate));
    assert_eq!(check_pair(&one, &one), Err(Unusable::NoKey));
}
