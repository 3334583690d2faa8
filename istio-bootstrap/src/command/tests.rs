use super::*;

fn parse(words: &[&str]) -> Result<ProxyCommand, InvalidCommand> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    ProxyCommand::parse(&words)
}

/// The arguments of the injection template of Istio 1.31.
#[test]
fn the_injectors_command_line_is_read() {
    let found = parse(&[
        "sidecar",
        "--domain",
        "shop.svc.cluster.local",
        "--proxyLogLevel=warning",
        "--proxyComponentLogLevel=misc:error",
        "--log_output_level=default:info",
        "--log_as_json",
        "--concurrency",
        "2",
    ]);
    let expected = ProxyCommand {
        domain: "shop.svc.cluster.local".to_owned(),
        envoy_component_log_level: "misc:error".to_owned(),
        log_as_json: true,
        concurrency: 2,
        ..ProxyCommand::default()
    };
    assert_eq!(found, Ok(expected));
}

#[test]
fn unknown_flags_are_ignored_with_their_values() {
    let router = ProxyCommand { node_type: "router".to_owned(), ..ProxyCommand::default() };
    for words in [
        &["--new", "value", "router"][..],
        &["--new=value", "router"],
        &["router", "--new"],
        &["--new", "--profiling", "router"],
        &["-x", "value", "router"],
        &["--log_caller", "ads", "router", "sidecar"],
        &["--profiling=false", "--", "router", "--concurrency"],
    ] {
        assert_eq!(parse(words), Ok(router.clone()), "{words:?}");
    }
    // A flag takes the next word, also one that looks like a flag, if it has a value.
    let domain = ProxyCommand { domain: "--profiling".to_owned(), ..ProxyCommand::default() };
    assert_eq!(parse(&["--domain", "--profiling"]), Ok(domain));
}

#[test]
fn invalid_values_are_refused() {
    for (words, expected) in [
        (&["--domain"][..], "--domain: needs a value"),
        (&["--concurrency", "two"], "--concurrency = \"two\": must be a number"),
        (&["--log_as_json=maybe"], "--log_as_json = \"maybe\": must be true or false"),
    ] {
        assert_eq!(parse(words).unwrap_err().to_string(), expected);
    }
}
