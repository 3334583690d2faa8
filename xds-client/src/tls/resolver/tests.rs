use std::fs;
use std::path::PathBuf;

use rcgen::date_time_ymd;

use super::*;

fn issue(end: i32) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(["a".to_owned()]).unwrap();
    params.not_after = date_time_ymd(end, 1, 1);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// The connection is authenticated by a token whenever the certificate cannot.
#[test]
fn only_a_valid_certificate_is_presented() {
    let folder = std::env::temp_dir().join(format!("xds-client-resolver-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| -> PathBuf { folder.join(name) };
    let files = ClientFiles { cert: file("cert-chain.pem"), key: file("key.pem"), is_optional: true };
    let resolver = FileResolver(files.clone());
    let is_presented = || resolver.resolve(&[], &[]).is_some();
    assert!(resolver.has_certs() && !is_presented());
    let (valid, expired) = (issue(4000), issue(2001));
    for (chain, key, expected) in [
        (&valid.0, &valid.1, true),
        (&expired.0, &expired.1, false),
        (&valid.0, &expired.1, false),
        (&"nothing".to_owned(), &valid.1, false),
        (&valid.0, &valid.1, true),
    ] {
        fs::write(&files.cert, chain).unwrap();
        fs::write(&files.key, key).unwrap();
        assert_eq!(is_presented(), expected);
    }
    let (_, certificate) = x509_parser::pem::parse_x509_pem(valid.0.as_bytes()).unwrap();
    let (_, parsed) = X509Certificate::from_der(&certificate.contents).unwrap();
    for (issuers, expected) in
        [(&[b"another".as_slice(), parsed.issuer().as_raw()][..], true), (&[b"another"], false)]
    {
        assert_eq!(resolver.resolve(issuers, &[]).is_some(), expected);
    }
    fs::remove_file(&files.key).unwrap();
    assert!(!is_presented());
}
