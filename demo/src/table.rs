//! The demo's table: each probe, and the response that kubelet would receive.

use std::net::SocketAddr;
use std::time::Duration;

use comfy_table::Table;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::Instant;

use crate::application::Application;
use crate::http;

pub(crate) struct Row {
    path: String,
    prober: String,
    runs: u64,
    status: u16,
    reason: String,
    latency: Duration,
    expected: Option<bool>,
}

impl Row {
    /// Returns the row of a probe that has not run yet.
    pub(crate) fn new(path: &str, prober: &Value) -> Self {
        Self {
            path: path.into(),
            prober: describe(prober),
            runs: 0,
            status: 0,
            reason: String::new(),
            latency: Duration::ZERO,
            expected: None,
        }
    }

    /// Returns whether kubelet would count the last response as a success.
    fn passes(&self) -> bool {
        (200..400).contains(&self.status)
    }

    /// Returns whether the last verdict equals that of a direct probe, if that is known. A failure
    /// caused by the filter itself is always wrong.
    pub(crate) fn is_right(&self) -> bool {
        let ours = matches!(self.status, 0 | 404 | 529 | 530);
        self.expected.is_none_or(|expected| expected == self.passes() && !ours)
    }
}

/// Formats a prober, for example `httpGet HTTPS :18443/healthz`.
fn describe(prober: &Value) -> String {
    let Some((handler, fields)) = prober.as_object().and_then(|fields| fields.iter().next()) else {
        return String::new();
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let port = fields.get("port").map(Value::to_string).unwrap_or_default();
    let scheme = if text("scheme") == "HTTPS" { "HTTPS " } else { "" };
    format!("{handler} {scheme}:{port}{}", text("path"))
}

/// Probes every row once, all at the same time.
pub(crate) async fn probe(rows: &mut [Row], listener: SocketAddr, application: &Application) {
    let answers = rows.iter().map(|row| async {
        let start = Instant::now();
        let answer = http::probe(listener, &row.path).await;
        (answer, start.elapsed())
    });
    for (row, (answer, latency)) in
        join_all(answers).await.into_iter().zip(rows.iter_mut()).map(|(a, r)| (r, a))
    {
        row.runs += 1;
        row.status = answer.status;
        row.latency = latency;
        row.reason = match (answer.body.trim(), answer.status) {
            ("", 200..400) => "ok".into(),
            ("", 0) => "no response".into(),
            ("", _) => "application: its own status".into(),
            (text, _) => text.into(),
        };
        let mut segments = row.path.rsplit('/');
        let (kind, container) = (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
        row.expected = application.is_healthy(container, kind);
    }
}

pub(crate) fn render(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header([
        "PROBE",
        "AS DECLARED",
        "RUNS",
        "STATUS",
        "VERDICT",
        "AS KUBELET",
        "LATENCY",
        "REASON",
    ]);
    for row in rows {
        table.add_row([
            row.path.clone(),
            row.prober.clone(),
            row.runs.to_string(),
            row.status.to_string(),
            if row.passes() { "success" } else { "failure" }.into(),
            match row.expected {
                None => "not known".into(),
                Some(_) if row.is_right() => "yes".into(),
                Some(_) => "NO".to_owned(),
            },
            format!("{:.1} ms", row.latency.as_secs_f64() * 1000.0),
            row.reason.clone(),
        ]);
    }
    format!("{table}\n")
}
