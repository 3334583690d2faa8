//! A state directory that becomes full or read-only while the agent runs: Envoy gets its configuration
//! as before, the reason is visible, and the agent stores it again once it can. The agent runs in a mount
//! namespace with a small tmpfs as its state directory, which needs root.

use kit::process::SeenDirectory;
use kit::sidecar::{Builder, Sidecar};
use kit::vm::envoy_stream::EnvoyStream;
use kit::vm::faulty_ads::{Fault, FaultyAds};
use kit::{not_tested, wait};
use serde_json::Value;
use xds::type_url::ENDPOINT;

use super::faults::{Memory, bare_agent};

const CLUSTERS: [&str; 1] = ["payments"];

/// Mounts a tmpfs of 64 KiB on the state directory `$1` and runs the command.
const SCRIPT: &str = r#"
set -e
mount -t tmpfs -o size=64k,mode=0700 state "$1"
shift
exec "$@"
"#;

struct Tested {
    server: FaultyAds,
    sidecar: Sidecar,
    state: SeenDirectory,
    stream: EnvoyStream,
    memory: Memory,
}

/// Starts an agent whose control plane sends endpoints of about this size again and again. Returns `None`
/// and reports NOT TESTED without root.
async fn start(name: &str, size: usize) -> Option<Tested> {
    if !not_tested::has_root_and("a full or read-only state directory", &["unshare", "mount", "nsenter"]) {
        return None;
    }
    let server = FaultyAds::listen("127.0.0.1:0".parse().unwrap(), Fault::endpoints(CLUSTERS[0], size)).await;
    let builder: Builder = bare_agent(name, server.address);
    let state = builder.folder.join("state");
    std::fs::create_dir_all(&state).expect("a writable folder");
    let state = state.to_str().expect("a path");
    let sidecar = builder.inside(&["unshare", "--mount", "sh", "-c", SCRIPT, "sh", state]).start_plain();
    // The directory is another one before the mount.
    let listens = async || state_of(&sidecar).is_ok_and(|state| state.join("xds.sock").exists());
    wait::until_or(|| sidecar.log(), listens).await;
    let state = state_of(&sidecar).expect("the agent runs");
    let stream = EnvoyStream::open(&state.join("xds.sock"), ENDPOINT, &CLUSTERS).await;
    let memory = Memory::of(&sidecar);
    Some(Tested { server, sidecar, state, stream, memory })
}

/// Opens the state directory as the agent sees it.
fn state_of(sidecar: &Sidecar) -> std::io::Result<SeenDirectory> {
    SeenDirectory::open(sidecar.pid(), &sidecar.folder.join("state"))
}

impl Tested {
    async fn view(&self) -> Value {
        let answer = self.sidecar.local("GET /debug/xds", "Host: localhost\r\n").await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Accepts responses until the view shows this cause; `null` if there is none.
    async fn accept_until_error(&mut self, cause: Option<&str>) {
        for _ in 0..10_000 {
            let response = self.stream.response().await;
            self.stream.acknowledge(&response, &CLUSTERS).await;
            let view = self.view().await;
            let is_wanted = match (cause, view["storeError"].as_str()) {
                (Some(cause), Some(error)) => error.contains(cause),
                (None, None) => !view["types"].is_null(),
                _ => false,
            };
            if is_wanted {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("not {cause:?}: {:#}\n{}", self.view().await, self.sidecar.log());
    }

    /// Checks that the failure is visible and that Envoy gets further configuration.
    async fn assert_only_the_file_is_missing(&mut self, cause: &str) {
        let acks = |view: &Value| view["types"][0]["acks"].as_u64().unwrap_or_default();
        let before = acks(&self.view().await);
        for _ in 0..100 {
            let response = self.stream.response().await;
            assert_eq!(response.resources.len(), 1);
            self.stream.acknowledge(&response, &CLUSTERS).await;
        }
        let is_accepted = async || acks(&self.view().await) >= before + 100;
        wait::until_or(|| self.sidecar.log(), is_accepted).await;
        let ready: Value = serde_json::from_slice(&self.sidecar.ready("?verbose").await.body).unwrap();
        assert!(ready["storeError"].as_str().is_some_and(|error| error.contains(cause)), "{ready:#}");
        assert!(self.sidecar.metric("app_health_agent_xds_stores_total{result=\"failed\"}").await >= 1.0);
        let log = self.sidecar.log();
        assert_eq!(log.matches("xDS configuration not stored").count(), 1, "{log}");
        assert!(log.contains(cause), "{log}");
        self.memory.assert_bounded();
        assert_eq!(self.server.streams(), 1, "{log}");
    }
}

#[tokio::test]
async fn a_full_state_directory_delays_nothing() {
    let Some(mut tested) = start("xds-full", 256 << 10).await else { return };
    tested.accept_until_error(Some("No space left on device")).await;
    tested.assert_only_the_file_is_missing("No space left on device").await;
    let partial = tested.state.join("xds-cache.partial");
    wait::until("the partial file is removed", async || !partial.exists()).await;
}

#[tokio::test]
async fn a_state_directory_that_becomes_read_only_and_writable_again() {
    let Some(mut tested) = start("xds-remount", 1000).await else { return };
    tested.accept_until_error(None).await;
    let cache = tested.state.join("xds-cache");
    wait::until_or(|| tested.sidecar.log(), async || cache.exists()).await;
    remount(&tested.sidecar, "ro");
    tested.accept_until_error(Some("Read-only file system")).await;
    tested.assert_only_the_file_is_missing("Read-only file system").await;
    assert!(cache.exists(), "the earlier configuration stays");
    remount(&tested.sidecar, "rw");
    tested.accept_until_error(None).await;
    assert!(tested.sidecar.log().contains("xDS configuration stored again"));
}

fn remount(sidecar: &Sidecar, how: &str) {
    let state = sidecar.folder.join("state");
    let (pid, how) = (sidecar.pid().to_string(), format!("remount,{how}"));
    let mut command = std::process::Command::new("nsenter");
    command.args(["--target", &pid, "--mount", "mount", "-o", &how]).arg(state);
    assert!(command.status().expect("nsenter of util-linux").success());
}
