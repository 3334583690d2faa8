use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer as _;

use super::*;

fn identity(trust_domain: &str) -> WorkloadIdentity {
    WorkloadIdentity {
        trust_domain: trust_domain.to_owned(),
        namespace: "shop".to_owned(),
        service_account: "web".to_owned(),
    }
}

/// Istio's registration authority compares the subject and the names, and refuses other extensions.
#[test]
fn requests_contain_an_empty_organization_and_one_critical_uri() {
    for (kind, bits) in [(KeyKind::Rsa2048, 2048), (KeyKind::EcdsaP256, 256), (KeyKind::EcdsaP384, 384)] {
        let made = SigningRequest::new(&identity("cluster.local"), kind).unwrap();
        let (_, pem) = parse_x509_pem(made.request.as_bytes()).unwrap();
        assert_eq!(pem.label, "CERTIFICATE REQUEST");
        let (_, request) = X509CertificationRequest::from_der(&pem.contents).unwrap();
        let info = &request.certification_request_info;
        assert_eq!(info.subject.to_string(), "O=");
        assert_eq!(info.subject_pki.parsed().unwrap().key_size(), bits);
        let extensions: Vec<_> = request.requested_extensions().unwrap().collect();
        let [ParsedExtension::SubjectAlternativeName(names)] = extensions.as_slice() else {
            panic!("{extensions:?}")
        };
        assert_eq!(names.general_names, [GeneralName::URI("spiffe://cluster.local/ns/shop/sa/web")]);
        assert!(made.key.starts_with("-----BEGIN PRIVATE KEY-----"), "{kind:?}");
    }
}

#[test]
fn long_names_are_encoded() {
    for length in [1, 80, 110, 300, 70_000] {
        let identity = identity(&"a".repeat(length));
        let made = SigningRequest::new(&identity, KeyKind::EcdsaP256).unwrap();
        let (_, pem) = parse_x509_pem(made.request.as_bytes()).unwrap();
        let (_, request) = X509CertificationRequest::from_der(&pem.contents).unwrap();
        let mut extensions = request.requested_extensions().unwrap();
        let Some(ParsedExtension::SubjectAlternativeName(names)) = extensions.next() else { panic!() };
        assert_eq!(names.general_names, [GeneralName::URI(&identity.to_string())]);
    }
}
