//! Which form of the filter the agent gives to Envoy, and what happens if Envoy rejects it.

use kit::envoy::Version;
use kit::sidecar::{Builder, Sidecar};
use kit::{agent, pod, wait};
use serde_json::{Value, json};

use crate::exit::script;

/// Returns a script that runs the newest Envoy after `command`, in which `$STATE` is the state
/// directory; a query of the version runs Envoy alone.
fn envoy_after(builder: &Builder, command: &str) -> String {
    let (envoy, state) = (Version::Newest.binary(), builder.folder.join("state"));
    let (envoy, state) = (envoy.display(), state.display());
    let text = format!("[ \"$1\" = --version ] || {{ STATE={state}; {command}; }}\nexec {envoy} \"$@\"");
    script(&builder.folder, &text).to_str().expect("a path").to_owned()
}

/// Images without a shell or compiler, such as Envoy's distroless ones, lack it. The agent for Pods needs
/// no shared library at all.
#[test]
fn neither_the_agent_nor_the_native_form_needs_libgcc() {
    for file in [agent::binary(), pod::module()] {
        let bytes = std::fs::read(&file).expect("a built file");
        assert!(!bytes.windows(13).any(|text| text == b"libgcc_s.so.1"), "{}", file.display());
    }
}

async fn shown(sidecar: &Sidecar) -> Value {
    let state = sidecar.local("GET /debug/state", "Host: localhost\r\n").await.text();
    serde_json::from_str::<Value>(&state).expect("JSON")["filter"].take()
}

async fn is_counted(sidecar: &Sidecar, form: &str, reason: &str) -> bool {
    let series = format!("app_health_agent_filter_info{{form=\"{form}\",reason=\"{reason}\"}}");
    let all = sidecar.metric("app_health_agent_filter_info").await;
    (all, sidecar.metric(&series).await) == (1.0, 1.0)
}

#[tokio::test]
async fn a_tested_envoy_runs_the_native_form() {
    let sidecar = Builder::new("filter-tested").start();
    sidecar.until(200, "ready").await;
    assert_eq!(shown(&sidecar).await, json!({"form": "native", "reason": "tested_version"}));
    assert!(is_counted(&sidecar, "native", "tested_version").await);
}

/// A disk can be slow when the node starts.
#[tokio::test]
async fn a_slow_query_of_the_version_is_awaited() {
    let builder = Builder::bare("filter-slow");
    let (go, envoy) = (builder.folder.join("go"), Version::Newest.binary());
    let wait_for_file =
        format!("[ \"$1\" = --version ] && until [ -e {} ]; do sleep 0.1; done", go.display());
    let script = script(&builder.folder, &format!("{wait_for_file}\nexec {} \"$@\"", envoy.display()));
    let sidecar = builder.args(&["--envoy", script.to_str().expect("a path")]).start();
    let what = || format!("the slow query is logged\n{}", sidecar.log());
    wait::until_or(what, async || sidecar.log().contains("--version has not finished after 5 s")).await;
    std::fs::write(&go, "").expect("a writable folder");
    sidecar.until(200, "ready").await;
    assert_eq!(shown(&sidecar).await, json!({"form": "native", "reason": "tested_version"}));
}

#[tokio::test]
async fn an_envoy_that_cannot_load_the_native_form_runs_the_wasm_form() {
    for (name, command) in [
        ("missing", "rm \"$STATE\"/*.so"),
        ("not-ours", "sed -i s/_on_program_init/_on_program_none/ \"$STATE\"/*.so"),
    ] {
        let builder = Builder::bare(&format!("filter-{name}"));
        let envoy = envoy_after(&builder, &format!("[ ! -e \"$STATE\"/*.so ] || {command}"));
        let sidecar = builder.args(&["--envoy", &envoy]).start();
        sidecar.until(200, "ready").await;
        let shown = shown(&sidecar).await;
        assert_eq!(shown, json!({"form": "wasm", "reason": "rejected"}), "{name}: {}", sidecar.log());
        assert!(is_counted(&sidecar, "wasm", "rejected").await, "{name}");
        assert!(sidecar.log().contains("trying the wasm form of the filter"), "{}", sidecar.log());
        let bootstrap = sidecar.local("GET /debug/bootstrap", "Host: localhost\r\n").await.text();
        assert!(bootstrap.contains("envoy.filters.http.wasm"), "{bootstrap}");
    }
}

/// The user asked for the native form, so nothing else is tried.
#[tokio::test]
async fn a_native_form_that_was_asked_for_and_cannot_be_loaded_is_an_error() {
    let builder = Builder::bare("filter-flag");
    let envoy = envoy_after(&builder, "rm -f \"$STATE\"/*.so");
    let sidecar = builder.args(&["--envoy", &envoy, "--filter", "native"]).start();
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(64), "{log}");
    let last = log.lines().last().unwrap_or_default();
    assert!(
        last.contains("Envoy rejected its configuration") && last.contains("Failed to load dynamic module"),
        "{last}"
    );
}
