use super::*;

#[test]
fn names_are_parsed_as_in_istio() {
    let pair = |certificate: &str, key: &str| SecretName::FileCertificate {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    for (name, expected) in [
        ("default", Some(SecretName::Workload)),
        ("ROOTCA", Some(SecretName::MeshRoots)),
        ("file-root:system", Some(SecretName::SystemRoots)),
        ("file-root:/etc/ca.pem", Some(SecretName::FileRoots("/etc/ca.pem".to_owned()))),
        ("file-root:", None),
        ("file-root:a~b", None),
        ("file-cert:/c.pem~/k.pem", Some(pair("/c.pem", "/k.pem"))),
        ("file-cert:/c.pem", None),
        ("file-cert:/c.pem~", None),
        ("file-cert:~/k.pem", None),
        ("file-cert:a~b~c", None),
        ("kubernetes://gateway", None),
        ("", None),
    ] {
        assert_eq!(SecretName::parse(name), expected, "{name}");
    }
}
