use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use tokio::time::timeout;

use super::*;

/// Returns a certificate of itself and its key.
fn issue() -> Pair {
    let key = rcgen::KeyPair::generate().unwrap();
    let chain = rcgen::CertificateParams::new(["a".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    Pair { chain, key: key.serialize_pem() }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("istio-mesh-certificates-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn write(files: &MountedFiles, pair: &Pair, roots: &str) {
    let [chain, key] = files.pair.as_ref().unwrap();
    // The key first, so that a read between the two finds a pair that does not match.
    fs::write(key, &pair.key).unwrap();
    fs::write(chain, &pair.chain).unwrap();
    fs::write(files.roots.as_ref().unwrap(), roots).unwrap();
}

async fn until(
    certificates: &mut watch::Receiver<MeshCertificates>,
    is_met: impl FnMut(&MeshCertificates) -> bool,
) -> MeshCertificates {
    let found = timeout(Duration::from_secs(60), certificates.wait_for(is_met)).await;
    found.expect("the certificates change").unwrap().clone()
}

fn issued(pair: &Pair, roots: &str) -> Arc<Issued> {
    let Pair { chain, key } = pair.clone();
    Arc::new(Issued { chain, key, roots: roots.to_owned(), created: UNIX_EPOCH, not_after: UNIX_EPOCH })
}

#[tokio::test]
async fn files_take_precedence_one_by_one() {
    let files = MountedFiles::of(&folder("precedence"));
    let [by_ca, by_file, roots_of_ca, roots_of_file] = [issue(), issue(), issue(), issue()];
    let (_sender, from_ca) = watch::channel(Some(issued(&by_ca, &roots_of_ca.chain)));
    for (has_pair, has_roots) in [(false, false), (true, false), (false, true), (true, true)] {
        write(&files, &by_file, &roots_of_file.chain);
        let mounted = MountedFiles {
            pair: files.pair.clone().filter(|_| has_pair),
            roots: files.roots.clone().filter(|_| has_roots),
        };
        assert_eq!(mounted.is_complete(), has_pair && has_roots);
        let mut certificates = start(Some(from_ca.clone()), mounted, None);
        let (pair, roots) =
            (if has_pair { &by_file } else { &by_ca }, if has_roots { &roots_of_file } else { &roots_of_ca });
        let found = until(&mut certificates, |found| found.pair.is_some() && found.roots.is_some()).await;
        assert!(found.pair.as_ref() == Some(pair) && found.roots == Some(pem::roots([roots.chain.as_str()])));
    }
}

#[tokio::test]
async fn files_may_appear_later_and_change() {
    let files = MountedFiles::of(&folder("later"));
    let mut certificates = start(None, files.clone(), None);
    assert!(*certificates.borrow() == MeshCertificates::default());
    for _ in 0..3 {
        let (pair, roots) = (issue(), issue());
        write(&files, &pair, &roots.chain);
        let expected = pem::roots([roots.chain.as_str()]);
        let found = until(&mut certificates, |found| {
            found.pair.as_ref() == Some(&pair) && found.roots.as_ref() == Some(&expected)
        });
        found.await;
    }
    // A key that does not belong to the certificate, and a file without a certificate, change nothing.
    let before = certificates.borrow().clone();
    write(&files, &Pair { chain: issue().chain, key: issue().key }, "nothing");
    let (pair, roots) = (issue(), issue());
    fs::write(files.roots.as_ref().unwrap(), &roots.chain).unwrap();
    let found = until(&mut certificates, |found| *found != before).await;
    assert!(found.pair == before.pair && found.roots == Some(pem::roots([roots.chain.as_str()])));
    write(&files, &pair, &roots.chain);
    until(&mut certificates, |found| found.pair.as_ref() == Some(&pair)).await;
}

#[tokio::test]
async fn the_trust_bundle_is_added_to_the_roots() {
    let [pair, root, other] = [issue(), issue(), issue()];
    let (_sender, from_ca) = watch::channel(Some(issued(&pair, &root.chain)));
    let (bundle, received) = watch::channel(None);
    let mut certificates = start(Some(from_ca), MountedFiles::default(), Some(received));
    assert!(certificates.borrow().roots == Some(pem::roots([root.chain.as_str()])));
    bundle.send_replace(Some(Arc::new(format!("{}{}", other.chain, root.chain))));
    let both = pem::roots([root.chain.as_str(), other.chain.as_str()]);
    until(&mut certificates, |found| found.roots.as_ref() == Some(&both)).await;
    bundle.send_replace(Some(Arc::new(String::new())));
    until(&mut certificates, |found| found.roots == Some(pem::roots([root.chain.as_str()]))).await;
}

#[test]
fn a_certificate_without_its_key_does_not_count() {
    let folder = folder("existing");
    let files = MountedFiles::of(&folder);
    assert_eq!(files.clone().existing(), MountedFiles::default());
    fs::write(folder.join("cert-chain.pem"), "").unwrap();
    fs::write(folder.join("root-cert.pem"), "").unwrap();
    assert_eq!(files.clone().existing(), MountedFiles { pair: None, ..files.clone() });
    fs::write(folder.join("key.pem"), "").unwrap();
    assert_eq!(files.clone().existing(), files);
}
