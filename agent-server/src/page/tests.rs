use super::*;
use envoy_bootstrap::filter_choice::{FilterChoice, FilterForm, FilterReason};
use envoy_stats::EnvoyStats;
use readiness::process_history::{ProcessEvent, ProcessEventKind};
use readiness::{Condition, Pending, Phase, Snapshot};
use serving::page::{Cell, Table, Tone};

const HOSTILE: &str = "</td></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'\u{202e}\r\n";

/// The contents if every text that applications, Envoy or the configuration provide is hostile.
fn hostile() -> PageState {
    let label = HOSTILE.replace('"', "\\\"").replace('\n', "\\n");
    let text = format!(
        "app_health_probes_total{{container=\"{label}\",kind=\"{label}\",reason=\"refused\"}} 1\n\
         app_health_probe_success{{container=\"{label}\",kind=\"{label}\"}} 0"
    );
    let mut history = ProbeHistory::default();
    history.update(EnvoyStats::parse(&text), 1);
    assert_eq!(history.stats().probes.len(), 1, "the name of the container arrives");
    let snapshot = Snapshot {
        phase: Phase::Starting,
        since: Duration::ZERO,
        epoch: 1,
        envoy: Some(HOSTILE.to_owned()),
        pending: vec![Pending {
            condition: Condition::DataPath,
            reason: HOSTILE.to_owned(),
            since: Duration::ZERO,
        }],
        met: Vec::new(),
        body: bytes::Bytes::new(),
    };
    let event = ProcessEvent {
        at: Duration::ZERO,
        epoch: 1,
        kind: ProcessEventKind::Exited,
        reason: HOSTILE.to_owned(),
    };
    let workload = Table {
        id: "workload",
        caption: "Workload",
        note: HOSTILE.to_owned(),
        columns: &["item", "value"],
        rows: vec![vec![Cell::text(HOSTILE), Cell::status(Tone::Bad, HOSTILE)]],
    };
    let declared = envoy_bootstrap::declared_probe::DeclaredProbe {
        container: HOSTILE.to_owned(),
        kind: probe::ProbeKind::Liveness,
        target: HOSTILE.to_owned(),
        cluster: None,
    };
    PageState::new(Sources {
        snapshot: &snapshot,
        stale: None,
        processes: &[event],
        filter: Some(FilterChoice { form: FilterForm::Wasm, reason: FilterReason::Flag }),
        declared: &[declared],
        probes: Ok(&history),
        configuration: &Arc::from([("Envoy", HOSTILE.to_owned())]),
        workload: vec![workload],
    })
}

#[test]
fn hostile_texts_stay_text() {
    let state = hostile();
    let html = html(&state, Duration::from_secs(1));
    assert_eq!(html.matches("<script").count(), 1, "only the page's own: {html}");
    assert_eq!(html.matches("</script>").count(), 1);
    assert!(!html.contains("<img") && !html.contains('\u{202e}') && !html.contains('\r'), "{html}");
    assert!(html.matches("&lt;script&gt;alert(1)").count() >= 9, "each of them is shown: {html}");
    let data = event_data(&state, Duration::from_secs(1));
    assert!(!data.contains(['\r', '\n']), "an event is one line: {data}");
    let parsed: serde_json::Value = serde_json::from_str(&data).expect("JSON");
    assert_eq!(parsed["now"], 1000);
    assert_eq!(parsed["state"]["tables"][2]["rows"][0][0], HOSTILE);
}

/// The hashes of the policy are those of the page, whose script and style have no other source.
#[test]
fn the_page_needs_nothing_but_itself() {
    assert!(POLICY.starts_with("default-src 'none'; style-src 'sha256-"), "{POLICY}");
    for needed in
        ["; script-src 'sha256-", "; connect-src 'self'", "; base-uri 'none'", "; form-action 'none'"]
    {
        assert!(POLICY.contains(needed), "{needed}: {POLICY}");
    }
    assert!(POLICY.ends_with("; frame-ancestors 'none'"), "{POLICY}");
    for forbidden in ["innerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", " on", "://"] {
        let found = PAGE.match_indices(forbidden).map(|(at, _)| &PAGE[at..PAGE.len().min(at + 40)]);
        let found: Vec<_> = found.filter(|text| !text.starts_with(" on") || text.contains('=')).collect();
        assert!(found.is_empty(), "{forbidden}: {found:?}");
    }
}

#[test]
fn the_page_is_small() {
    let size = html(&hostile(), Duration::ZERO).len();
    assert!(size < 60 << 10, "{size} bytes");
}

#[test]
fn the_page_is_accessible() {
    let html = html(&hostile(), Duration::ZERO);
    for needed in [
        "<html lang=\"en\">",
        "<main>",
        "<h1>",
        "id=\"summary\" role=\"status\"",
        "role=\"region\" tabindex=\"0\" aria-labelledby=\"probes-title\"",
        "<caption>Probes</caption>",
        "prefers-color-scheme: dark",
        ":focus-visible",
        "<noscript>",
        "width=device-width",
    ] {
        assert!(html.contains(needed), "{needed}");
    }
}
