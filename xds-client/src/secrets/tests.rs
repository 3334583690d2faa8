use super::*;

#[test]
fn unknown_and_rejected_secrets_are_counted() {
    let metrics = Metrics::new();
    let mut subscribed = Vec::new();
    let rejected = message(&[(2, b"no key")]);
    for (names, error) in [(vec!["default", "unknown"], None), (vec!["unknown"], Some(rejected))] {
        let subscribe = names.into_iter().map(str::to_owned).collect();
        let request = Request { type_url: SECRET.to_owned(), subscribe, error, ..Request::default() };
        let begin = |name: &str| (name == "default").then(|| Arc::new(()) as Subscription);
        super::subscribe(&mut subscribed, request, Variant::Sotw, &begin, &metrics);
    }
    let text = metrics.encode();
    for reason in ["unknown", "rejected"] {
        let line = format!("app_health_agent_xds_refused_secrets_total{{reason=\"{reason}\"}} 1\n");
        assert!(text.contains(&line), "{text}");
    }
}
