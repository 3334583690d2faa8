//! Decides which kind of known difference a generated case may show. All other cases must be equal.

use super::case::{Case, Connection, Listens, Step};
use super::compare::Difference;
use super::kind::Kind;
use super::strict_http1::{self, Answer};
use super::strict_http2;
use kit::pod::{self, Form};

/// Bounds of a response head: 1 MiB, and a number of lines well below Envoy's limit of 1000.
const HEAD: usize = 1 << 20;
const LINES: usize = 990;
/// Upper bound of a gRPC health response, in bytes.
const MESSAGE: usize = 16 << 10;
/// HTTP/2 errors after which Go's client retries (RFC 9113, section 7): `PROTOCOL_ERROR`,
/// `REFUSED_STREAM`.
const ASKED_AGAIN: [u32; 2] = [1, 7];

/// Returns the kind of a difference if the case may show one.
pub fn kind(case: &Case, difference: &Difference) -> Option<Kind> {
    if pod::form() == Form::Agent {
        return agent_kind(case).filter(|_| *difference == Difference::Requests);
    }
    if *difference == Difference::ConnectionHeaders || refused_by_http2(case) {
        return Some(Kind::D7);
    }
    let shown = |kind: &Kind| match kind {
        Kind::D6 => key_usage(case),
        Kind::D4 => sizes(case),
        Kind::D3 => redirects(case),
        Kind::D2 => second_try(case),
        Kind::D1 => codecs(case),
        Kind::D5 | Kind::D7 | Kind::A1 | Kind::A2 => false,
    };
    [Kind::D6, Kind::D4, Kind::D3, Kind::D2, Kind::D1].into_iter().find(shown)
}

/// Returns the kind of a difference in the requests of the agent, whose verdicts never differ.
fn agent_kind(case: &Case) -> Option<Kind> {
    if second_try(case) {
        return Some(Kind::A1);
    }
    is_padded(case).then_some(Kind::A2)
}

/// Returns true if a request over TLS has whitespace around a declared value.
fn is_padded(case: &Case) -> bool {
    case.probe.is_https() && declared(case).iter().any(|(_, value)| value.trim() != value)
}

/// Go's HTTP/2 client refuses to send connection-specific headers; the filter omits them.
fn refused_by_http2(case: &Case) -> bool {
    const REFUSED: [&str; 3] = ["connection", "upgrade", "transfer-encoding"];
    case.probe.is_https() && declared(case).iter().any(|(name, _)| REFUSED.contains(&name.as_str()))
}

fn key_usage(case: &Case) -> bool {
    apps(case).any(|app| app.tls.as_ref().is_some_and(|tls| tls.no_signature))
}

fn sizes(case: &Case) -> bool {
    connections(case).any(|connection| {
        let bytes = written(connection);
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
        let lines = bytes[..head].iter().filter(|byte| **byte == b'\n').count();
        let data: usize = connection.steps.iter().map(payload).sum();
        head > HEAD || lines > LINES || (case.probe.grpc.is_some() && data > MESSAGE)
    })
}

/// Returns whether a redirect occurs and any response of the case is incomplete or delayed.
fn redirects(case: &Case) -> bool {
    let location = |connection: &Connection| {
        let fields = connection.steps.iter().any(|step| match step {
            Step::Headers { fields, .. } => fields.iter().any(|(name, _)| name.0 == b"location"),
            _ => false,
        });
        let bytes = written(connection).to_ascii_lowercase();
        fields || bytes.windows(10).any(|window| window == b"\nlocation:")
    };
    let odd = |step: &Step| {
        matches!(
            step,
            Step::Endless(_) | Step::Hang | Step::Reset | Step::Wait(_) | Step::Drip { .. } | Step::Close
        )
    };
    let whole = |connection: &Connection| {
        !connection.steps.iter().any(odd)
            && match strict_http1::judge(&written(connection)) {
                Answer::Complete | Answer::UntilClose => true,
                // The script contains only frames.
                Answer::Incomplete => strict_http2::ends(&connection.steps),
                Answer::Invalid(_) => false,
            }
    };
    connections(case).any(location) && !connections(case).all(whole)
}

/// Returns whether a client would retry within the probe: the gRPC client, or the HTTP/2 client.
fn second_try(case: &Case) -> bool {
    let refuses = |step: &Step| {
        matches!(step, Step::GoAway { .. })
            || matches!(step, Step::ResetStream(code) if ASKED_AGAIN.contains(code))
    };
    let refused = connections(case).any(|connection| connection.steps.iter().any(refuses));
    let has_several_scripts = case.probe.grpc.is_some() && case.app.connections.len() > 1;
    refused || has_several_scripts || (case.probe.grpc.is_some() && case.app.listens != Listens::Accepts)
}

/// Returns whether a response violates an RFC, or Envoy writes the request headers differently.
fn codecs(case: &Case) -> bool {
    let odd = |connection: &Connection| {
        if connection.steps.iter().any(strict_http2::is_frame) {
            return !strict_http2::is_valid(&connection.steps);
        }
        let resets = connection.steps.iter().any(|step| matches!(step, Step::Reset));
        match strict_http1::judge(&written(connection)) {
            Answer::Invalid(_) => true,
            Answer::UntilClose => resets,
            Answer::Complete | Answer::Incomplete => false,
        }
    };
    let declared = declared(case);
    let names: Vec<&String> = declared.iter().map(|(name, _)| name).collect();
    let twice = names.iter().enumerate().any(|(index, name)| names[..index].contains(name));
    let plain = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    // The filter sends its own `Connection` header in addition to the declared one.
    let connection = names.iter().any(|name| *name == "connection");
    // Over HTTP/2, Go sends whitespace around a value, which RFC 9113 forbids; the filter does not.
    let padded = is_padded(case);
    // Envoy sets this header itself and never to an empty value.
    let no_scheme = declared.iter().any(|(name, value)| name == "x-forwarded-proto" && value.is_empty());
    twice
        || connection
        || padded
        || no_scheme
        || !names.iter().all(|name| plain(name))
        || connections(case).any(odd)
}

/// Returns the declared headers, with names in lower case.
fn declared(case: &Case) -> Vec<(String, String)> {
    let headers = case.probe.http_get.as_ref().and_then(|get| get["httpHeaders"].as_array());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let pair =
        |header: &serde_json::Value| (text(&header["name"]).to_ascii_lowercase(), text(&header["value"]));
    headers.into_iter().flatten().map(pair).collect()
}

fn apps(case: &Case) -> impl Iterator<Item = &super::case::App> {
    [&case.app].into_iter().chain(case.also.values())
}

fn connections(case: &Case) -> impl Iterator<Item = &Connection> {
    apps(case).flat_map(|app| &app.connections)
}

/// Returns all HTTP/1 bytes that are written on a connection.
fn written(connection: &Connection) -> Vec<u8> {
    let bytes = |step: &Step| match step {
        Step::Write(bytes) | Step::Drip { bytes, .. } | Step::Endless(bytes) => bytes.0.clone(),
        Step::Repeat { bytes, times } => bytes.0.repeat(usize::try_from(*times).unwrap_or(0)),
        _ => Vec::new(),
    };
    connection.steps.iter().flat_map(bytes).collect()
}

fn payload(step: &Step) -> usize {
    match step {
        Step::Data { bytes, .. } => bytes.0.len(),
        _ => 0,
    }
}
