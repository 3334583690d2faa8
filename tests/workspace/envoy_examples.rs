//! The examples of Envoy configurations contain parts of the bootstrap's template, which `./justw bless`
//! writes. `tests/envoy/config/examples.rs` compares them with what the agent renders.

use kit::golden::assert_generated;

use crate::root;

/// The lines around a generated part, with the name of the part.
const BEGIN: &str = "# >>> app-health: ";
const END: &str = "# <<< app-health";

/// What the template leaves to the agent, and what an example contains in its place.
const VALUES: [(&str, &str); 11] = [
    (r#""${PROBE_LISTENER}""#, "{socket_address: {address: 0.0.0.0, port_value: 15020}}"),
    (r#""${ROUTE_CONNECT_TIMEOUT}""#, "2.1s"),
    (r#""${CALLOUT_CONNECT_TIMEOUT}""#, "2.1s"),
    (r#""${UPSTREAM_BIND_CONFIG}""#, "{source_address: {address: 127.0.0.6, port_value: 0}}"),
    (r#""${AGENT_ADDRESS}""#, "{socket_address: {address: 127.0.0.1, port_value: 15004}}"),
    (
        r#"    # If the agent knows the node's addresses (--node-ip), it adds a copy of this chain for them and
    # for loopback, with separate limits: 1024 connections (connection_limit.app_health_node), the
    # rate limit, and the filter's limit of probes in flight. So other clients cannot block kubelet,
    # and the limit of this chain becomes 384 connections, which bounds their memory.
    - # The source addresses that --allow-from lists, and loopback. Envoy resets other connections
      # and counts them in listener.app_health.no_filter_chain_match. Without --allow-from any
      # client can connect.
      filter_chain_match: "${PROBE_FILTER_CHAIN_MATCH}"
      filters:
"#,
        "    # To restrict access to your nodes, add a filter_chain_match whose source_prefix_ranges are the
    # nodes' CIDR blocks, 127.0.0.1/32 and ::1/128. To reserve connections for your nodes, add a copy
    # of this chain with that match.
    - filters:
",
    ),
    (
        "    # The same port over IPv6, as a second socket. The agent removes it if the kernel has no IPv6.
    additional_addresses: \"${PROBE_ADDITIONAL_ADDRESSES}\"
",
        "    # For IPv6 add: additional_addresses: [{address: {socket_address: {address: \"::\", port_value: 15020}}}]
",
    ),
    (" Against more clients, set --node-ip.", ""),
    (
        "exempt. The
    # agent removes this setting if nothing is captured.",
        "exempt. Remove
    # upstream_bind_config if nothing is captured.",
    ),
    (
        "# The Pod's address, the proxy's own ports, and the unchanged prober table of
                # ISTIO_KUBE_APP_PROBERS.",
        "# The Pod's address, which is the only probe target; the ports of this Envoy, which
                # cannot be probed; and the prober table.",
    ),
    ("                  envoy.filters.http.dynamic_modules: *disabled\n", ""),
];

/// What of a part of the template no example contains: the native form and `--reuse-connections`.
const ABSENT: [&str; 3] = [
    "- name: envoy.filters.http.dynamic_modules",
    "- match: {prefix: \"/\", headers: [{name: x-app-health-kind, string_match: {exact: reuse-",
    "envoy.reloadable_features.dynamic_modules_",
];

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the positions of the first line that begins with `start` after its indentation, with the comments
/// before it, and of the end of what is indented deeper.
fn block(lines: &[&str], start: &str) -> Option<(usize, usize)> {
    let first = lines.iter().position(|line| line.trim_start().starts_with(start))?;
    let depth = indentation(lines[first]);
    let is_comment = |line: &&&str| line.trim_start().starts_with('#') && indentation(line) == depth;
    let comments = lines[..first].iter().rev().take_while(is_comment).count();
    // The elements of a list can have the indentation of its key.
    let is_element = |line: &str| line.trim_start().starts_with("- ");
    let is_list = !is_element(lines[first]);
    let is_within = |line: &&&str| {
        let is_deeper = indentation(line) > depth;
        !line.is_empty() && (is_deeper || (is_list && indentation(line) == depth && is_element(line)))
    };
    let within = lines[first + 1..].iter().take_while(is_within).count();
    Some((first - comments, first + 1 + within))
}

/// Returns what begins with one of these lines in the template, as an example contains it.
fn part(template: &str, starts: &[&str]) -> String {
    let lines: Vec<&str> = template.lines().collect();
    let mut text = String::new();
    for start in starts {
        let (begin, end) = block(&lines, start).unwrap_or_else(|| panic!("the template has no {start}"));
        let mut lines = lines[begin..end].to_vec();
        for absent in ABSENT {
            while let Some((begin, end)) = block(&lines, absent) {
                lines.drain(begin..end);
            }
        }
        text.extend(lines.iter().flat_map(|line| [line, "\n"]));
    }
    VALUES.iter().fold(text, |text, (old, new)| text.replace(old, new))
}

/// Returns a part by its name.
fn named(template: &str, name: &str) -> String {
    let probes = [
        "- name: app_health_http",
        "- name: app_health_https",
        "- name: app_health_tcp",
        "- name: app_health_grpc",
        "- name: app_health_grpc_tls",
        "- name: app_health_callout_http",
        "- name: app_health_callout_https",
    ];
    match name {
        "settings" => [part(template, &["layered_runtime:"]), part(template, &["stats_config:"])].join("\n"),
        "listener" => part(template, &["- name: app_health"]),
        "clusters" => part(template, &probes) + &part(template, &["- name: app_health_agent"]),
        "clusters of probes" => part(template, &probes),
        "early headers" => part(template, &["early_header_mutation_extensions:"]),
        "routes" => {
            let kinds = ["http}", "https}", "http-x-forwarded-proto}", "https-x-forwarded-proto}", "tcp}"];
            let route = |kind: &str| {
                format!(
                    "- match: {{prefix: \"/\", headers: [{{name: x-app-health-kind, string_match: {{exact: {kind}"
                )
            };
            kinds.map(|kind| part(template, &[&route(kind)])).concat()
        }
        "filters" => {
            part(template, &["- name: envoy.filters.http.local_ratelimit", "- name: envoy.filters.http.wasm"])
        }
        _ => panic!("no part is called {name}"),
    }
}

/// Returns the example with its parts generated. The file of the filter and its configuration are those of
/// the example.
fn generated(template: &str, example: &str) -> String {
    let lines: Vec<&str> = example.lines().collect();
    let own = |start: &str| {
        let (begin, end) = block(&lines, start).unwrap_or_else(|| panic!("the example has no {start}"));
        lines[begin..end].join("\n").trim_start().to_owned()
    };
    let mut text = String::new();
    let mut lines_left = lines.iter();
    while let Some(line) = lines_left.next() {
        text.extend([line, "\n"]);
        if let Some(name) = line.trim_start().strip_prefix(BEGIN) {
            let part = named(template, name)
                .replace("local: \"${FILTER_CODE}\"", &own("local: {filename:"))
                .replace("value: \"${PLUGIN_CONFIGURATION}\"", &own("value: |"));
            assert!(!part.contains("${"), "{name}: a placeholder has no value: {part}");
            text.push_str(&part);
            let end = lines_left.find(|line| line.trim_start() == END).expect("a part has an end");
            text.extend([end, "\n"]);
        }
    }
    text
}

#[test]
fn examples_contain_the_bootstrap() {
    let read = |name: &str| std::fs::read_to_string(root().join("envoy-config").join(name)).expect("a file");
    let template = read("bootstrap.yaml");
    for (name, parts) in [
        ("examples/existing-envoy/after.yaml", 3),
        ("examples/existing-envoy/shared-listener.yaml", 5),
        ("examples/strict-mtls/envoy.yaml", 3),
    ] {
        let example = read(name);
        assert_eq!(example.matches(BEGIN).count(), parts, "{name}");
        assert_generated(format!("envoy-config/{name}"), &generated(&template, &example));
    }
}

#[test]
fn a_block_is_a_line_with_its_comments_and_what_is_indented() {
    let lines = ["a:", "  # One", "  # two", "  - b: 1", "    c: 2", "  - d: 3", "e:"];
    assert_eq!(block(&lines, "- b"), Some((1, 5)));
    assert_eq!(block(&lines, "a:"), Some((0, 6)));
    assert_eq!(block(&["  a:", "  - b", "    c", "  d:"], "a:"), Some((0, 3)));
    assert_eq!(block(&lines, "x"), None);
}
