use super::cases;
use crate::bytes::Bytes;
use crate::case::Step;

const SWEEP: &str = r#"
- name: status
  each: {from: 200, to: 202}
  probe: {httpGet: {path: /}}
  app: {connections: [{do: [read, write: "HTTP/1.1 {each} \xff\r\n\r\n", wait: "{each}"]}]}
"#;

#[test]
fn each_entry_is_a_case() {
    let cases = cases(SWEEP).expect("cases");
    let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["status (200)", "status (201)", "status (202)"]);
    let steps = &cases[1].app.connections[0].steps;
    let written = Step::Write(Bytes(b"HTTP/1.1 201 \xff\r\n\r\n".to_vec()));
    assert_eq!(*steps, [Step::Read, written, Step::Wait(201)]);
}

#[test]
fn invalid_values_are_named() {
    let error = cases("- name: odd\n  probe: {httpGet: {}}\n  apps: {}\n").expect_err("an unknown key");
    assert!(error.starts_with("odd: unknown field `apps`"), "{error}");
    let error = cases("- {name: odd, probe: {grpc: {}}, app: {connections: [{do: [write: \"\u{20ac}\"]}]}}");
    assert!(error.expect_err("not a byte").contains("is not one byte"));
}
