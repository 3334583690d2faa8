//! Certificates for a Pod: those of Istio's agent and ours for the same istiod, and what becomes of them while istiod
//! is away, refuses the token, or has another root.

use std::fs;
use std::path::Path;

use istio_agent::secrets::system_roots;
use kit::vm::certificates::{Authority, replace};
use kit::vm::documents::{GROUP, NAMESPACE};
use kit::{caller, net, not_tested, wait};

use istio_tests::istiod::Istiod;
use istio_tests::pod_sidecar::{POD, PodSidecar};
use istio_tests::program::Program;
use istio_tests::secret_client::{Secret, exists, fetch};

/// Renewed after half of it. Long enough for a busy machine to notice each failure before the end.
const LIFETIME: &str = "40s";
const SYSTEM: &str = "istio-system";

/// Starts a Pod with files of the user.
fn pod(program: Program, name: &str, istiod: &Istiod, variables: &[(&str, &str)]) -> PodSidecar {
    let folder = istiod.folder.join(name).join("files");
    fs::create_dir_all(&folder).expect("a writable folder");
    let authority = Authority::new();
    let issued = authority.sign("tls.example.com");
    let texts = [("ca.pem", authority.pem()), ("tls.crt", issued.certificate), ("tls.key", issued.key)];
    for (file, text) in texts {
        fs::write(folder.join(file), text).expect("a writable folder");
    }
    PodSidecar::start_as(program, name, istiod, net::loopback(), variables)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod and Istio's agent: ./justw test-istio"]
async fn secrets_are_those_of_istios_agent() {
    let istiod = Istiod::start_with_auto_mtls("istio-secrets").await;
    // A restarted container would begin with the certificate of the earlier one.
    for (number, variables) in (1..).zip([
        &[][..],
        &[("ECC_SIGNATURE_ALGORITHM", "ECDSA")],
        &[("ECC_SIGNATURE_ALGORITHM", "ECDSA"), ("ECC_CURVE", "P384")],
    ]) {
        let [theirs, ours] = [(Program::Istios, "theirs"), (Program::Ours, "ours")]
            .map(|(program, name)| pod(program, &format!("{name}-{number}"), &istiod, variables));
        for pod in [&theirs, &ours] {
            pod.until_ready().await;
        }
        let mut names =
            vec!["default", "ROOTCA", "file-root:files/ca.pem", "file-cert:files/tls.crt~files/tls.key"];
        names.extend(system_roots().map(|_| "file-root:system"));
        for name in names {
            let expected = fetch(&theirs.secrets(), name).await;
            let found = fetch(&ours.secrets(), name).await;
            let is_own = name.starts_with("file-") && name != "file-root:system";
            // Each certificate has a number of its own, and each Pod files of its own.
            let comparable = |secret: Secret| Secret {
                serial: String::new(),
                roots: if is_own { [secret.roots.len().to_string()].into() } else { secret.roots.clone() },
                ..secret
            };
            assert_eq!(comparable(found.clone()), comparable(expected), "{name} {variables:?}");
            assert!(found.chain_length > 0 || !found.roots.is_empty(), "{name}: {found:?}");
            if is_own && !found.roots.is_empty() {
                let file = fs::read_to_string(ours.folder.join("files/ca.pem")).expect("a file");
                assert_eq!(found.roots, [file.trim().to_owned()].into());
            }
        }
        for pod in [&theirs, &ours] {
            assert!(!exists(&pod.secrets(), "file-root:files/missing.pem").await);
        }
        // Istio's agent serves the certificate of the workload under any other name.
        for name in ["unknown", "kubernetes://secret"] {
            assert!(!exists(&ours.secrets(), name).await, "{name}");
        }
        let own = fetch(&ours.secrets(), "default").await;
        assert_eq!(own.identities, [format!("spiffe://cluster.local/ns/{NAMESPACE}/sa/{GROUP}")]);
        let [theirs, ours] = [metrics(&theirs).await, metrics(&ours).await];
        let missing =
            theirs.difference(&ours).filter(|name| !NO_COUNTERPART.iter().any(|it| name.starts_with(it)));
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&String>::new(), "{ours:?}");
        assert!(ours.contains("istio_agent_cert_expiry_seconds{resource_name=\"default\"}"), "{ours:?}");
    }
}

/// Metrics of Go's runtime, and of the library that istiod shares with its agent.
const NO_COUNTERPART: [&str; 3] = ["istio_agent_go_", "istio_agent_process_", "istio_agent_pilot_xds_"];

/// Returns the names and labels of the agent's own metrics.
async fn metrics(pod: &PodSidecar) -> std::collections::BTreeSet<String> {
    let text = caller::get(pod.status, "/stats/prometheus", &[]).await.text();
    let series = text.lines().filter_map(|line| line.split_once(' ')).map(|(series, _)| series.to_owned());
    series.filter(|series| series.starts_with("istio_agent_")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod: ./justw test-istio"]
async fn a_valid_certificate_stays_while_renewals_fail() {
    let mut istiod = Istiod::start_with_auto_mtls("istio-renewals").await;
    let sidecar = pod(Program::Ours, POD, &istiod, &[("SECRET_TTL", LIFETIME)]);
    sidecar.until_ready().await;
    let first = fetch(&sidecar.secrets(), "default").await;
    let roots = fetch(&sidecar.secrets(), "ROOTCA").await.roots;

    istiod.kill();
    until_logged(&sidecar, "certificate not renewed, keeping the valid one").await;
    // Also for a new stream, for which Istio's agent has no certificate then.
    assert_eq!(fetch(&sidecar.secrets(), "default").await, first);
    istiod.start_process(&[]).await;
    let second = until_renewed(&sidecar, &first).await;

    let token = sidecar.folder.join("var/run/secrets/tokens/istio-token");
    fs::write(&token, "expired").expect("a writable folder");
    until_logged(&sidecar, "Unauthenticated").await;
    assert_eq!(fetch(&sidecar.secrets(), "default").await, second);
    istiod.write_token(&token);
    let third = until_renewed(&sidecar, &second).await;

    // istiod creates another root.
    istiod.kill();
    istiod.cluster.kubectl_ok(&["delete", "secret", "istio-ca-secret", "-n", SYSTEM], "");
    istiod.start_process(&[]).await;
    until_renewed(&sidecar, &third).await;
    let has_other_roots = async || fetch(&sidecar.secrets(), "ROOTCA").await.roots.is_disjoint(&roots);
    wait::until_or(|| format!("other roots:\n{}", sidecar.log()), has_other_roots).await;
    assert!(is_not_on_disk(&sidecar.folder), "keys are in the folder of Envoy's configuration only");
}

/// A request for a certificate without a response times out before the valid certificate expires.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod: ./justw test-istio"]
async fn a_valid_certificate_stays_while_istiod_is_paused() {
    let istiod = Istiod::start_with_auto_mtls("istio-paused").await;
    let sidecar = pod(Program::Ours, POD, &istiod, &[("SECRET_TTL", "60s")]);
    sidecar.until_ready().await;
    let first = fetch(&sidecar.secrets(), "default").await;
    istiod.pause(true);
    until_logged(&sidecar, "certificate not renewed, keeping the valid one").await;
    assert_eq!(fetch(&sidecar.secrets(), "default").await, first);
    istiod.pause(false);
    until_renewed(&sidecar, &first).await;
}

/// CA certificates that istiod adds to those of the mesh.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod and Istio's agent: ./justw test-istio"]
async fn trust_bundles_are_those_of_istios_agent() {
    let mut istiod = Istiod::start_with_auto_mtls("istio-trust-bundle").await;
    istiod.kill();
    let added = Authority::new().pem();
    let indented: String = added.lines().map(|line| format!("    {line}\n")).collect();
    istiod.mesh = format!("caCertificates:\n- pem: |\n{indented}");
    istiod.start_process(&[("ISTIO_MULTIROOT_MESH", "true")]).await;
    let [theirs, ours] = [(Program::Istios, "theirs"), (Program::Ours, "ours")]
        .map(|(program, name)| pod(program, name, &istiod, &[("PROXY_CONFIG_XDS_AGENT", "true")]));
    let roots = async |pod: &PodSidecar| fetch(&pod.secrets(), "ROOTCA").await.roots;
    for pod in [&theirs, &ours] {
        pod.until_ready().await;
        let has_added = async || roots(pod).await.contains(added.trim());
        wait::until_or(|| format!("the added certificate is served:\n{}", pod.log()), has_added).await;
    }
    let [theirs, ours] = [roots(&theirs).await, roots(&ours).await];
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 2, "that of istiod, and the added one");
}

/// Istio's agent names the file to Envoy; ours serves its content, and again when it has changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod, Istio's agent and root: ./justw test-istio"]
async fn revocation_lists_are_those_of_istios_agent() {
    if !not_tested::has_root_and("certificate revocation lists", &["mount", "unshare"]) {
        return;
    }
    const FILE: &str = "ca-crl.pem";
    let istiod = Istiod::start_with_auto_mtls("istio-revoked").await;
    let lists = istiod.folder.join("crl");
    fs::create_dir_all(&lists).expect("a writable folder");
    for (number, lists_are_on, content) in
        [(1, true, Some("the first list\n")), (2, false, Some("the first list\n")), (3, true, None)]
    {
        let file = lists.join(FILE);
        match content {
            Some(text) => fs::write(&file, text).expect("a writable folder"),
            None => fs::remove_file(&file).expect("a file"),
        }
        // A name server may be configured in a file that the mounted folder hides.
        let variables = [
            ("ISTIO_META_DNS_CAPTURE", "false"),
            ("PILOT_ENABLE_CA_CRL", if lists_are_on { "true" } else { "false" }),
        ];
        let [theirs, ours] = [(Program::Istios, "theirs"), (Program::Ours, "ours")].map(|(program, name)| {
            let mut pod = PodSidecar::prepare(
                program,
                &format!("{name}-{number}"),
                &istiod,
                net::loopback(),
                &variables,
            );
            pod.revocation_lists = Some(lists.clone());
            pod.start_container();
            pod
        });
        let served = async |pod: &PodSidecar, name: &str| fetch(&pod.secrets(), name).await.revocation_lists;
        for pod in [&theirs, &ours] {
            pod.until_ready().await;
        }
        for name in ["ROOTCA", "file-root:var/run/secrets/istio/root-cert.pem"] {
            let expected = match served(&theirs, name).await.as_str() {
                "" => String::new(),
                path => fs::read_to_string(lists.join(Path::new(path).file_name().expect("a file")))
                    .expect("a file"),
            };
            assert_eq!(served(&ours, name).await, expected, "{name} {variables:?}");
            assert_eq!(expected.is_empty(), content.is_none() || !lists_are_on, "{name} {variables:?}");
        }
        if lists_are_on {
            replace(&file, "another list\n");
            let is_served = async || served(&ours, "ROOTCA").await == "another list\n";
            wait::until_or(|| format!("the other list is served:\n{}", ours.log()), is_served).await;
            assert_ne!(served(&theirs, "ROOTCA").await, "");
        }
    }
}

async fn until_logged(pod: &PodSidecar, text: &str) {
    wait::until_or(|| format!("{text:?} is logged:\n{}", pod.log()), async || pod.log().contains(text)).await;
}

async fn until_renewed(pod: &PodSidecar, last: &Secret) -> Secret {
    let is_renewed = async || fetch(&pod.secrets(), "default").await.serial != last.serial;
    wait::until_or(|| format!("another certificate:\n{}", pod.log()), is_renewed).await;
    fetch(&pod.secrets(), "default").await
}

/// Returns whether no private key is outside of the folder that is in memory in a Pod.
fn is_not_on_disk(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| !path.ends_with("etc/istio/proxy") && !path.ends_with("files")).all(|path| {
        match path.is_dir() {
            true => is_not_on_disk(&path),
            false => !fs::read(&path).unwrap_or_default().windows(11).any(|part| part == b"PRIVATE KEY"),
        }
    })
}
