use std::rc::Rc;
use std::time::Duration;

use probe::Reason;

use super::{FilterStatus, edit_chunk, run};
use crate::attributes::tests::Table;
use crate::attributes::{Attribute, Attributes, Unreadable};
use crate::config::Config;
use crate::decision::{Callout, CalloutSize};
use crate::host::{Host, LogLevel};
use crate::metrics::{Definition, Metric, MetricsHost};
use crate::recorder::Recorder;
use crate::stream::Stream;

const CONFIG: &str = r#"{"podIP":"10.0.0.5","hookCallers":["10.0.0.1"],"probers":{
    "/app-health/a/livez":{"httpGet":{"port":8080,"path":"/a"}},
    "/app-health/b/livez":{"grpc":{"port":9000}},
    "/app-lifecycle/a/prestopz":{"httpGet":{"port":8080}}}}"#;
const HTTP: &str = "/app-health/a/livez";
const GRPC: &str = "/app-health/b/livez";
const HOOK: &str = "/app-lifecycle/a/prestopz";
const UNDECLARED: &str = "/app-health/x/livez";

/// Envoy, which lists the calls that the filter makes. One of them fails.
struct FakeEnvoy {
    table: Table,
    failing: Option<(&'static str, Reason)>,
    calls: Vec<String>,
    /// In nanoseconds.
    now: u64,
}

impl FakeEnvoy {
    fn call(&mut self, name: &'static str, arguments: String) -> Result<(), Reason> {
        self.calls.push(format!("{name} {arguments}"));
        match self.failing {
            Some((failing, reason)) if failing == name => Err(reason),
            _ => Ok(()),
        }
    }
}

impl Attributes for FakeEnvoy {
    fn read(&self, attribute: Attribute) -> Result<Option<Vec<u8>>, Unreadable> {
        self.table.read(attribute)
    }

    fn elapsed(&self) -> Option<Duration> {
        self.table.elapsed()
    }
}

impl MetricsHost for FakeEnvoy {
    fn define(&mut self, _metric: Metric<'_>) -> Option<Definition> {
        Some(Definition { id: 0, is_new: true })
    }

    fn increment(&mut self, _id: usize, metric: Metric<'_>) {
        self.calls.push(format!("count {}", metric.tagged_name()));
    }

    fn set(&mut self, _id: usize, metric: Metric<'_>, value: u64) {
        self.calls.push(format!("set {} {value}", metric.tagged_name()));
    }
}

impl Host for FakeEnvoy {
    fn forward(&mut self, destination: &str, headers: &[(&[u8], &[u8])]) -> Result<(), Reason> {
        let paths = headers.iter().filter(|(name, _)| *name == b":path");
        let paths: Vec<_> = paths.map(|(_, value)| String::from_utf8_lossy(value)).collect();
        self.call("forward", format!("{} to {destination}", paths.concat()))
    }

    fn start_callout(&mut self, callout: &Callout<'_>) -> Result<u64, Reason> {
        self.call("callout", callout.cluster.into()).map(|()| 7)
    }

    fn replace_response(&mut self, status: u16) -> Result<(), Reason> {
        self.call("status", status.to_string())
    }

    fn replace_chunk(&mut self, size: usize, spaces: usize) -> Result<(), Reason> {
        self.call("chunk", format!("{size} {spaces}"))
    }

    fn send_local_reply(&mut self, status: u16, reason: Reason) -> Result<(), Reason> {
        self.call("reply", format!("{status} {}", reason.word()))
    }

    fn reset(&mut self) {
        self.calls.push("reset".into());
    }

    fn log(&mut self, level: LogLevel, text: &str) {
        self.calls.push(format!("{level:?} {text}"));
    }

    fn now(&self) -> u64 {
        self.now
    }
}

/// A stream whose request headers have arrived, and what Envoy was told.
struct Exchange {
    stream: Stream,
    envoy: FakeEnvoy,
    recorder: Recorder,
}

impl Exchange {
    /// Returns the exchange after its request, and what the callback returned.
    fn begin(path: &str, client: &str, failing: Option<(&'static str, Reason)>) -> (Self, FilterStatus) {
        let config = Config::parse(CONFIG.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let config = Rc::new(config);
        let table = Table::new([
            (Attribute::RequestHeader(":path"), path),
            (Attribute::RequestHeader(":method"), "GET"),
            (Attribute::SourceAddress, client),
        ]);
        let envoy = FakeEnvoy { table, failing, calls: Vec::new(), now: 0 };
        let mut exchange = Self { stream: Stream::default(), envoy, recorder: Recorder::default() };
        let Self { stream, envoy, recorder } = &mut exchange;
        let status =
            run(stream, envoy, recorder, &|stream, envoy| stream.on_request_headers(&config, envoy, false));
        (exchange, status)
    }

    fn respond(&mut self, status: &str) -> FilterStatus {
        self.envoy.table = Table::response(status, []);
        run(&mut self.stream, &mut self.envoy, &mut self.recorder, &Stream::on_response_headers)
    }
}

/// A stranger that calls a hook again and again must not suppress the lines about probes.
#[test]
fn refused_hook_calls_leave_the_log_to_probes() {
    let (mut exchange, _) = Exchange::begin(HOOK, "10.0.0.2:1", None);
    let config = Config::parse(CONFIG.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let hook = config.probe(HOOK.as_bytes()).expect("a declared hook");
    let probe = config.probe(HTTP.as_bytes()).expect("a declared probe");
    let Exchange { envoy, recorder, .. } = &mut exchange;
    (0..100).for_each(|_| recorder.refuse_hook(hook, b"10.0.0.2:1", envoy));
    recorder.record(probe, Reason::Timeout, envoy);
    let lines = envoy.calls.iter().filter(|call| call.starts_with("Warn ")).count();
    assert_eq!(lines, 10 + 1, "{:?}", envoy.calls);
    assert!(
        envoy.calls.iter().any(|call| call.starts_with("Warn probe a/livez: timeout")),
        "{:?}",
        envoy.calls
    );
    // The next line that is written says how many were not.
    envoy.calls.clear();
    envoy.now = 3600 * 1_000_000_000;
    recorder.refuse_hook(hook, b"10.0.0.2:1", envoy);
    let lines: Vec<_> = envoy.calls.iter().filter(|call| call.starts_with("Warn ")).collect();
    assert!(lines.len() == 2 && lines[0].contains("91 lines"), "{lines:?}");
}

#[test]
fn decisions_about_a_request() {
    let counter = |path: &str, reason| format!("count app_health_probes_total;{path};reason={reason}");
    let (http, grpc, hook) =
        ("container=a;kind=livez", "container=b;kind=livez", "container=a;kind=prestopz");
    let gauge = |path| format!("set app_health_probe_success;{path} 0");
    let line = |text: &str| format!("Warn {text}");
    let forward = |path: &str| format!("forward {path} to 10.0.0.5:8080");
    for (path, client, failing, status, calls) in [
        ("/", "10.0.0.1:1", None, FilterStatus::Continue, vec![]),
        (HTTP, "10.0.0.1:1", None, FilterStatus::Continue, vec![forward("/a")]),
        (GRPC, "10.0.0.1:1", None, FilterStatus::Pause, vec!["callout app_health_grpc".into()]),
        (
            UNDECLARED,
            "10.0.0.1:1",
            None,
            FilterStatus::Pause,
            vec!["count app_health_unknown_probes_total".into(), "reply 404 unknown_probe".into()],
        ),
        (
            UNDECLARED,
            "10.0.0.1:1",
            Some(("reply", Reason::Configuration)),
            FilterStatus::Pause,
            vec![
                "count app_health_unknown_probes_total".into(),
                "reply 404 unknown_probe".into(),
                "reset".into(),
            ],
        ),
        (
            HOOK,
            "10.0.0.2:1",
            None,
            FilterStatus::Pause,
            vec![
                counter(hook, "forbidden"),
                line("hook a/prestopz: forbidden to 10.0.0.2:1, see --allow-from"),
                "reset".into(),
            ],
        ),
        (
            HTTP,
            "10.0.0.1:1",
            Some(("forward", Reason::Configuration)),
            FilterStatus::Pause,
            vec![
                forward("/a"),
                counter(http, "configuration"),
                gauge(http),
                line("probe a/livez: configuration"),
                "reply 530 configuration".into(),
            ],
        ),
        (
            HOOK,
            "10.0.0.1:1",
            Some(("forward", Reason::Configuration)),
            FilterStatus::Pause,
            vec![
                forward("/"),
                counter(hook, "configuration"),
                gauge(hook),
                line("probe a/prestopz: configuration"),
                "reset".into(),
            ],
        ),
        (
            GRPC,
            "10.0.0.1:1",
            Some(("callout", Reason::Overloaded)),
            FilterStatus::Pause,
            vec![
                "callout app_health_grpc".into(),
                counter(grpc, "overloaded"),
                gauge(grpc),
                line("probe b/livez: overloaded"),
                "reply 503 overloaded".into(),
            ],
        ),
    ] {
        let (exchange, found) = Exchange::begin(path, client, failing);
        assert_eq!((found, exchange.envoy.calls), (status, calls), "{path} {client} {failing:?}");
    }
}

#[test]
fn decisions_about_a_response() {
    for (path, code, failing, status, calls) in [
        (
            HTTP,
            "200",
            None,
            FilterStatus::Continue,
            vec![
                "status 200",
                "count app_health_probes_total;container=a;kind=livez;reason=ok",
                "set app_health_probe_success;container=a;kind=livez 1",
            ],
        ),
        (
            HTTP,
            "200",
            Some(("status", Reason::Configuration)),
            FilterStatus::Pause,
            vec![
                "status 200",
                "count app_health_probes_total;container=a;kind=livez;reason=configuration",
                "set app_health_probe_success;container=a;kind=livez 0",
                "Warn probe a/livez: configuration",
                "reply 530 configuration",
            ],
        ),
        (
            HOOK,
            "101",
            None,
            FilterStatus::Pause,
            vec![
                "count app_health_probes_total;container=a;kind=prestopz;reason=protocol",
                "set app_health_probe_success;container=a;kind=prestopz 0",
                "Warn probe a/prestopz: protocol",
                "reset",
            ],
        ),
    ] {
        let (mut exchange, _) = Exchange::begin(path, "10.0.0.1:1", failing);
        exchange.envoy.calls.clear();
        let found = exchange.respond(code);
        assert_eq!(exchange.envoy.calls, calls, "{path} {code} {failing:?}");
        assert_eq!(found, status, "{path} {code} {failing:?}");
        exchange.envoy.calls.clear();
        assert_eq!(exchange.respond(code), FilterStatus::Continue, "a second response");
        assert!(exchange.envoy.calls.is_empty(), "{:?}", exchange.envoy.calls);
    }
}

#[test]
fn decision_about_a_callout() {
    let (Exchange { mut stream, mut envoy, mut recorder }, _) = Exchange::begin(GRPC, "10.0.0.1:1", None);
    assert!(stream.awaits(7), "the stream has the token of its callout");
    envoy.calls.clear();
    let status = run(&mut stream, &mut envoy, &mut recorder, &|stream, envoy| {
        stream.on_callout_response(CalloutSize::default(), envoy)
    });
    let calls = [
        "count app_health_probes_total;container=b;kind=livez;reason=grpc_error",
        "set app_health_probe_success;container=b;kind=livez 0",
        "Warn probe b/livez: grpc_error",
        "reply 526 grpc_error",
    ];
    assert_eq!((status, envoy.calls.as_slice()), (FilterStatus::Pause, calls.map(str::to_owned).as_slice()));
}

#[test]
fn edits_of_a_chunk() {
    for (size, failing, status, calls) in [
        (0, None, FilterStatus::Continue, vec![]),
        (5, None, FilterStatus::Continue, vec!["chunk 5 0"]),
        (20_000, None, FilterStatus::Continue, vec!["chunk 20000 10241"]),
        (5, Some(("chunk", Reason::Configuration)), FilterStatus::Pause, vec!["chunk 5 0", "reset"]),
    ] {
        let (mut exchange, _) = Exchange::begin(HTTP, "10.0.0.1:1", failing);
        exchange.respond("200");
        exchange.envoy.calls.clear();
        let found = edit_chunk(&mut exchange.stream, &mut exchange.envoy, size, false);
        assert_eq!(found, status, "{size} {failing:?}");
        assert_eq!(exchange.envoy.calls, calls, "{size} {failing:?}");
    }
}
