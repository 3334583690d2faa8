use super::*;

fn config(targets: &[&str], environment: &Environment) -> (MetricsConfig, Vec<String>) {
    let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
    metrics_config(None, &targets, TargetLabel::Auto, &[15020, 15021], environment).unwrap()
}

fn found(config: &MetricsConfig) -> Vec<String> {
    config.targets.iter().map(|target| format!("{}{}", target.port, target.path)).collect()
}

#[test]
fn targets_and_rejected_targets() {
    let none = Environment::default();
    for (targets, expected, warnings) in [
        (vec![], vec![], 0),
        (vec!["8080"], vec!["8080/metrics"], 0),
        (vec!["8080/a?b=c", "9"], vec!["8080/a?b=c", "9/metrics"], 0),
        (vec!["9", "9/metrics", "9/other"], vec!["9/metrics", "9/other"], 1),
        (vec!["0", "08080", "65536", "x", "-1", "", "15020", "8080/a b"], vec![], 8),
        (vec!["1", "2", "3", "4", "5", "6", "7", "8", "9"], (1..=8).map(|_| "").collect(), 1),
    ] {
        let (config, said) = config(&targets, &none);
        assert_eq!(config.targets.len(), expected.len(), "{targets:?}");
        assert!(expected.iter().all(|text| text.is_empty()) || found(&config) == expected, "{config:?}");
        assert_eq!(said.len(), warnings, "{said:?}");
        assert_eq!(config.rejected.len(), usize::from(warnings > 0));
    }
}

#[test]
fn istios_names() {
    let annotations = |json| Environment::from([("ISTIO_PROMETHEUS_ANNOTATIONS", json)]);
    let given = annotations(r#"{"port": "8080", "targets": [{"port": "15020"}]}"#);
    let (from_istio, said) = config(&[], &given);
    assert_eq!((found(&from_istio), said.len()), (vec!["8080/metrics".to_owned()], 1));
    assert_eq!(found(&config(&["9"], &given).0), ["9/metrics"], "a flag overrides the variable");
    let numbers = annotations(
        r#"{"port": 8080, "path": "m", "targets": [{"port": 9100, "path": null}, {"port": 8.5}]}"#,
    );
    let (from_numbers, said) = config(&[], &numbers);
    assert_eq!((found(&from_numbers), said.len()), (vec!["8080/m".to_owned(), "9100/metrics".to_owned()], 1));
    let (broken, said) = config(&[], &annotations("{"));
    assert_eq!((broken.rejected.as_slice(), said.len()), (["ISTIO_PROMETHEUS_ANNOTATIONS"].as_slice(), 1));
    for (value, expected) in [("false", false), ("0", false), ("true", true), ("yes", true)] {
        let environment = Environment::from([("PILOT_AGENT_MERGE_ENVOY_STATS", value)]);
        assert_eq!(config(&[], &environment).0.envoy, expected, "{value}");
    }
}

#[test]
fn the_label_of_targets() {
    let none = Environment::default();
    for (label, targets, expected) in [
        (TargetLabel::Auto, vec![], false),
        (TargetLabel::Auto, vec!["1".to_owned()], false),
        (TargetLabel::Auto, vec!["1".to_owned(), "15020".to_owned()], false),
        (TargetLabel::Auto, vec!["1".to_owned(), "2".to_owned()], true),
        (TargetLabel::Always, vec!["1".to_owned()], true),
        (TargetLabel::Never, vec!["1".to_owned(), "2".to_owned()], false),
    ] {
        let (config, _) = metrics_config(None, &targets, label, &[15020], &none).unwrap();
        assert_eq!(config.labels_targets, expected, "{label:?} {targets:?}");
    }
}
