use std::time::Duration;

use proptest::prelude::*;

use super::{Grpc, GrpcMode, Handler, Header, HttpGet, Prober, Scheme, TcpSocket};
use crate::{HandlerKind, PluginConfig};

/// Reads one prober at `/app-health/app/livez`. In the text of the error, `P` stands for the
/// prober's key, and `KINDS` for the names of all kinds.
fn read_at(path: &str, prober: &str) -> Result<(Prober, Vec<String>), String> {
    let text = format!(r#"{{"podIP":"10.0.0.5","reservedPorts":[19000],"probers":{{"{path}":{prober}}}}}"#);
    let context = format!("probers[\"{path}\"]");
    let kinds = HandlerKind::ALL.map(HandlerKind::name).join(", ");
    let config = PluginConfig::parse(text.as_bytes())
        .map_err(|error| error.to_string().replace(&context, "P").replace(&kinds, "KINDS"))?;
    let warnings = config.warnings.iter().map(|warning| warning.replace(&context, "P")).collect();
    let (_, prober) = config.probers.iter().next().expect("one prober");
    Ok((prober.clone(), warnings))
}

fn read(prober: &str) -> Result<(Prober, Vec<String>), String> {
    read_at("/app-health/app/livez", prober)
}

fn accepted(prober: &str) -> Prober {
    read(prober).unwrap_or_else(|error| panic!("{prober}: {error}")).0
}

fn check_refused(rows: &[(&str, &str)]) {
    for (prober, expected) in rows {
        assert_eq!(read(prober).expect_err(prober), *expected, "{prober}");
    }
}

fn http(path: &str, scheme: Scheme, headers: &[(&str, &str)]) -> Handler {
    let header = |(name, value): &(&str, &str)| Header { name: (*name).into(), value: (*value).into() };
    Handler::HttpGet(HttpGet {
        path: path.into(),
        port: 8080,
        scheme,
        headers: headers.iter().map(header).collect(),
    })
}

fn grpc(service: &str, mode: GrpcMode) -> Handler {
    Handler::Grpc(Grpc { port: 8080, service: service.into(), mode })
}

#[test]
fn handlers_and_their_defaults() {
    let tcp = Handler::TcpSocket(TcpSocket { port: 8080 });
    for (prober, expected) in [
        (r#"{"httpGet":{"port":8080}}"#, http("", Scheme::Http, &[])),
        (
            r#"{"httpGet":{"port":8080,"path":null,"scheme":null,"httpHeaders":null,"host":null}}"#,
            http("", Scheme::Http, &[]),
        ),
        (r#"{"httpGet":{"port":8080,"path":"/a?b","scheme":""}}"#, http("/a?b", Scheme::Http, &[])),
        (r#"{"httpGet":{"port":8080,"scheme":"HTTP"}}"#, http("", Scheme::Http, &[])),
        (r#"{"httpGet":{"port":8080,"scheme":"https"}}"#, http("", Scheme::Https, &[])),
        (r#"{"httpGet":{"port":8080,"scheme":"hTTpS"}}"#, http("", Scheme::Https, &[])),
        (
            r#"{"httpGet":{"port":8080},"tcpSocket":null,"grpc":null,"exec":{"command":["x"]}}"#,
            http("", Scheme::Http, &[]),
        ),
        (
            r#"{"HTTPGET":{"PORT":8080,"Path":"/A","HttpHeaders":[{"Name":"X-A","VALUE":"1"}]}}"#,
            http("/A", Scheme::Http, &[("X-A", "1")]),
        ),
        (
            r#"{"httpGet":{"port":8080,"httpHeaders":[{"name":"X-a","value":"1"},{"name":"x-A"},{"name":"B","value":null,"more":1}]}}"#,
            http("", Scheme::Http, &[("X-a", "1"), ("x-A", ""), ("B", "")]),
        ),
        (
            r#"{"httpGet":{"port":8080,"httpHeaders":[{"name":"Content-Length","value":"5"},{"name":"Transfer-Encoding","value":"x"},{"name":"Trailer","value":"y"}]}}"#,
            http("", Scheme::Http, &[("Content-Length", "5"), ("Transfer-Encoding", "x"), ("Trailer", "y")]),
        ),
        (
            r#"{"httpGet":{"port":8080,"unknown":{"port":[]}},"initialDelaySeconds":5}"#,
            http("", Scheme::Http, &[]),
        ),
        (r#"{"tcpSocket":{"port":8080}}"#, tcp.clone()),
        (r#"{"tcpsocket":{"port":8080},"httpGet":null}"#, tcp),
        (r#"{"grpc":{"port":8080}}"#, grpc("", GrpcMode::Plaintext)),
        (r#"{"gRPC":{"port":8080,"service":null,"mode":null}}"#, grpc("", GrpcMode::Plaintext)),
        (
            r#"{"grpc":{"port":8080,"service":"my.Service","mode":""}}"#,
            grpc("my.Service", GrpcMode::Plaintext),
        ),
        (r#"{"grpc":{"port":8080,"mode":"PLAINTEXT"}}"#, grpc("", GrpcMode::Plaintext)),
        (r#"{"grpc":{"port":8080,"mode":"tls"}}"#, grpc("", GrpcMode::Tls)),
        (r#"{"grpc":{"port":8080,"mode":"TLS"}}"#, grpc("", GrpcMode::Tls)),
    ] {
        assert_eq!(
            accepted(prober),
            Prober { handler: expected, timeout: Duration::from_secs(1) },
            "{prober}"
        );
    }
}

#[test]
fn not_exactly_one_handler() {
    check_refused(&[
        ("null", "P = null: must be an object"),
        (r#""x""#, r#"P = "x": must be an object"#),
        ("[]", "P = []: must be an object"),
        ("7", "P = 7: must be an object"),
        ("{}", "P = {}: needs exactly one of KINDS"),
        (r#"{"httpGet":null}"#, r#"P = {"httpGet":null}: needs exactly one of KINDS"#),
        (
            r#"{"exec":{"command":["true"]}}"#,
            r#"P = {"exec":{"command":["true"]}}: needs exactly one of KINDS"#,
        ),
        (
            r#"{"httpGet":{"port":1},"tcpSocket":{"port":1}}"#,
            r#"P = {"httpGet":{"port":1},"tcpSocket":{"port":1}}: needs exactly one of KINDS"#,
        ),
        (
            r#"{"httpGet":{"port":1},"tcpSocket":{"port":1},"grpc":{"port":1}}"#,
            r#"P = {"httpGet":{"port":1},"tcpSocket":{"port":1},"grpc":{"port":1}}: needs exactly one of KINDS"#,
        ),
        (r#"{"httpGet":[]}"#, "P.httpGet = []: must be an object"),
        (r#"{"grpc":9000}"#, "P.grpc = 9000: must be an object"),
    ]);
}

#[test]
fn ports() {
    check_refused(&[
        (r#"{"httpGet":{}}"#, "P.httpGet.port = null: must be 1 to 65535"),
        (r#"{"httpGet":{"port":null}}"#, "P.httpGet.port = null: must be 1 to 65535"),
        (r#"{"httpGet":{"port":0}}"#, "P.httpGet.port = 0: must be 1 to 65535"),
        (r#"{"tcpSocket":{"port":-1}}"#, "P.tcpSocket.port = -1: must be 1 to 65535"),
        (r#"{"httpGet":{"port":70000}}"#, "P.httpGet.port = 70000: must be 1 to 65535"),
        (r#"{"grpc":{"port":65536}}"#, "P.grpc.port = 65536: must be 1 to 65535"),
        (
            r#"{"grpc":{"port":18446744073709551615}}"#,
            "P.grpc.port = 18446744073709551615: must be 1 to 65535",
        ),
        (r#"{"httpGet":{"port":"80"}}"#, r#"P.httpGet.port = "80": must be an integer"#),
        (r#"{"httpGet":{"port":"http"}}"#, r#"P.httpGet.port = "http": must be an integer"#),
        (r#"{"httpGet":{"port":80.5}}"#, "P.httpGet.port = 80.5: must be an integer"),
        (r#"{"httpGet":{"port":80.0}}"#, "P.httpGet.port = 80.0: must be an integer"),
        (r#"{"httpGet":{"port":8e1}}"#, "P.httpGet.port = 80.0: must be an integer"),
        (r#"{"httpGet":{"port":true}}"#, "P.httpGet.port = true: must be an integer"),
        (r#"{"tcpSocket":{"port":19000}}"#, "P.tcpSocket.port = 19000: is a port of the proxy"),
    ]);
    for port in [15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090] {
        let prober = format!(r#"{{"tcpSocket":{{"port":{port}}}}}"#);
        assert_eq!(
            read(&prober).expect_err(&prober),
            format!("P.tcpSocket.port = {port}: is a port of the proxy")
        );
    }
    for port in [1, 80, 14999, 15002, 15003, 15005, 15010, 15019, 15022, 19001, 65535] {
        assert_eq!(accepted(&format!(r#"{{"grpc":{{"port":{port}}}}}"#)).port(), port);
    }
}

#[test]
fn timeouts() {
    for (timeout, probe, hook) in [
        ("", 1, 86_400),
        (r#","timeoutSeconds":null"#, 1, 86_400),
        (r#","timeoutSeconds":0"#, 1, 86_400),
        (r#","timeoutSeconds":1"#, 1, 1),
        (r#","TIMEOUTSECONDS":30"#, 30, 30),
        (r#","timeoutSeconds":86400"#, 86_400, 86_400),
        (r#","timeoutSeconds":86401"#, 86_400, 86_400),
        (r#","timeoutSeconds":2147483647"#, 86_400, 86_400),
    ] {
        let prober = format!(r#"{{"tcpSocket":{{"port":1}}{timeout}}}"#);
        for (path, expected) in [
            ("/app-health/app/livez", probe),
            ("/app-health/app/startupz", probe),
            ("/app-lifecycle/app/prestopz", hook),
            ("/app-lifecycle/app/poststartz", hook),
        ] {
            let (read, _) = read_at(path, &prober).expect(&prober);
            assert_eq!(read.timeout, Duration::from_secs(expected), "{path} {prober}");
        }
    }
    check_refused(&[
        (r#"{"tcpSocket":{"port":1},"timeoutSeconds":-1}"#, "P.timeoutSeconds = -1: must be 0 or more"),
        (r#"{"tcpSocket":{"port":1},"timeoutSeconds":"2"}"#, r#"P.timeoutSeconds = "2": must be an integer"#),
        (r#"{"tcpSocket":{"port":1},"timeoutSeconds":1.5}"#, "P.timeoutSeconds = 1.5: must be an integer"),
        (
            r#"{"tcpSocket":{"port":1},"timeoutSeconds":2147483648}"#,
            "P.timeoutSeconds = 2147483648: must be 2147483647 or less",
        ),
    ]);
}

#[test]
fn types_of_fields() {
    check_refused(&[
        (r#"{"httpGet":{"port":1,"scheme":"FTP"}}"#, r#"P.httpGet.scheme = "FTP": must be HTTP or HTTPS"#),
        (
            r#"{"httpGet":{"port":1,"scheme":"HTTP "}}"#,
            r#"P.httpGet.scheme = "HTTP ": must be HTTP or HTTPS"#,
        ),
        (r#"{"httpGet":{"port":1,"scheme":1}}"#, "P.httpGet.scheme = 1: must be a string"),
        (r#"{"httpGet":{"port":1,"path":1}}"#, "P.httpGet.path = 1: must be a string"),
        (r#"{"grpc":{"port":1,"mode":"mTLS"}}"#, r#"P.grpc.mode = "mTLS": must be Plaintext or TLS"#),
        (r#"{"grpc":{"port":1,"service":["a"]}}"#, r#"P.grpc.service = ["a"]: must be a string"#),
        (r#"{"httpGet":{"port":1,"httpHeaders":{}}}"#, "P.httpGet.httpHeaders = {}: must be an array"),
        (
            r#"{"httpGet":{"port":1,"httpHeaders":[null]}}"#,
            "P.httpGet.httpHeaders[0] = null: must be an object",
        ),
        (
            r#"{"httpGet":{"port":1,"httpHeaders":[{"name":"a","value":1}]}}"#,
            "P.httpGet.httpHeaders[0].value = 1: must be a string",
        ),
    ]);
}

#[test]
fn paths_that_cannot_be_sent() {
    for path in ["http://u:p@h/x", "//u@h/x", "mailto:x", "a:b", "/x?a b", "? "] {
        let error = format!("P.httpGet.path = \"{path}\": cannot be sent as kubelet sends it");
        check_refused(&[(&format!(r#"{{"httpGet":{{"port":1,"path":"{path}"}}}}"#), &error)]);
    }
    for path in ["/x y", "é", "/%zz", "//other/x", "http://other/x?y#z", "*", ":x"] {
        accepted(&format!(r#"{{"httpGet":{{"port":1,"path":"{path}"}}}}"#));
    }
}

fn with_header(name: &str, value: &str) -> String {
    let header = serde_json::json!({"name": name, "value": value});
    format!(r#"{{"httpGet":{{"port":1,"httpHeaders":[{{"name":"X-First","value":"1"}},{header}]}}}}"#)
}

#[test]
fn header_names() {
    for name in ["", ":path", "a b", "a:", "é", "a\r\n", "x\u{0}", "(a)", "a/b"] {
        let shown = serde_json::Value::from(name).to_string().replace('é', "\\u00e9");
        let error = format!("P.httpGet.httpHeaders[1].name = {shown}: must be a header name");
        check_refused(&[(&with_header(name, ""), &error)]);
    }
    check_refused(&[
        (
            r#"{"httpGet":{"port":1,"httpHeaders":[{"value":"x"}]}}"#,
            "P.httpGet.httpHeaders[0].name = null: must be a header name",
        ),
        (
            &with_header("X-Envoy-Retry-On", "5xx"),
            "P.httpGet.httpHeaders[1].name = \"X-Envoy-Retry-On\": \
             is reserved for Envoy and cannot be sent to the application",
        ),
        (
            &with_header("x-App-Health-Dst", "1.2.3.4:5"),
            "P.httpGet.httpHeaders[1].name = \"x-App-Health-Dst\": \
             is reserved for Envoy and cannot be sent to the application",
        ),
    ]);
    for name in ["a", "X-Envoy", "!#$%&'*+-.^_`|~09azAZ", "X-Forwarded-Proto", "Authorization"] {
        accepted(&with_header(name, "x"));
    }
}

#[test]
fn header_values() {
    for (value, shown, reason) in [
        ("a\r\nb", "a\\r\\nb", "must not contain CR, LF or NUL"),
        ("a\n", "a\\n", "must not contain CR, LF or NUL"),
        ("\u{0}", "\\u0000", "must not contain CR, LF or NUL"),
        ("\u{1}", "\\u0001", "must not contain control characters"),
        ("a\u{7f}", "a\\u007f", "must not contain control characters"),
    ] {
        let error = format!("P.httpGet.httpHeaders[1].value = \"{shown}\": {reason}");
        check_refused(&[(&with_header("X", value), &error)]);
    }
    for value in ["", " ", "a\tb", "é", "\u{1f600}", " around "] {
        accepted(&with_header("X", value));
    }
}

#[test]
fn hosts_are_validated_as_in_go() {
    for value in ["a b", " a", "a ", "a/b", "user@a", "é.example", "a\\", "<a>", "a?b"] {
        let shown = serde_json::Value::from(value).to_string().replace('é', "\\u00e9");
        for name in ["Host", "hOST"] {
            let error = format!("P.httpGet.httpHeaders[1].value = {shown}: must be a host");
            check_refused(&[(&with_header(name, value), &error)]);
        }
    }
    for value in
        ["", "shop.example.com", "shop:8080", "[fd00::5]:80", "10.0.0.5", "a_b", "a%b", "!$&'()*+,-.:;=[]_~"]
    {
        accepted(&with_header("Host", value));
    }
}

#[test]
fn limits() {
    let http = |rest: &str| format!(r#"{{"httpGet":{{"port":1,{rest}}}}}"#);
    let path = |bytes: usize| http(&format!(r#""path":"{}""#, "a".repeat(bytes)));
    let headers = |number: usize, value: &str| {
        let header = format!(r#"{{"name":"x","value":"{value}"}}"#);
        http(&format!(r#""httpHeaders":[{}]"#, vec![header; number].join(",")))
    };
    for (prober, expected) in [
        (path(8192), None),
        (path(8193), Some("P.httpGet.path = …: more than 8 KiB")),
        (headers(100, ""), None),
        (headers(101, ""), Some("P.httpGet.httpHeaders = …: more than 100 headers")),
        (headers(16, &"v".repeat(1023)), None),
        (headers(16, &"v".repeat(1024)), Some("P.httpGet.httpHeaders = …: more than 16 KiB of headers")),
    ] {
        assert_eq!(read(&prober).err().as_deref(), expected);
    }
}

#[test]
fn a_declared_host_is_ignored_with_a_warning() {
    for (prober, expected) in [
        (
            r#"{"httpGet":{"port":1,"host":"other"}}"#,
            vec!["P.httpGet.host: ignored, only the pod's own address is dialed"],
        ),
        (
            r#"{"tcpSocket":{"port":1,"HOST":"other"}}"#,
            vec!["P.tcpSocket.host: ignored, only the pod's own address is dialed"],
        ),
        (r#"{"tcpSocket":{"port":1,"host":null}}"#, vec![]),
        (r#"{"grpc":{"port":1,"host":"other"}}"#, vec![]),
        (r#"{"httpGet":{"port":1}}"#, vec![]),
    ] {
        assert_eq!(read(prober).expect(prober).1, expected, "{prober}");
    }
}

#[test]
fn duplicate_fields_are_rejected_in_any_case() {
    check_refused(&[
        (r#"{"grpc":{"port":1},"gRPC":null}"#, r#"P = {"grpc":{"port":1},"gRPC":null}: duplicate key"#),
        (r#"{"grpc":{"port":1},"x":1,"X":2}"#, r#"P = {"grpc":{"port":1},"x":1,"X":2}: duplicate key"#),
        (r#"{"grpc":{"port":1,"Port":2}}"#, r#"P.grpc = {"port":1,"Port":2}: duplicate key"#),
        (
            r#"{"httpGet":{"port":1,"httpHeaders":[{"name":"a","NAME":"b"}]}}"#,
            r#"P.httpGet.httpHeaders[0] = {"name":"a","NAME":"b"}: duplicate key"#,
        ),
    ]);
}

proptest! {
    #[test]
    fn arbitrary_fields_are_parsed_or_rejected(
        name in "httpGet|tcpSocket|grpc|exec",
        port in "[1-9][0-9]{0,5}|0|null|\"x\"|-1",
        field in "path|scheme|service|mode|host|port|httpHeaders",
        value in "null|\"[ -!#-\\[\\]-~é]{0,12}\"|[1-9][0-9]{0,2}|\\[\\{\"name\":\"[a-zA-Z:]{0,4}\",\"value\":\"x\"\\}\\]",
    ) {
        let prober = format!(r#"{{"{name}":{{"port":{port},"{field}":{value}}}}}"#);
        match read(&prober) {
            Ok((prober, _)) => prop_assert!(prober.port() > 0),
            Err(error) => prop_assert!(error.starts_with('P'), "{}", error),
        }
    }
}

#[test]
fn each_kind_has_one_port() {
    for kind in HandlerKind::ALL {
        let ports = kind.fields().iter().filter(|field| field.is_port()).count();
        assert_eq!(ports, 1, "{}", kind.name());
    }
    let fields = |kind: HandlerKind| kind.kubernetes_fields().map(|field| field.name()).collect::<Vec<_>>();
    assert_eq!(fields(HandlerKind::Grpc), ["port", "service"], "mode is in no version of Kubernetes");
}

#[test]
fn only_an_http_get_declares_headers() {
    let http = accepted(r#"{"httpGet":{"port":8080,"path":"/x"}}"#);
    assert_eq!(http.http_get().map(|http| http.port), Some(8080));
    assert_eq!(accepted(r#"{"tcpSocket":{"port":8080}}"#).http_get(), None);
}
