//! Tests that every flag of the agent can be set by its environment variable. A value that the flag
//! rejects is rejected with the flag's name; for flags that accept any text, the test looks at the
//! effect.

use std::path::Path;

use app_health_agent::args::Args;
use clap::CommandFactory as _;
use kit::agent;
use kit::envoy;
use kit::net;

/// A value that every flag rejects, except those in [`ANY_TEXT`].
const REFUSED: &str = "?";

/// Commands and their flags that accept any text; [`variables_may_contain_any_text`] has a row for each.
const ANY_TEXT: [(&str, &str); 15] = [
    ("run", "state-dir"),
    ("run", "filter-wasm"),
    ("run", "envoy-config"),
    ("run", "user-config"),
    ("run", "envoy"),
    ("run", "metrics-target"),
    ("run", "discovery-ca"),
    ("run", "discovery-cert"),
    ("run", "discovery-key"),
    ("run", "discovery-token-file"),
    ("bootstrap", "state-dir"),
    ("bootstrap", "filter-wasm"),
    ("bootstrap", "output"),
    ("wait", "noSidecar"),
    ("wait", "terminationMessage"),
];

/// Returns command, flag and environment variable of every flag that the command line defines.
fn flags() -> Vec<(String, String, String)> {
    let args = Args::command();
    let commands = args.get_subcommands().filter(|command| !command.is_hide_set());
    let flags = commands.flat_map(|command| {
        command.get_arguments().filter_map(|flag| {
            let twin = flag.get_env()?.to_str().expect("a name").to_owned();
            Some((command.get_name().to_owned(), flag.get_long()?.to_owned(), twin))
        })
    });
    flags.collect()
}

#[tokio::test]
async fn an_invalid_variable_is_rejected_with_the_name_of_its_flag() {
    let flags = flags();
    let is_any_text = |command: &str, flag: &str| ANY_TEXT.contains(&(command, flag));
    let told = flags.iter().filter(|(command, flag, _)| is_any_text(command, flag)).count();
    assert_eq!(told, ANY_TEXT.len(), "{flags:?}");
    assert!(flags.len() > 50, "{flags:?}");
    for (command, flag, twin) in flags.iter().filter(|(command, flag, _)| !is_any_text(command, flag)) {
        let outcome = agent::run(&[command], &[(twin, REFUSED)]).await;
        assert_eq!(outcome.code, Some(64), "{command} --{flag} by {twin}: {outcome:?}");
        assert!(outcome.stderr.contains(&format!("--{flag}")), "{twin}: {outcome:?}");
        assert!(outcome.stderr.contains(REFUSED), "{twin}: {outcome:?}");
    }
}

/// Each row has the command line, the environment variable and its value, the exit code, and words
/// that stdout or stderr must contain.
#[tokio::test]
async fn variables_may_contain_any_text() {
    let folder = envoy::folder("agent-flags");
    let path = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let (state, message, output) = (path("state"), path("message"), path("output"));
    std::fs::write(path("file"), "").expect("a writable folder");
    let below_a_file = path("file/state");
    let ready = format!("{}:15021", net::loopback());
    let local = format!("{}:15004", net::loopback());
    let url = format!("http://{ready}/healthz/ready");
    let run: &[&str] =
        &["run", "--ready-address", &ready, "--local-address", &local, "--stats-address", "off"];
    let with_true =
        [run, &["--envoy", "/bin/true", "--envoy-version", "1.40", "--state-dir", &state]].concat();
    let below = [run, &["--envoy", "/bin/true", "--envoy-version", "1.40"]].concat();
    let bootstrap: &[&str] = &["bootstrap", "--instance-ip", "10.0.0.5"];
    let wait: &[&str] = &["wait", "--timeoutSeconds", "0", "--url", &url];
    // The error names the first file that cannot be read.
    let file = path("file");
    let report = [run, &["--no-envoy", "--discovery", "127.0.0.1:9", "--group", "g"]].concat();
    let with = |flags: &[&str]| -> Vec<String> {
        report.iter().chain(flags).map(|word| (*word).to_owned()).collect()
    };
    let without_ca = with(&["--discovery-cert", "/no/x", "--discovery-key", "/no/x"]);
    let without_cert = with(&["--discovery-ca", &file, "--discovery-key", "/no/x"]);
    let without_key = with(&["--discovery-ca", &file, "--discovery-cert", &file]);
    let without_certificate = with(&["--discovery-ca", &file]);
    for (line, twin, words) in [
        (&without_ca, "APP_HEALTH_DISCOVERY_CA", "--discovery-ca = \"/no/file\""),
        (&without_cert, "APP_HEALTH_DISCOVERY_CERT", "--discovery-cert = \"/no/file\""),
        (&without_key, "APP_HEALTH_DISCOVERY_KEY", "--discovery-key = \"/no/file\""),
        (&without_certificate, "APP_HEALTH_DISCOVERY_TOKEN_FILE", "--discovery-token-file = \"/no/file\""),
    ] {
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let outcome = agent::run(&line, &[(twin, "/no/file")]).await;
        assert!(outcome.code == Some(64) && outcome.stderr.contains(words), "{twin}: {outcome:?}");
    }
    let rows: [(&[&str], &str, &str, i32, &str); 10] = [
        (&below, "APP_HEALTH_STATE_DIR", &below_a_file, 73, &below_a_file),
        (&with_true, "APP_HEALTH_ENVOY_CONFIG", "/no/config", 64, "--envoy-config = \"/no/config\""),
        (&with_true, "APP_HEALTH_USER_CONFIG", "/no/part", 64, "--user-config = \"/no/part\""),
        (run, "APP_HEALTH_ENVOY", "/no/envoy", 64, "--envoy = \"/no/envoy\""),
        // `/bin/true` exits at once, so the agent exits with 70; its log already contains the
        // value.
        (&with_true, "APP_HEALTH_METRICS_TARGET", "15021,9100/x", 70, "--metrics-target: port \"15021\""),
        (&with_true, "APP_HEALTH_FILTER_WASM", "/no/filter.wasm", 70, "Envoy exited unexpectedly"),
        (&[bootstrap, &["--inline-filter"]].concat(), "APP_HEALTH_STATE_DIR", &state, 0, "/state/admin.sock"),
        (bootstrap, "APP_HEALTH_FILTER_WASM", "/a/filter.wasm", 0, "\"/a/filter.wasm\""),
        (wait, "APP_HEALTH_WAIT_NO_SIDECAR", "any", 0, "sidecar"),
        (wait, "APP_HEALTH_WAIT_TERMINATION_MESSAGE", &message, 69, "not ready"),
    ];
    for (line, twin, value, code, words) in rows {
        let outcome = agent::run(line, &[(twin, value)]).await;
        assert_eq!(outcome.code, Some(code), "{line:?} with {twin}={value}: {outcome:?}");
        let told = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(told.contains(words), "{line:?} with {twin}={value}: {outcome:?}");
    }
    let rendered =
        std::fs::read_to_string(folder.join("state/envoy.json")).expect("the agent wrote the file");
    assert!(rendered.contains("\"/no/filter.wasm\""), "{rendered}");
    assert!(std::fs::read_to_string(&message).expect("the agent wrote the file").contains("not ready"));

    let line = [bootstrap, &["--filter-wasm", "/a/filter.wasm"]].concat();
    let outcome = agent::run(&line, &[("APP_HEALTH_OUTPUT", &output)]).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{outcome:?}");
    assert!(Path::new(&output).exists());
}
