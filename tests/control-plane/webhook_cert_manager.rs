//! Tests that the webhook refuses no review while cert-manager renews the certificates of its overlay.
//! The test issues certificates as the overlay's objects say, and updates the mounted Secret as kubelet
//! does.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use kit::wait;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;

use crate::webhook::Load;
use crate::webhook_support::{Call, Webhook, client, review};

const CERTIFICATE: &str = "app-health-webhook";
const OVERLAY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../envoy-config/kubernetes/overlays/cert-manager");
const ANNOTATION: &str = "cert-manager.io/inject-ca-from: app-health-system/";

/// What cert-manager writes into a Secret, and the parameters of its certificate.
struct Secret {
    params: CertificateParams,
    certificate: String,
    key: String,
    ca: String,
}

/// cert-manager's objects and Secrets.
struct CertManager {
    objects: Vec<Value>,
    secrets: BTreeMap<String, Secret>,
}

impl CertManager {
    /// Issues all certificates of the overlay, of which the CA comes first.
    fn new() -> Self {
        let text = fs::read_to_string(format!("{OVERLAY}/certificate.yaml")).expect("the overlay");
        let objects = text.split("\n---\n").map(kit::example::parse).collect();
        let mut cert_manager = Self { objects, secrets: BTreeMap::new() };
        let certificates = cert_manager.objects.iter().filter(|object| object["kind"] == "Certificate");
        let names = certificates.map(|object| text_of(&object["metadata"]["name"])).collect::<Vec<_>>();
        names.iter().for_each(|name| cert_manager.issue(name));
        cert_manager
    }

    fn spec(&self, kind: &str, name: &str) -> &Value {
        let found =
            self.objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        &found.unwrap_or_else(|| panic!("no {kind} {name}"))["spec"]
    }

    fn secret(&self, certificate: &str) -> &Secret {
        &self.secrets[&text_of(&self.spec("Certificate", certificate)["secretName"])]
    }

    /// Issues a certificate, or renews it.
    fn issue(&mut self, name: &str) {
        let spec = self.spec("Certificate", name).clone();
        let issuer = self.spec("Issuer", &text_of(&spec["issuerRef"]["name"])).clone();
        let secret_name = text_of(&spec["secretName"]);
        let keeps_key = spec["privateKey"]["rotationPolicy"] == "Never";
        let key = match self.secrets.get(&secret_name).filter(|_| keeps_key) {
            Some(secret) => KeyPair::from_pem(&secret.key).expect("a key"),
            None => KeyPair::generate().expect("a key"),
        };
        let names = spec["dnsNames"].as_array().into_iter().flatten().map(text_of);
        let mut params = CertificateParams::new(names.collect::<Vec<_>>()).expect("names");
        params.distinguished_name.push(DnType::CommonName, spec["commonName"].as_str().unwrap_or(name));
        if spec["isCA"] == true {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let signer = issuer["ca"]["secretName"].as_str().map(|ca| &self.secrets[ca]);
        let (certificate, ca) = match signer {
            Some(signer) => {
                let key_of_signer = KeyPair::from_pem(&signer.key).expect("a key");
                let issuer = Issuer::new(signer.params.clone(), key_of_signer);
                let certificate = params.signed_by(&key, &issuer).expect("a certificate").pem();
                (certificate, signer.certificate.clone())
            }
            None => {
                let certificate = params.self_signed(&key).expect("a certificate").pem();
                (certificate.clone(), certificate)
            }
        };
        self.secrets.insert(secret_name, Secret { params, certificate, key: key.serialize_pem(), ca });
    }

    /// Returns the Certificate whose CA cert-manager writes into caBundle.
    fn injected(&self) -> String {
        let text = fs::read_to_string(format!("{OVERLAY}/kustomization.yaml")).expect("the overlay");
        let (_, name) = text.split_once(ANNOTATION).expect("the annotation");
        name.split('}').next().expect("a name").to_owned()
    }

    fn bundle(&self) -> &str {
        &self.secret(&self.injected()).ca
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

/// Mounts a Secret: all files change at once, when a symbolic link is replaced.
fn mount(secret: &Secret, folder: &Path, revision: usize) {
    let data = format!("..{revision}");
    fs::create_dir(folder.join(&data)).expect("a folder");
    let link = |target: &str, name: &str| {
        symlink(target, folder.join("..new")).expect("a link");
        fs::rename(folder.join("..new"), folder.join(name)).expect("a link");
    };
    for (name, text) in [("tls.crt", &secret.certificate), ("tls.key", &secret.key), ("ca.crt", &secret.ca)] {
        fs::write(folder.join(&data).join(name), text).expect("a file");
    }
    link(&data, "..data");
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        if !folder.join(name).is_symlink() {
            link(&format!("..data/{name}"), name);
        }
    }
}

/// Waits until the webhook serves the certificate of the Secret. A client that trusts caBundle accepts
/// each certificate that it serves meanwhile.
fn wait_until_served(webhook: &Webhook, secret: &Secret, bundle: &str) {
    let issued = CertificateDer::from_pem_slice(secret.certificate.as_bytes()).expect("PEM");
    let is_served = || {
        let mut call = Call::new(webhook.address, &client(bundle, None)).expect("a trusted certificate");
        assert_eq!(call.post(&review("a")).expect("an answer").status, 200);
        call.stream.conn.peer_certificates().is_some_and(|chain| chain[0] == issued)
    };
    wait::until_blocking(|| format!("the certificate is not served: {}", webhook.log()), is_served);
}

#[test]
fn renewals_of_cert_manager_refuse_no_review() {
    let mut cert_manager = CertManager::new();
    let webhook = Webhook::start("cert-manager", &[], &[]);
    mount(cert_manager.secret(CERTIFICATE), &webhook.folder, 0);
    webhook.wait_for_metric("app_health_webhook_reloads_total{kind=\"certificate\",result=\"success\"} 1");
    // The API server's caBundle is the first one during the whole test.
    let load = Load::start(&webhook, &client(cert_manager.bundle(), None));
    let authority = cert_manager.injected();
    for (revision, renewed) in [(1, CERTIFICATE), (2, CERTIFICATE), (3, &authority), (4, CERTIFICATE)] {
        cert_manager.issue(renewed);
        let secret = cert_manager.secret(CERTIFICATE);
        if renewed == CERTIFICATE {
            mount(secret, &webhook.folder, revision);
        }
        wait_until_served(&webhook, secret, cert_manager.bundle());
    }
    load.until(100);
    assert_eq!(load.stop(), [""; 0]);
}
