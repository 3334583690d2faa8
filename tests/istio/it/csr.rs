//! Our signing requests, as Istio's registration authority validates them for CAs of others.

use std::io::Write as _;
use std::process::{Command, Stdio};

use istio_certificates::identity::WorkloadIdentity;
use istio_certificates::key::KeyKind;
use istio_certificates::request::SigningRequest;

use istio_tests::istio;

#[test]
#[ignore = "needs Istio's registration authority: ./justw test-istio"]
fn istios_registration_authority_accepts_our_requests() {
    let identity = |account: &str| WorkloadIdentity {
        trust_domain: "cluster.local".to_owned(),
        namespace: "shop".to_owned(),
        service_account: account.to_owned(),
    };
    for kind in [KeyKind::Rsa2048, KeyKind::Rsa3072, KeyKind::Rsa4096, KeyKind::EcdsaP256, KeyKind::EcdsaP384]
    {
        for account in ["web", &"long".repeat(50)] {
            let made = SigningRequest::new(&identity(account), kind).expect("a request");
            assert_eq!(validated(&identity(account), &made.request), "true", "{kind:?} {account}");
            // One of another workload is refused.
            assert_eq!(validated(&identity("other"), &made.request), "false", "{kind:?} {account}");
        }
    }
}

fn validated(identity: &WorkloadIdentity, request: &str) -> String {
    let mut command = Command::new(istio("reference"));
    command.arg("csr").arg(identity.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("Istio's registration authority");
    child.stdin.take().expect("a pipe").write_all(request.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("an exit");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("a text").trim().to_owned()
}
