use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};

use super::*;

struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn ca() -> Ca {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    Ca { pem, issuer: Issuer::new(params, key) }
}

/// A chain as istiod returns it, the key, and another key.
fn answer() -> (Vec<String>, String, String) {
    let ca = ca();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
    params.not_after = date_time_ymd(2031, 1, 1);
    let leaf = params.signed_by(&key, &ca.issuer).unwrap().pem();
    (vec![leaf, ca.pem], key.serialize_pem(), KeyPair::generate().unwrap().serialize_pem())
}

/// The start of the year 2031.
const NOT_AFTER: u64 = 1_924_992_000;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn a_chain_with_its_key_is_used() {
    let (chain, key, _) = answer();
    let issued = Issued::new(&chain, key.clone(), at(NOT_AFTER - 100)).unwrap();
    assert_eq!(issued.not_after, at(NOT_AFTER));
    assert_eq!(issued.lifetime(), Duration::from_secs(100));
    assert_eq!(issued.chain, format!("{}\n{}\n", chain[0].trim(), chain[1].trim()));
    assert_eq!((issued.key.as_str(), issued.roots.as_str()), (key.as_str(), chain[1].as_str()));
    assert!(issued.is_valid(at(NOT_AFTER - 1)));
    assert!(!issued.is_valid(at(NOT_AFTER)));
}

#[test]
fn what_cannot_be_used_is_refused() {
    let (chain, key, other) = answer();
    let refused = |chain: &[String], key: &str, now| Issued::new(chain, key.to_owned(), at(now)).err();
    assert!(matches!(refused(&chain, &other, 0), Some(Refused::Unusable(Unusable::Rejected(_)))));
    assert_eq!(refused(&[], &key, 0), Some(Refused::Unusable(Unusable::NoCertificate)));
    assert_eq!(refused(&chain, &key, NOT_AFTER), Some(Refused::Expired));
    let broken = [chain[0].clone(), "no certificate".to_owned()];
    assert_eq!(refused(&broken, &key, 0), Some(Refused::NoRoots));
    let [leaf, root] = chain.as_slice() else { panic!("two elements") };
    let between = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----".to_owned();
    assert_eq!(refused(&[leaf.clone(), between, root.clone()], &key, 0), Some(Refused::Unparsable));
    assert_eq!(refused(&[leaf.clone(), String::new(), root.clone()], &key, 0), None);
}
