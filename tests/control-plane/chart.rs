//! The settings of the Helm chart are flags of the programs, and each flag is a setting or fixed by the
//! chart.

use std::collections::BTreeSet;

use app_health::args::Args;
use clap::CommandFactory as _;
use kit::envoy::workspace;
use kit::monitoring::yaml;
use serde_json::Value;

/// Flags that the chart sets itself, and those that make no sense in a Pod of the chart.
const FIXED: [(&str, &[&str]); 2] = [
    (
        "webhook",
        &[
            "address",
            "api-server-address",
            "cert-dir",
            "client-ca",
            "client-name",
            "ignored-namespaces",
            "image",
            "monitoring-address",
            "namespace",
            "service",
            "template",
            "webhook-config",
        ],
    ),
    (
        "discovery",
        &[
            "allow-empty-config",
            "check",
            "client-ca",
            "config-dir",
            "insecure",
            "listen",
            "monitoring-address",
            "plaintext-listen",
            "store",
            "store-path",
            "tls-cert",
            "tls-key",
        ],
    ),
];

#[test]
fn each_flag_is_a_setting_or_fixed() {
    let values = yaml(&workspace().join("charts/app-health/values.yaml"));
    for (name, fixed) in FIXED {
        let command = Args::command();
        let command = command.find_subcommand(name).expect("a command");
        let flags: BTreeSet<String> = command
            .get_arguments()
            .filter_map(|flag| flag.get_long())
            .filter(|flag| !["help", "version"].contains(flag))
            .map(str::to_owned)
            .collect();
        let settings = values[name]["settings"].as_object().expect("settings");
        assert!(settings.values().all(Value::is_null), "{name}: a default other than the program's");
        let known: BTreeSet<String> = settings
            .keys()
            .map(|key| kebab_case(key))
            .chain(fixed.iter().map(|&flag| flag.to_owned()))
            .collect();
        assert_eq!(flags, known, "{name}");
    }
}

/// Templates compare these settings with others, and so repeat the defaults of the programs.
#[test]
fn templates_repeat_the_defaults_of_the_programs() {
    for (name, key) in [("webhook", "shutdownGrace"), ("discovery", "debounce"), ("discovery", "debounceMax")]
    {
        let command = Args::command();
        let command = command.find_subcommand(name).expect("a command");
        let long = kebab_case(key);
        let flag = command.get_arguments().find(|flag| flag.get_long() == Some(long.as_str()));
        let default = flag.expect("a flag").get_default_values()[0].to_str().expect("UTF-8");
        let template = workspace().join(format!("charts/app-health/templates/{name}/deployment.yaml"));
        let template = std::fs::read_to_string(template).expect("a template");
        let expected = format!(".{key} | default \"{default}\"");
        assert!(template.contains(&expected), "{name}: {expected}");
    }
}

/// The chart makes variables of the settings in the same way: `maxStreams` is APP_HEALTH_MAX_STREAMS.
fn kebab_case(key: &str) -> String {
    let parts = key.chars().map(|char| match char {
        'A'..='Z' => format!("-{}", char.to_ascii_lowercase()),
        _ => char.to_string(),
    });
    parts.collect()
}
