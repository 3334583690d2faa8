//! Tests of a disk that is full when the agent starts, of one that fills later, and of the
//! termination message of each failure. They run in a new mount namespace with a small tmpfs and a
//! `/dev/termination-log`, which needs root.

use std::io::Write as _;
use std::path::Path;

use kit::envoy::Version;
use kit::not_tested;
use kit::process::SeenDirectory;
use kit::sidecar::{Builder, Sidecar};
use nix::sys::signal::Signal;

/// The size of a state directory with room for all files, in KiB.
const SIZE: u32 = 1024;

/// The content of the state directory that an earlier agent has left.
const OLD: &str = "envoy.json: old\n";

/// Mounts a tmpfs of `$1` KiB on the state directory and fills it unless `$3` is `free`, mounts a
/// termination log, and runs the command. Then it writes the content of the state directory,
/// without the file that filled it, to `$2/left`.
const SCRIPT: &str = r#"
set -e
mount -t tmpfs -o size="$1"k,mode=0700 state "$2/state"
printf old > "$2/state/envoy.json"
[ "$3" = free ] || ! cat /dev/zero > "$2/state/filler" 2>/dev/null
mkdir -p "$2/dev"
mount -t tmpfs dev "$2/dev"
for name in null urandom termination-log; do : > "$2/dev/$name"; done
mount --bind /dev/null "$2/dev/null"
mount --bind /dev/urandom "$2/dev/urandom"
mount --bind "$2/last-words" "$2/dev/termination-log"
mount --rbind "$2/dev" /dev
folder=$2
[ "$3" = free ] || left=yes
shift 3
[ "${left-}" ] || exec "$@"
code=0
"$@" || code=$?
rm "$folder/state/filler"
(cd "$folder/state" && for file in *; do echo "$file: $(cat "$file")"; done) > "$folder/left"
exit "$code"
"#;

/// Returns `None` and reports NOT TESTED without root.
fn in_namespace(builder: Builder, kib: u32, filled: bool) -> Option<Builder> {
    if !not_tested::has_root_and("full disks and the termination log", &["unshare", "mount"]) {
        return None;
    }
    let folder = builder.folder.clone();
    std::fs::create_dir_all(folder.join("state")).expect("a writable folder");
    std::fs::write(folder.join("last-words"), "").expect("a writable folder");
    let how = if filled { "filled" } else { "free" };
    let (kib, folder) = (kib.to_string(), folder.to_str().expect("a path").to_owned());
    Some(builder.inside(&["unshare", "--mount", "sh", "-c", SCRIPT, "sh", &kib, &folder, how]))
}

fn last_words(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("last-words")).expect("the test created the file")
}

#[tokio::test]
async fn a_full_disk_is_exit_code_73_and_keeps_old_files() {
    let builder = Builder::new("full");
    let folder = builder.folder.clone();
    let Some(builder) = in_namespace(builder, 64, true) else { return };
    let (code, log) = builder.start().end().await;
    assert_eq!(code, Some(73), "{log}");
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains("No space left on device") && last.contains("state/app_health_filter"), "{last}");
    assert!(!log.contains("envoy started"), "{log}");
    assert_eq!(format!("app-health-agent: {}", last_words(&folder)), last);
    assert_eq!(std::fs::read_to_string(folder.join("left")).expect("the script wrote the file"), OLD);
}

#[tokio::test]
async fn a_disk_that_is_full_later_has_no_effect() {
    let builder = Builder::new("fills");
    let Some(builder) = in_namespace(builder, SIZE, false) else { return };
    let sidecar = builder.start();
    sidecar.until(200, "ready").await;
    fill(&sidecar);
    sidecar.signal(Signal::SIGHUP);
    assert_eq!(sidecar.local("GET /stats/prometheus", "Host: localhost\r\n").await.status, 200);
    assert_eq!(sidecar.local("POST /drain", "").await.status, 200);
    sidecar.until(503, "draining").await;
    sidecar.signal(Signal::SIGTERM);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
}

/// Fills the state directory, which is reached through the agent's mount namespace.
fn fill(sidecar: &Sidecar) {
    let state = SeenDirectory::open(sidecar.pid(), &sidecar.folder.join("state")).expect("the agent runs");
    let mut filler = std::fs::File::create(state.join("filler")).expect("there is room for a name");
    let mut write = |_| filler.write_all(&[0; 4096]).err();
    let full = (0..SIZE).find_map(&mut write).expect("the state directory is a small tmpfs");
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    assert!(state.join("envoy.json").exists());
}

/// Each exit with a code other than 0 writes its error line to the file that Kubernetes reads.
#[tokio::test]
async fn every_failure_writes_the_termination_message() {
    let envoy = Version::Newest.binary();
    let envoy = envoy.to_str().expect("a path");
    let rows: [(&str, &[&str], i32, &str); 4] = [
        ("words-flag", &["--admin", "10.0.0.5:15000"], 64, "--admin"),
        ("words-envoy", &["--envoy", "/no/envoy"], 64, "/no/envoy"),
        ("words-port", &["--envoy", envoy], 71, "port 15004"),
        (
            "words-ended",
            &["--envoy", "/bin/true", "--envoy-version", "1.40"],
            70,
            "Envoy exited unexpectedly",
        ),
    ];
    for (name, flags, code, words) in rows {
        let builder = Builder::bare(name).args(flags);
        let folder = builder.folder.clone();
        let taken =
            (code == 71).then(|| std::net::TcpListener::bind((builder.ip, 15004)).expect("a free port"));
        let Some(builder) = in_namespace(builder, SIZE, false) else { return };
        let outcome = builder.start_plain().end().await;
        assert_eq!(outcome.0, Some(code), "{name}: {outcome:?}");
        let said = last_words(&folder);
        assert!(said.contains(words) && said.len() <= 1024 && !said.contains('\n'), "{name}: {said}");
        assert!(outcome.1.ends_with(&format!("app-health-agent: {said}\n")), "{name}: {said}: {outcome:?}");
        drop(taken);
    }
}
