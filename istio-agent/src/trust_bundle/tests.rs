use bytes::BytesMut;
use xds::{put_bytes, put_integer};

use super::*;

fn config(texts: &[&str]) -> Bytes {
    let mut message = BytesMut::new();
    // Other fields are skipped.
    put_bytes(&mut message, 1, b"./etc/istio/proxy");
    put_integer(&mut message, 27, 15020);
    for text in texts {
        put_bytes(&mut message, CERTIFICATES, text.as_bytes());
    }
    message.freeze()
}

fn certificate() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::new(["a".to_owned()]).unwrap().self_signed(&key).unwrap().pem()
}

#[test]
fn certificates_are_put_in_use() {
    let (own, bundle) = subscribe();
    assert!(bundle.borrow().is_none());
    let (one, other) = (certificate(), certificate());
    (own.accept)(&config(&[&one, &format!("\n{other}{one}")])).unwrap();
    assert_eq!(pem::certificates(bundle.borrow().as_ref().unwrap()).count(), 3);
    // A bundle without a certificate changes nothing.
    assert_eq!(
        (own.accept)(&config(&[&one, "nothing"])).unwrap_err(),
        "caCertificatesPem: a text without a certificate"
    );
    (own.accept)(&Bytes::from_static(&[0xff])).unwrap_err();
    assert_eq!(pem::certificates(bundle.borrow().as_ref().unwrap()).count(), 3);
    (own.accept)(&config(&[])).unwrap();
    assert_eq!(bundle.borrow().as_deref().map(String::as_str), Some(""));
}
