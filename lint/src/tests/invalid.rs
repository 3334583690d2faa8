//! What the API server rejects, field by field: the rule, the path and the message.

use injector::ProbeKind;
use injector::declared_probe::handler_names;

use super::options;
use crate::{Severity, lint_stream};

/// Returns code, path below the container, and message of each error for a container with these
/// fields.
fn errors(fields: &str) -> Vec<(&'static str, String, String)> {
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: x}}\nspec:\n  containers:\n  - {{name: app, image: x, {fields}}}\n"
    );
    let report = lint_stream("x.yaml", &text, &options(""));
    assert_eq!(report.errors, [], "{text}");
    let errors = report.findings.into_iter().filter(|finding| finding.rule.severity == Severity::Error);
    errors
        .map(|finding| {
            let path = finding.path.strip_prefix("spec.containers[0].").unwrap_or(&finding.path).to_owned();
            (finding.rule.code, path, finding.message)
        })
        .collect()
}

/// Checks that the fields have exactly one error. In the message, `HANDLERS` stands for the names of all
/// handlers of a probe.
fn check(fields: &str, code: &str, path: &str, message: &str) {
    let found = errors(fields);
    let handlers = handler_names(ProbeKind::Liveness).join(", ");
    let expected = [(code, path.to_owned(), message.replace("HANDLERS", &handlers))];
    let found: Vec<_> =
        found.iter().map(|(code, path, message)| (*code, path.clone(), message.clone())).collect();
    assert_eq!(found, expected, "{fields}");
}

#[test]
fn a_message_names_field_value_and_rule() {
    let live = |fields: &str| format!("livenessProbe: {{{fields}}}");
    let http = |fields: &str| format!("livenessProbe: {{httpGet: {{{fields}}}}}");
    for (fields, path, message) in [
        (
            live("httpGet: {port: 80}, periodSeconds: -1"),
            "periodSeconds",
            "periodSeconds = -1: must be a number from 0 to 2147483647",
        ),
        (
            live("httpGet: {port: 80}, timeoutSeconds: '3'"),
            "timeoutSeconds",
            "timeoutSeconds = \"3\": must be a number from 0 to 2147483647",
        ),
        (
            live("httpGet: {port: 80}, timeoutSeconds: 1.5"),
            "timeoutSeconds",
            "timeoutSeconds = 1.5: must be a number from 0 to 2147483647",
        ),
        (
            live("httpGet: {port: 80}, successThreshold: 2"),
            "successThreshold",
            "successThreshold = 2: must be 1 for a livenessProbe",
        ),
        (
            live("httpGet: {port: 80}, terminationGracePeriodSeconds: 0"),
            "terminationGracePeriodSeconds",
            "terminationGracePeriodSeconds = 0: must be at least 1",
        ),
        (live(""), "", "must have one of HANDLERS"),
        (
            live("exec: {command: [a]}, httpGet: {port: 80}"),
            "",
            "must have one handler, and has exec, httpGet",
        ),
        (live("exec: {}"), "exec.command", "exec.command is missing"),
        (live("exec: {command: []}"), "exec.command", "exec.command is empty: must have at least one word"),
        (
            live("exec: {command: curl localhost}"),
            "exec.command",
            "exec.command = \"curl localhost\": must be a list of words",
        ),
        (
            live("exec: {command: [sleep, 5]}"),
            "exec.command[1]",
            "exec.command[1] = 5: must be a string; write it in quotes",
        ),
        (live("tcpSocket: {}"), "tcpSocket.port", "tcpSocket.port is missing"),
        (
            live("tcpSocket: {port: 70000}"),
            "tcpSocket.port",
            "tcpSocket.port = 70000: must be a number from 1 to 65535",
        ),
        (
            live("tcpSocket: {port: 80, host: 5}"),
            "tcpSocket.host",
            "tcpSocket.host = 5: must be a string; write it in quotes",
        ),
        (live("grpc: {port: grpc}"), "grpc.port", "grpc.port = \"grpc\": must be a number from 1 to 65535"),
        (
            live("grpc: {port: 80, service: 5}"),
            "grpc.service",
            "grpc.service = 5: must be a string; write it in quotes",
        ),
        (http(""), "httpGet.port", "httpGet.port is missing"),
        (http("port: 0"), "httpGet.port", "httpGet.port = 0: must be a number from 1 to 65535"),
        (
            http("port: '80'"),
            "httpGet.port",
            "httpGet.port = \"80\": as the name of a port, it must have a letter; write a number without quotes",
        ),
        (http("port: 80, path: 5"), "httpGet.path", "httpGet.path = 5: must be a string; write it in quotes"),
        (
            http("port: 80, scheme: https"),
            "httpGet.scheme",
            "httpGet.scheme = \"https\": must be HTTP or HTTPS",
        ),
        (
            http("port: 80, httpHeaders: {name: a, value: b}"),
            "httpGet.httpHeaders",
            "httpGet.httpHeaders = {\"name\":\"a\",\"value\":\"b\"}: must be a list of objects with name and value",
        ),
        (
            http("port: 80, httpHeaders: [{name: 'a b', value: ''}]"),
            "httpGet.httpHeaders[0].name",
            "httpGet.httpHeaders[0].name = \"a b\": must be letters, digits and hyphens",
        ),
        (
            http("port: 80, httpHeaders: [{value: b}]"),
            "httpGet.httpHeaders[0].name",
            "httpGet.httpHeaders[0].name is missing",
        ),
        (
            http("port: 80, httpHeaders: [{name: Host, value: 5}]"),
            "httpGet.httpHeaders[0].value",
            "httpGet.httpHeaders[0].value = 5: must be a string; write it in quotes",
        ),
    ] {
        let path =
            ["livenessProbe", path].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
        check(&fields, "AH002", &path, message);
    }
    check("lifecycle: 3", "AH002", "lifecycle", "lifecycle must be an object");
    check(
        "lifecycle: {preStop: {sleep: {seconds: 31}}}",
        "AH002",
        "lifecycle.preStop.sleep.seconds",
        "sleep.seconds = 31: must be 0 to 30, which is terminationGracePeriodSeconds",
    );
}

#[test]
fn absent_and_default_values_are_valid() {
    for fields in [
        "livenessProbe: null",
        "livenessProbe: {httpGet: {port: 80, path: null, httpHeaders: []}, timeoutSeconds: null, periodSeconds: 0}",
        "livenessProbe: {grpc: {port: 80, service: ''}, successThreshold: 1}",
        "livenessProbe: {httpGet: null, exec: {command: ['']}}",
        "lifecycle: {}",
        "ports: null",
        "ports: [{containerPort: 80}, {containerPort: 80}]",
        "ports: [{name: a, containerPort: 80, protocol: UDP}, {name: '', containerPort: 81}]",
    ] {
        assert_eq!(errors(fields), [], "{fields}");
    }
}

#[test]
fn ports_of_containers() {
    for (ports, path, message) in [
        ("{containerPort: 80}", "ports", "ports = {\"containerPort\":80}: must be a list"),
        ("[{name: http}]", "ports[0].containerPort", "ports[0].containerPort is missing"),
        (
            "[{containerPort: '80'}]",
            "ports[0].containerPort",
            "ports[0].containerPort = \"80\": must be a number from 1 to 65535",
        ),
        (
            "[{containerPort: 80, name: a_b}]",
            "ports[0].name",
            "ports[0].name = \"a_b\": it must be lower-case letters, digits and hyphens",
        ),
        (
            "[{containerPort: 80, name: 80}]",
            "ports[0].name",
            "ports[0].name = 80: must be a string; write it in quotes",
        ),
        (
            "[{containerPort: 80, name: a}, {containerPort: 81, name: a}]",
            "ports[1].name",
            "ports[1].name: several ports of the container are called a",
        ),
        (
            "[{containerPort: 80, protocol: tcp}]",
            "ports[0].protocol",
            "ports[0].protocol = \"tcp\": must be TCP, UDP or SCTP",
        ),
    ] {
        check(&format!("ports: {ports}"), "AH018", path, message);
    }
}

#[test]
fn unknown_fields_have_a_suggestion() {
    let http = "httpGet: {port: 80}";
    for (fields, path, message) in [
        (
            format!("readynessProbe: {{{http}}}"),
            "readynessProbe",
            "unknown field \"readynessProbe\"; did you mean readinessProbe?",
        ),
        (
            format!("LivenessProbe: {{{http}}}"),
            "LivenessProbe",
            "unknown field \"LivenessProbe\"; did you mean livenessProbe?",
        ),
        (
            format!("livenessProbe: {{{http}, timeoutSecs: 3}}"),
            "livenessProbe.timeoutSecs",
            "unknown field \"timeoutSecs\"; did you mean timeoutSeconds?",
        ),
        (
            "livenessProbe: {httpGet: {port: 80, timeoutSeconds: 3}}".to_owned(),
            "livenessProbe.httpGet.timeoutSeconds",
            "unknown field \"httpGet.timeoutSeconds\"; timeoutSeconds belongs into livenessProbe: check the indentation",
        ),
        (
            "livenessProbe: {httpGet: {port: 80, headers: []}}".to_owned(),
            "livenessProbe.httpGet.headers",
            "unknown field \"httpGet.headers\"; the fields are path, port, host, scheme, httpHeaders",
        ),
        (
            format!("livenessProbe: {{{http}}}, initialDelaySeconds: 3"),
            "initialDelaySeconds",
            "unknown field \"initialDelaySeconds\"; initialDelaySeconds belongs into a probe: check the indentation",
        ),
        (
            "preStop: {sleep: {seconds: 1}}".to_owned(),
            "preStop",
            "unknown field \"preStop\"; preStop belongs into lifecycle: check the indentation",
        ),
        (
            "lifecycle: {prestop: {sleep: {seconds: 1}}}".to_owned(),
            "lifecycle.prestop",
            "unknown field \"prestop\"; did you mean preStop?",
        ),
    ] {
        check(&fields, "AH017", path, message);
    }
}

#[test]
fn a_probe_of_the_pod_and_of_an_ephemeral_container() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers: [{name: app, image: x}]\n  \
        livenessProbe: {httpGet: {port: 80}}\n  ephemeralContainers:\n  - name: debug\n    image: x\n    \
        readinessProbe: {httpGet: {port: 80}}\n";
    let report = lint_stream("x.yaml", text, &options(""));
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.rule.code, finding.origin.line.expect("a line"), finding.message.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (
                "AH017",
                6,
                "unknown field \"livenessProbe\"; livenessProbe belongs into a container: check the indentation"
            ),
            ("AH002", 10, "container \"debug\": an ephemeral container must not have readinessProbe"),
        ]
    );
}

#[test]
fn a_wrong_api_version_is_found_in_lists_too() {
    let spec = "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Always, containers: [{name: a, image: b}]}}}";
    for (head, code, message) in [
        (
            "apiVersion: v1\nkind: Deployment",
            Some("AH019"),
            "apiVersion = \"v1\": that of a Deployment is apps/v1",
        ),
        (
            "apiVersion: extensions/v1beta1\nkind: DaemonSet",
            Some("AH019"),
            "apiVersion = \"extensions/v1beta1\": that of a DaemonSet is apps/v1",
        ),
        (
            "apiVersion: batch/v1beta1\nkind: Job",
            Some("AH019"),
            "apiVersion = \"batch/v1beta1\": that of a Job is batch/v1",
        ),
        ("apiVersion: apps/v1\nkind: deployment", Some("AH019"), "kind = \"deployment\": must be Deployment"),
        ("kind: Deployment", Some("AH019"), "apiVersion is missing: that of a Deployment is apps/v1"),
        ("apiVersion: apps/v1\nkind: Deployment", None, ""),
        ("apiVersion: example.com/v1\nkind: Deployment", None, ""),
        ("apiVersion: apps/v1\nkind: Rollout", None, ""),
    ] {
        let object = format!("{head}\nmetadata: {{name: x}}\n{spec}\n");
        let item = object.replace('\n', "\n  ");
        for text in [object, format!("apiVersion: v1\nkind: List\nitems:\n- {item}")] {
            let report = lint_stream("x.yaml", &text, &options(""));
            let found = report.findings.first().map(|finding| (finding.rule.code, finding.message.as_str()));
            assert_eq!(found, code.map(|code| (code, message)), "{text}");
            // A kind of another group is an unknown kind with a Pod template.
            let is_unknown = head.contains("example.com") || head.contains("Rollout");
            assert_eq!(report.skipped.len() + report.skipped_items.len(), usize::from(is_unknown), "{text}");
        }
    }
}
