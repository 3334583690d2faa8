//! Tests of `--log-format json`: every line on stderr is a JSON object, whatever wrote it.

use std::net::SocketAddr;
use std::path::PathBuf;

use kit::agent;
use kit::net;
use kit::process::children;
use kit::sidecar::{Builder, Sidecar};
use kit::wait;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::exit::script;

const VERSION: &str = "[ \"$1\" = --version ] && echo 'envoy  version: x/1.40.0/Clean' && exit 0\n";

fn parsed(log: &str) -> Vec<Value> {
    let parse = |line: &str| {
        let value: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}\n{log}"));
        assert!(value.is_object(), "{line:?}");
        value
    };
    let lines: Vec<_> = log.lines().map(parse).collect();
    assert!(!lines.is_empty());
    lines
}

fn message(line: &Value) -> &str {
    line["fields"]["message"].as_str().unwrap_or_default()
}

/// Starts a script in place of Envoy.
fn scripted(name: &str, text: &str) -> Sidecar {
    let builder = Builder::bare(name);
    let script = script(&builder.folder, &format!("{VERSION}{text}"));
    let flags = ["--envoy", script.to_str().expect("a path"), "--log-format", "json", "--data-path", "off"];
    builder.args(&flags).start_plain()
}

#[tokio::test]
async fn lines_of_envoy_and_the_final_error() {
    let sidecar =
        Builder::new("json-envoy").args(&["--log-format", "json"]).envoy_args(&["-l", "info"]).start();
    sidecar.until(200, "ready").await;
    kill(sidecar.envoy_pid(), Signal::SIGKILL).expect("Envoy runs");
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(70), "{log}");
    let lines = parsed(&log);
    let of = |target: &str| lines.iter().filter(|line| line["target"] == target).count();
    assert!(of("envoy::main") > 10 && of("app_health_agent::state") > 0, "{log}");
    let last = lines.last().expect("a line");
    assert_eq!((&last["level"], &last["target"]), (&"ERROR".into(), &"app_health_agent".into()), "{log}");
    assert_eq!(message(last), "Envoy exited unexpectedly, terminated by SIGKILL");
    assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["level"].is_string()), "{log}");
}

#[tokio::test]
async fn objects_of_envoys_own_format_are_unchanged() {
    let envoy_args = ["-l", "info", "--log-format", "{\"mine\": \"%j\"}"];
    let sidecar = Builder::new("json-own").args(&["--log-format", "json"]).envoy_args(&envoy_args).start();
    sidecar.until(200, "ready").await;
    sidecar.signal(Signal::SIGTERM);
    sidecar.until(503, "draining").await;
    sidecar.signal(Signal::SIGTERM);
    let lines = parsed(&sidecar.end().await.1);
    assert!(lines.iter().filter(|line| line["mine"].is_string()).count() > 10, "{lines:?}");
}

/// A crash prints plain text, of which the last line may lack its line break.
#[tokio::test]
async fn the_last_lines_of_an_envoy_that_crashes_are_written_before_the_final_error() {
    let text = "case \"$*\" in *validate*) exit 0;; esac\n\
                echo 'envoy: error while loading shared libraries' >&2\n\
                seq 2000 >&2; printf 'Segmentation fault\\n  at \"main\"' >&2; exit 7";
    let (code, log) = scripted("json-crash", text).end().await;
    assert_eq!(code, Some(70), "{log}");
    let lines = parsed(&log);
    let messages: Vec<_> = lines.iter().map(message).collect();
    let place = |wanted: &str| {
        messages.iter().position(|found| *found == wanted).unwrap_or_else(|| panic!("{wanted}: {log}"))
    };
    let first = place("envoy: error while loading shared libraries");
    let numbers = (1..=2000).map(|number| place(&number.to_string()));
    let places =
        [vec![first], numbers.collect(), vec![place("Segmentation fault"), place("  at \"main\"")]].concat();
    assert!(places.is_sorted(), "{log}");
    assert!(places.last().is_some_and(|last| last + 1 < lines.len()), "{log}");
    assert_eq!(messages.last(), Some(&"Envoy exited unexpectedly, with code 7"), "{log}");
}

/// Kills the process whose id is in the file.
struct KilledAtEnd(PathBuf);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(&self.0).ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = pid {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// A process that has inherited Envoy's stderr does not delay the exit for ever.
#[tokio::test]
async fn a_process_that_keeps_stderr_open_does_not_hold_the_agent() {
    let text = "case \"$*\" in *validate*) exit 0;; esac\npid=${0%/*}/pid\n\
                setsid sh -c 'echo $$ >\"$1\"; exec sleep 100000' sh \"$pid\" &\n\
                until [ -s \"$pid\" ]; do sleep 0.1; done; echo last >&2\nexit 7";
    let sidecar = scripted("json-holder", text);
    let _holder = KilledAtEnd(sidecar.folder.join("pid"));
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(70), "{log}");
    assert!(parsed(&log).iter().any(|line| message(line) == "last"), "{log}");
}

/// Each row has a command line without `run`, whether the format is a variable, and words of the error.
#[tokio::test]
async fn errors_before_the_log_exists() {
    let json = ["--log-format", "json"];
    for (words, is_variable, expected) in [
        (&["--bogus"][..], false, "--bogus"),
        (&["--bogus"], true, "--bogus"),
        (&["--no-envoy", "--local-group", "root"], false, "--local-group"),
        (&["--envoy", "/no/envoy"], true, "/no/envoy"),
        (&["--envoy", "/bin/false"], false, "/bin/false"),
    ] {
        let mut line = vec!["run"];
        line.extend(words);
        let variable = is_variable.then_some(("APP_HEALTH_LOG_FORMAT", "json"));
        if !is_variable {
            line.extend(json);
        }
        let outcome = agent::run(&line, variable.as_slice()).await;
        assert_eq!(outcome.code, Some(64), "{line:?}: {outcome:?}");
        let lines = parsed(&outcome.stderr);
        assert!(message(lines.last().expect("a line")).contains(expected), "{outcome:?}");
    }
}

/// If nothing reads the agent's stderr, lines are dropped and Envoy continues.
#[tokio::test]
async fn a_blocked_stderr_does_not_block_envoy() {
    let folder = kit::envoy::folder("json-blocked");
    let written = folder.join("written");
    let text = format!("{VERSION}seq 300000 >&2\ntouch {}\nexec sleep 1000", written.display());
    let script = script(&folder, &text);
    let ip = net::loopback();
    let mut command = agent::command(&["run", "--log-format", "json", "--data-path", "off", "--envoy"]);
    command.arg(script).arg("--state-dir").arg(folder.join("state"));
    for (flag, port) in [
        ("--ready-address", 15021),
        ("--local-address", 15004),
        ("--probe-address", 15020),
        ("--stats-address", 15090),
    ] {
        command.arg(flag).arg(SocketAddr::new(ip, port).to_string());
    }
    let running = command.spawn().expect("the agent starts");
    wait::until("the script has written 2 MB to stderr", async || written.exists()).await;
    let pid = Pid::from_raw(running.id().and_then(|pid| i32::try_from(pid).ok()).expect("a pid"));
    assert_eq!(children(pid).len(), 1);
    kill(pid, Signal::SIGTERM).expect("the agent runs");
    let outcome = agent::finish(running).await;
    assert_eq!(outcome.code, Some(143));
    let lines = parsed(&outcome.stderr);
    assert!(lines.iter().any(|line| message(line).ends_with("lines dropped: stderr was not read")));
    assert!(message(lines.last().expect("a line")).starts_with("SIGTERM before"), "{:?}", lines.last());
}
