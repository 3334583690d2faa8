use std::os::unix::fs::PermissionsExt as _;

use istio_certificates::key::KeyKind;
use istio_certificates::request::SigningRequest;

use super::*;

fn identity(namespace: &str) -> WorkloadIdentity {
    WorkloadIdentity {
        trust_domain: "cluster.local".to_owned(),
        namespace: namespace.to_owned(),
        service_account: "web".to_owned(),
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("istio-stored-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A self-signed certificate with its key.
fn issued() -> Issued {
    let key = rcgen::KeyPair::generate().unwrap();
    let chain = rcgen::CertificateParams::new(["a".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    Issued {
        roots: chain.clone(),
        chain,
        key: key.serialize_pem(),
        created: UNIX_EPOCH + Duration::from_secs(100),
        not_after: UNIX_EPOCH + Duration::from_secs(200),
    }
}

#[test]
fn a_certificate_is_stored_for_its_workload() {
    let folder = folder("own");
    let stored = StoredCertificate::new(folder.clone(), &identity("shop"));
    assert!(stored.load().is_none());
    let issued = issued();
    stored.store(&issued);
    assert!(stored.load() == Some(issued));
    let mode = fs::metadata(folder.join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(StoredCertificate::new(folder, &identity("other")).load().is_none());
}

#[test]
fn a_file_that_others_could_read_or_that_is_broken_is_not_used() {
    let folder = folder("broken");
    let stored = StoredCertificate::new(folder.clone(), &identity("shop"));
    let issued = issued();
    stored.store(&issued);
    fs::set_permissions(folder.join(FILE), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(stored.load().is_none());
    stored.store(&issued);
    assert!(stored.load().is_some());
    let other = SigningRequest::new(&identity("shop"), KeyKind::EcdsaP256).unwrap().key;
    stored.store(&Issued { key: other, ..issued });
    assert!(stored.load().is_none());
    fs::write(folder.join(FILE), "{").unwrap();
    assert!(stored.load().is_none());
}
