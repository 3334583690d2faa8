use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::stat::Mode;

use super::*;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("istio-output-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn certificates(text: &str) -> MeshCertificates {
    let pair = Pair { chain: format!("{text} chain"), key: format!("{text} key") };
    MeshCertificates { pair: Some(pair), roots: Some(format!("{text} roots")) }
}

fn content(folder: &OutputFolder) -> [String; 3] {
    NAMES.map(|name| fs::read_to_string(folder.path.join(name)).unwrap_or_default())
}

async fn until(folder: &OutputFolder, expected: [&str; 3]) {
    let written = async {
        while content(folder) != expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), written).await.expect("the files are written");
}

#[tokio::test]
async fn files_are_written_when_certificates_change() {
    for mode in [0o600, 0o644] {
        let output = OutputFolder { path: folder(&format!("{mode:o}")), mode };
        let (sender, receiver) = watch::channel(MeshCertificates::default());
        let task = tokio::spawn(output.clone().write(receiver));
        sender.send_replace(MeshCertificates { pair: None, ..certificates("first") });
        until(&output, ["", "", "first roots"]).await;
        for text in ["first", "second"] {
            sender.send_replace(certificates(text));
            let [chain, key, roots] = ["chain", "key", "roots"].map(|part| format!("{text} {part}"));
            until(&output, [&chain, &key, &roots]).await;
        }
        for name in NAMES {
            let found = fs::metadata(output.path.join(name)).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{name}");
        }
        drop(sender);
        task.await.unwrap();
    }
}

#[test]
fn a_file_with_the_same_content_is_not_replaced() {
    let output = OutputFolder { path: folder("same"), mode: 0o600 };
    output.replace(&certificates("a")).unwrap();
    let key = output.path.join("key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    output.replace(&certificates("a")).unwrap();
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_replaced() {
    let output = OutputFolder { path: folder("pipe"), mode: 0o600 };
    let key = output.path.join("key.pem");
    nix::unistd::mkfifo(&key, Mode::S_IRUSR).unwrap();
    output.replace(&certificates("a")).unwrap();
    assert_eq!(fs::read_to_string(&key).unwrap(), "a key");
}

#[test]
fn the_file_that_cannot_be_written_is_named() {
    let output = OutputFolder { path: folder("missing").join("nothing"), mode: 0o600 };
    assert!(output.replace(&certificates("a")).unwrap_err().starts_with("key.pem: "));
}
