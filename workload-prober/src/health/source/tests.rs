use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::*;

const PROBE: &str = "{ periodSeconds: 7, httpGet: { port: 8080, httpHeaders: [{ name: Host, value: a }, { name: Token, value: secret }] } }";

/// A temporary WorkloadGroup file, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, probe: &str) -> Self {
        let scratch =
            Self(std::env::temp_dir().join(format!("app-health-{}-{name}.yaml", std::process::id())));
        scratch.write(probe);
        scratch
    }

    fn write(&self, probe: &str) {
        let text = format!(
            "apiVersion: networking.istio.io/v1\nkind: WorkloadGroup\nmetadata: {{ name: a }}\nspec: {{ probe: {probe} }}\n"
        );
        std::fs::write(&self.0, text).unwrap();
    }

    fn source(&self) -> ProbeSource {
        let file = WorkloadGroupFile::open(self.0.clone()).unwrap().value;
        ProbeSource::new(
            Some(file),
            LocalRules { proxy_ports: ProxyPorts::new([16021]), allow_pushed_exec: false },
        )
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn period(source: &ProbeSource) -> Option<u64> {
    source.probe().map(|probe| probe.period.as_secs())
}

#[test]
fn the_file_takes_precedence() {
    let scratch = Scratch::new("wins", PROBE);
    let mut source = scratch.source();
    assert_eq!((source.as_str(), period(&source)), ("file", Some(7)));
    for push in [None, Some(json!({"grpc": {"port": 1}})), Some(json!("nonsense"))] {
        assert_eq!(source.push(push.as_ref()), (ApplyResult::Ignored, Ok(())));
        assert_eq!(period(&source), Some(7));
    }
}

/// Waits for the next read of the file. Time is paused.
async fn look(source: &mut ProbeSource) -> Option<ApplyResult> {
    tokio::time::timeout(Duration::from_secs(6), source.changed()).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_file_that_changes() {
    let scratch = Scratch::new("changes", PROBE);
    let mut source = scratch.source();
    assert_eq!(look(&mut source).await, None);
    let exec = "{ exec: { command: [a] }, periodSeconds: 9 }";
    for (probe, expected, seconds, error) in [
        ("{ tcpSocket: { port: 1 }, periodSeconds: 8 }", ApplyResult::Applied, Some(8), None),
        (
            "{ tcpSocket: { port: 0 } }",
            ApplyResult::Rejected,
            Some(8),
            Some("spec.probe.tcpSocket.port: must be between 1 and 65535, got 0"),
        ),
        (
            "{ tcpSocket: { port: 16021 } }",
            ApplyResult::Rejected,
            Some(8),
            Some("spec.probe.tcpSocket.port: 16021 belongs to the proxy"),
        ),
        ("{ periodSeconds: 8, tcpSocket: { port: 1 } }", ApplyResult::Unchanged, Some(8), None),
        (exec, ApplyResult::Applied, Some(9), None),
        ("", ApplyResult::Applied, None, None),
    ] {
        scratch.write(probe);
        assert_eq!(look(&mut source).await, Some(expected), "{probe}");
        assert_eq!((period(&source), source.error()), (seconds, error), "{probe}");
        assert_eq!(look(&mut source).await, None, "{probe}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_removed_and_restored() {
    let scratch = Scratch::new("vanishes", PROBE);
    let mut source = scratch.source();
    std::fs::remove_file(&scratch.0).unwrap();
    assert_eq!(look(&mut source).await, Some(ApplyResult::Rejected));
    assert_eq!(period(&source), Some(7));
    assert!(source.error().is_some_and(|error| error.contains("No such file")), "{:?}", source.error());
    scratch.write(PROBE);
    assert_eq!((look(&mut source).await, source.error()), (Some(ApplyResult::Unchanged), None));
}

#[test]
fn pushed_exec_probes_require_a_flag() {
    let exec = json!({"exec": {"command": ["a"]}});
    for allow_pushed_exec in [true, false] {
        let mut source =
            ProbeSource::new(None, LocalRules { proxy_ports: ProxyPorts::default(), allow_pushed_exec });
        assert_eq!(source.as_str(), "none");
        assert_eq!(source.push(Some(&exec)).1.is_ok(), allow_pushed_exec);
        assert_eq!(source.probe().is_some(), allow_pushed_exec);
    }
}

#[test]
fn header_values_are_redacted() {
    let scratch = Scratch::new("hidden", PROBE);
    let source = scratch.source();
    let value = redacted(source.probe().unwrap());
    let headers = json!([{"name": "Host", "value": "a"}, {"name": "Token", "value": "***"}]);
    assert_eq!((&value["httpGet"]["httpHeaders"], &value["failureThreshold"]), (&headers, &json!(3)));
}
