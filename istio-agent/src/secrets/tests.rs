use std::os::unix::fs::symlink;
use std::time::Duration;

use tokio::time::timeout;

use super::*;

fn issue() -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let chain = rcgen::CertificateParams::new(["a".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    (chain, key.serialize_pem())
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("istio-secrets-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Waits until a secret contains these texts.
async fn until(secrets: &mut Secrets, name: &str, texts: &[&str]) {
    let contains = |map: &Arc<SecretMap>| {
        let secret = map.get(name).cloned().unwrap_or_default();
        texts.iter().all(|text| secret.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    let found = timeout(Duration::from_secs(60), secrets.current.wait_for(contains)).await;
    found.unwrap_or_else(|_| panic!("{name} does not contain {texts:?}")).unwrap();
}

/// Writes files as kubelet does: into a folder of their own, to which the link `..data` leads.
fn publish(volume: &Path, version: &str, files: &[(&str, &str)]) {
    let own = volume.join(version);
    fs::create_dir_all(&own).unwrap();
    for (name, text) in files {
        fs::write(own.join(name), text).unwrap();
        let _ = symlink(format!("..data/{name}"), volume.join(name));
    }
    symlink(version, volume.join("..new")).unwrap();
    fs::rename(volume.join("..new"), volume.join("..data")).unwrap();
}

/// A later swap was missed by Istio's agent.
#[tokio::test]
async fn files_are_followed_through_the_swaps_of_kubelet() {
    let folder = folder("swaps");
    let mut secrets = secrets(watch::channel(MeshCertificates::default()).1, folder.clone(), None);
    let (roots, pair) = ("file-root:ca.pem", "file-cert:tls.crt~tls.key");
    let _subscriptions = [roots, pair].map(|name| (secrets.request)(name).unwrap());
    for version in ["..1", "..2", "..3"] {
        let (chain, key) = issue();
        publish(&folder, version, &[("ca.pem", &chain), ("tls.crt", &chain), ("tls.key", &key)]);
        until(&mut secrets, roots, &[chain.trim()]).await;
        until(&mut secrets, pair, &[chain.trim(), key.trim()]).await;
    }
    // A key that does not belong to the certificate changes nothing.
    let before = secrets.current.borrow()[pair].clone();
    let ((chain, _), (_, other)) = (issue(), issue());
    publish(&folder, "..4", &[("ca.pem", &chain), ("tls.crt", &chain), ("tls.key", &other)]);
    until(&mut secrets, roots, &[chain.trim()]).await;
    assert_eq!(secrets.current.borrow()[pair], before);
}

#[tokio::test]
async fn revocation_lists_belong_to_all_roots() {
    let folder = folder("lists");
    let lists = folder.join("crl.pem");
    let (chain, key) = issue();
    fs::write(folder.join("ca.pem"), &chain).unwrap();
    fs::write(&lists, "the first list").unwrap();
    let pair = Pair { chain: chain.clone(), key: key.clone() };
    let (sender, certificates) =
        watch::channel(MeshCertificates { pair: Some(pair), roots: Some(chain.clone()) });
    let mut secrets = secrets(certificates, folder, Some(lists.clone()));
    let file = "file-root:ca.pem";
    let _subscriptions = [file, ROOTS, WORKLOAD].map(|name| (secrets.request)(name).unwrap());
    for list in ["the first list", "another list"] {
        fs::write(&lists, list).unwrap();
        until(&mut secrets, ROOTS, &[chain.trim(), list]).await;
        until(&mut secrets, file, &[chain.trim(), list]).await;
    }
    until(&mut secrets, WORKLOAD, &[chain.trim(), key.trim()]).await;
    // Without the lists, certificates would be accepted that were revoked.
    fs::remove_file(&lists).unwrap();
    fs::create_dir(&lists).unwrap();
    let (next, _) = issue();
    sender.send_modify(|certificates| certificates.roots = Some(next.clone()));
    until(&mut secrets, ROOTS, &[next.trim(), "another list"]).await;
}

#[tokio::test]
async fn unknown_names_are_refused() {
    let secrets = secrets(watch::channel(MeshCertificates::default()).1, folder("names"), None);
    for name in ["kubernetes://gateway", "", "file-cert:only-one"] {
        assert!((secrets.request)(name).is_none(), "{name}");
    }
    let name = |number: usize| format!("file-root:{number}.pem");
    let mut all: Vec<_> = (0..FILES).map(|number| (secrets.request)(&name(number)).unwrap()).collect();
    assert!((secrets.request)("file-root:one-more.pem").is_none());
    assert!((secrets.request)(&name(0)).is_some());
    assert!((secrets.request)("file-root:system").is_some());
    // A secret to which no stream subscribes makes room for another one.
    all.pop();
    assert!((secrets.request)("file-root:one-more.pem").is_some());
}

#[tokio::test]
async fn a_secret_without_subscriptions_is_forgotten() {
    let folder = folder("forgotten");
    let mut secrets = secrets(watch::channel(MeshCertificates::default()).1, folder.clone(), None);
    let name = "file-root:ca.pem";
    let [(first, _), (second, _)] = [issue(), issue()];
    fs::write(folder.join("ca.pem"), &first).unwrap();
    let subscriptions = [(); 2].map(|()| (secrets.request)(name).unwrap());
    until(&mut secrets, name, &[first.trim()]).await;
    let [one, other] = subscriptions;
    drop(one);
    assert!(secrets.current.borrow().contains_key(name), "another stream subscribes");
    drop(other);
    assert!(!secrets.current.borrow().contains_key(name));
    fs::write(folder.join("ca.pem"), &second).unwrap();
    let _again = (secrets.request)(name).unwrap();
    until(&mut secrets, name, &[second.trim()]).await;
}
