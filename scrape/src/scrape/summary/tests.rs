use super::*;
use address::RequestFailure;

#[test]
fn every_source_has_each_metric() {
    let outcome = |target: &str, result, dropped| Outcome {
        name: "application",
        target: target.to_owned(),
        result,
        took: Duration::from_micros(1500),
        dropped,
    };
    let outcomes = [outcome("80", Ok(()), 2), outcome("81/a", Err(RequestFailure::Timeout), 0)];
    let text = text(&outcomes, 3, 4);
    for line in [
        "# TYPE app_health_agent_scrape_up gauge",
        "app_health_agent_scrape_up{source=\"application\",target=\"80\"} 1",
        "app_health_agent_scrape_up{source=\"application\",target=\"81/a\"} 0",
        "app_health_agent_scrape_duration_seconds{source=\"application\",target=\"80\"} 0.001500",
        "app_health_agent_scrape_lines_dropped{source=\"application\",target=\"80\"} 2",
        "app_health_agent_scrape_lines_dropped{source=\"application\",target=\"81/a\"} 0",
        "app_health_agent_duplicate_families 3",
        "app_health_agent_shared_families 4",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}
