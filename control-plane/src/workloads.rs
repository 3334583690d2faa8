//! The command `workloads`: queries discovery's monitoring port, and prints one line per workload
//! like kubectl.

use std::time::Duration;

use bytes::Bytes;
use comfy_table::{Table, presets};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use crate::args::discovery::Output;
use crate::config::WorkloadsConfig;
use crate::files::write_stdout;
use serving::exit::Failure;
use serving::local_request::CHANGE;
use serving::runtime;

/// Timeout of a request.
const DEADLINE: Duration = Duration::from_secs(5);
/// Maximum size of a response in bytes.
const LIMIT: usize = 64 << 20;
/// Interval of requests with `--watch`.
const INTERVAL: Duration = Duration::from_secs(1);
const NONE: &str = "<none>";
const COLUMNS: [&str; 8] =
    ["NAMESPACE", "NAME", "GROUP", "ADDRESS", "ENDPOINT", "HEALTHY", "WHY", "LAST REPORT"];

/// Prints the workloads once, or with `--watch` until the process is stopped.
pub fn run(config: WorkloadsConfig) -> Result<(), Failure> {
    runtime::block_on(&mut Builder::new_current_thread(), print(config))
}

async fn print(config: WorkloadsConfig) -> Result<(), Failure> {
    let WorkloadsConfig { authority, path, releases, output, watch } = config;
    if releases {
        let text = fetch(Method::POST, &authority, &path).await?;
        return write_stdout(&printable::lines(&String::from_utf8_lossy(&text)));
    }
    let mut last = None;
    loop {
        let text = fetch(Method::GET, &authority, &path).await?;
        let view: Value = serde_json::from_slice(&text).map_err(|error| {
            Failure::Unavailable(format!("--url: {authority}: the response is not JSON: {error}"))
        })?;
        let shown = match output {
            Output::Json => printable::json(&format!("{view:#}\n")).into_owned(),
            Output::Table => table(&view),
        };
        // Ages always grow; that alone is not a change.
        let state = without_ages(&view);
        if last.as_ref() != Some(&state) {
            write_stdout(&shown)?;
            last = Some(state);
        }
        if !watch {
            return Ok(());
        }
        sleep(INTERVAL).await;
    }
}

async fn fetch(method: Method, authority: &str, path: &str) -> Result<Bytes, Failure> {
    let unavailable = |error: String| {
        Failure::Unavailable(format!("--url: {authority}: {error}; is app-health discovery running there?"))
    };
    match timeout(DEADLINE, send_request(method, authority, path)).await {
        Err(_) => Err(unavailable("no response within 5 s".to_owned())),
        Ok(Err(error)) => Err(unavailable(error.to_string())),
        Ok(Ok((StatusCode::OK, body))) => Ok(body),
        Ok(Ok((status, body))) => {
            let line = String::from_utf8_lossy(&body);
            Err(unavailable(format!("{status}: {}", workload_health::text::printable(line.trim()))))
        }
    }
}

async fn send_request(
    method: Method,
    authority: &str,
    path: &str,
) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driven = tokio::spawn(connection);
    let request =
        Request::builder().method(method).uri(path).header(HOST, authority).header(CHANGE, "release");
    let request = request.body(Empty::<Bytes>::new())?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, LIMIT).collect().await?.to_bytes();
    driven.abort();
    Ok((head.status, body))
}

/// Renders one line per workload, followed by the configuration errors.
fn table(view: &Value) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(COLUMNS);
    let workloads = view["workloads"].as_array().map_or(&[][..], Vec::as_slice);
    for workload in workloads {
        let text = |value: &Value| {
            let text = value.as_str().filter(|text| !text.is_empty()).unwrap_or(NONE);
            printable::line(text).into_owned()
        };
        let condition = &workload["condition"];
        let why = match (workload["why"].as_str().unwrap_or_default(), condition["message"].as_str()) {
            (why, Some(message)) if !message.is_empty() => format!("{why}: {message}"),
            (why, _) => why.to_owned(),
        };
        table.add_row([
            text(&workload["namespace"]),
            text(&workload["name"]),
            text(&workload["group"]),
            text(&workload["address"]),
            text(&workload["endpoint"]),
            text(&condition["status"]),
            printable::line(&why).into_owned(),
            workload["agent"]["lastReportAgoMs"].as_u64().map_or_else(|| NONE.to_owned(), age),
        ]);
    }
    let mut lines = if workloads.is_empty() {
        "No workloads found.\n".to_owned()
    } else {
        let lines = table.lines().map(|line| format!("{}\n", line.trim()));
        lines.collect()
    };
    for service in view["selfPreservingServices"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        lines.push_str(&format!(
            "self-preservation: {}: too many machines became silent; if they are gone, run `app-health workloads release`\n",
            printable::line(service)
        ));
    }
    for error in view["configErrors"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        lines.push_str(&format!("error: {}\n", printable::line(error)));
    }
    lines
}

/// Formats an age like kubectl: `8s`, `5m`, `3h`, `2d`.
fn age(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Removes the fields that change without an event.
fn without_ages(view: &Value) -> Value {
    let mut view = view.clone();
    let workloads = view["workloads"].as_array_mut();
    for workload in workloads.into_iter().flatten() {
        workload["agent"]["lastReportAgoMs"].take();
        workload["condition"]["lastProbeTime"].take();
    }
    view["clients"].take();
    view
}

#[cfg(test)]
mod tests;
