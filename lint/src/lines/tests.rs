use super::*;

const DEPLOYMENT: &str = "\
---
# a comment
spec:
  containers:
  - name: app
    livenessProbe:
      httpGet: {path: /, port: 80}
    readinessProbe: &probe
      exec:
        command:
        - true
    startupProbe: *probe
  - {name: other}
";

#[test]
fn a_field_has_the_line_of_its_key() {
    let lines = Lines::read(DEPLOYMENT);
    for (path, line) in [
        ("", 3),
        ("spec", 3),
        ("spec.containers", 4),
        ("spec.containers[0]", 5),
        ("spec.containers[0].livenessProbe", 6),
        ("spec.containers[0].livenessProbe.httpGet.port", 7),
        ("spec.containers[0].readinessProbe.exec.command[0]", 11),
        ("spec.containers[0].startupProbe", 12),
        ("spec.containers[1].name", 13),
        // Absent: the nearest field that contains it.
        ("spec.containers[0].livenessProbe.timeoutSeconds", 6),
        ("spec.containers[7]", 4),
    ] {
        assert_eq!(lines.find(path), line, "{path}");
    }
}

#[test]
fn json_has_lines_too() {
    let lines = Lines::read("{\n  \"spec\": {\n    \"a\": [1,\n      2]\n  }\n}\n");
    assert_eq!([lines.find("spec"), lines.find("spec.a"), lines.find("spec.a[1]")], [2, 3, 4]);
}

#[test]
fn a_text_that_is_not_yaml_has_one_line() {
    assert_eq!(Lines::read("a: [").find("a"), 1);
}
