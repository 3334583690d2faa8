use super::*;

/// `Accept` of Prometheus 3 and of Prometheus 2.
const THREE: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                     application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                     text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
const TWO: &str = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

#[test]
fn scrapers() {
    let reader = |is_prometheus, normalizes_bounds, accepts_quoted_names| Reader {
        is_prometheus,
        normalizes_bounds,
        accepts_quoted_names,
    };
    let underscores = THREE.replace("allow-utf-8", "underscores");
    for (user_agent, accept, expected) in [
        ("Prometheus/3.5.0", THREE, reader(true, true, true)),
        ("Prometheus/3.5.0", underscores.as_str(), reader(true, true, false)),
        ("Prometheus/3.5.0", "*/*", reader(true, true, false)),
        ("otelcol/0.140", THREE, reader(true, true, true)),
        ("Prometheus/2.53.5", TWO, reader(true, false, false)),
        ("Prometheus/", TWO, reader(true, false, false)),
        ("curl/8.5.0", "*/*", Reader::default()),
        ("Telegraf", "text/plain;version=0.0.4", Reader::default()),
        ("x", "text/plain; version=1.0.0; escaping=allow-utf-8", reader(true, true, true)),
    ] {
        let headers = [(USER_AGENT, user_agent.parse().unwrap()), (ACCEPT, accept.parse().unwrap())];
        assert_eq!(Reader::of(&headers.into_iter().collect()), expected, "{user_agent} {accept}");
    }
    assert_eq!(Reader::of(&HeaderMap::new()), Reader::default());
}
