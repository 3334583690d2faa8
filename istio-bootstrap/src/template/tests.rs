use serde_json::{Value, json};

use super::Template;

fn render(template: &str, parameters: &Value) -> Result<String, String> {
    let template = Template::parse(template).map_err(|error| error.to_string())?;
    template.render(parameters).map_err(|error| error.to_string())
}

/// Each expected text is what Go's `text/template` renders.
#[test]
fn what_is_supported_is_rendered_as_by_go() {
    let parameters = json!({
        "id": "sidecar~10.0.0.1", "empty": "", "port": 15000, "zero": 0, "on": true, "off": false,
        "tags": ["a", "b"], "none": [], "config": {"StatusPort": 15020, "Image": {"Type": "debug"}},
        "pattern": r#"a'b"c<d>e&f=g\h"#, "buckets": [{"prefix": "x"}],
    });
    let cases = [
        ("plain", "plain"),
        ("{{ .id }}:{{.port}}", "sidecar~10.0.0.1:15000"),
        ("a  {{- .on -}}  b", "atrueb"),
        ("a {{ .on -}}\n\t b", "a trueb"),
        ("a {{/* note */}} {{- .on }}", "a true"),
        ("a {{- /* note */ -}} b", "ab"),
        ("{{ if .on }}1{{ else }}2{{ end }}", "1"),
        ("{{ if .off }}1{{ else if .id }}2{{ else }}3{{ end }}", "2"),
        ("{{ if .empty }}1{{ else if .zero }}2{{ else if .none }}3{{ else }}4{{ end }}", "4"),
        ("{{ if or .absent .id }}1{{ end }}{{ if and .absent .id }}2{{ end }}", "1"),
        ("{{ or .empty .id }} {{ and .id .port }}", "sidecar~10.0.0.1 15000"),
        ("{{ if not .absent }}1{{ end }}", "1"),
        ("{{ if (and .on (not .off)) }}1{{ end }}", "1"),
        ("{{ if eq .port 15000 }}1{{ end }}{{ if ne .id \"x\" }}2{{ end }}", "12"),
        (
            "{{ range $a, $tag := .tags }}<{{ $tag }}{{ $a }}{{ . }}{{ $.port }}>{{ end }}",
            "<a0a15000><b1b15000>",
        ),
        ("{{ range $tag := .tags }}{{ $tag }}{{ end }}{{ range .tags }}{{ . }}{{ end }}", "abab"),
        ("{{ range .none }}1{{ else }}2{{ end }}{{ range .absent }}3{{ end }}", "2"),
        (
            "{{ range $a, $b := .tags }}{{ range $c := $.tags }}{{ $b }}{{ $c }} {{ end }}{{ end }}",
            "aa ab ba bb ",
        ),
        ("{{ .config.StatusPort }} {{ .config.Image.Type }} {{ $.config.StatusPort }}", "15020 debug 15020"),
        ("{{ js .pattern }}", r#"a\'b\"c\u003Cd\u003Ee\u0026f\u003Dg\\h"#),
        ("{{ toJson .buckets }} {{ .tags | toJSON }}", r#"[{"prefix":"x"}] ["a","b"]"#),
        ("{{ \"a\\n}}\" }}{{ `b\\}}` }}{{ -3 }}{{ true }}", "a\n}}b\\}}-3true"),
        ("{{ .absent }}", "<no value>"),
    ];
    for (template, expected) in cases {
        assert_eq!(render(template, &parameters).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn what_is_not_supported_is_named_with_its_place() {
    let cases = [
        ("{{ with .a }}{{ end }}", "line 1, column 4: `with` is not supported"),
        ("a\n  {{ printf \"x\" }}", "line 2, column 6: `printf` is not supported"),
        ("{{ template \"x\" . }}", "line 1, column 4: `template` is not supported"),
        ("{{ $x := .a }}", "line 1, column 7: `}}` is expected"),
        ("{{ if .a }}", "line 1, column 4: the `if` has no `end`"),
        ("{{ if .a }}{{ else }}", "line 1, column 4: there is no `end`"),
        ("{{ if .a }}{{ else }}{{ else }}{{ end }}", "line 1, column 25: a second `else`"),
        ("{{ if .a }}{{ else range .b }}{{ end }}", "line 1, column 20: only `if` may follow `else`"),
        ("{{ range .a }}", "line 1, column 4: the `range` has no `end`"),
        ("{{ end }}", "line 1, column 4: it belongs to no `if` or `range`"),
        ("{{ .a", "line 1, column 6: the action has no end"),
        ("{{ /* a }}", "line 1, column 4: `/` is not supported"),
        ("{{/* a }}", "line 1, column 1: the comment has no end"),
        ("{{ \"a }}\n\"", "line 1, column 4: the string has no end"),
        ("{{ 1.5 }}", "line 1, column 4: only decimal integers are supported"),
        ("{{ 010 }}", "line 1, column 4: only decimal integers are supported"),
        ("{{ js }}", "line 1, column 4: `js` does not take 0 arguments"),
        ("{{ .a. }}", "line 1, column 4: a name is missing after `.`"),
        ("{{ }}", "line 1, column 3: a value is expected"),
        ("{{ range $a, b := .c }}{{ end }}", "line 1, column 14: a variable is expected"),
    ];
    for (template, expected) in cases {
        let refused = Template::parse(template).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(refused, Err(expected.to_owned()), "{template}");
    }
}

#[test]
fn a_value_that_cannot_be_printed_is_named_with_its_place() {
    let parameters = json!({"config": {"Port": 1}, "tags": ["a"], "text": "x"});
    let cases = [
        ("{{ .config.Image }}", "line 1, column 4: the field `Image` does not exist"),
        ("{{ .absent.Image }}", "line 1, column 4: the field `Image` does not exist"),
        ("{{ range .tags }}{{ .Name }}{{ end }}", "line 1, column 21: the field `Name` does not exist"),
        ("{{ $x }}", "line 1, column 4: the variable `$x` is not defined"),
        ("{{ .tags }}", "line 1, column 4: the value is not a text, number or boolean"),
        ("{{ js .tags }}", "line 1, column 4: the value is not a text, number or boolean"),
        ("{{ range .text }}{{ end }}", "line 1, column 10: only a list is supported in `range`"),
        ("{{ eq .text 1 }}", "line 1, column 4: the values have different types"),
    ];
    for (template, expected) in cases {
        assert_eq!(render(template, &parameters), Err(expected.to_owned()), "{template}");
    }
}

#[test]
fn nesting_and_work_are_limited() {
    let parentheses = format!("{{{{ {}.a{} }}}}", "(".repeat(100_000), ")".repeat(100_000));
    let blocks = "{{ if .a }}".repeat(100_000);
    for template in [parentheses, blocks] {
        let error = Template::parse(&template).expect_err("too deep");
        assert_eq!(error.reason, "more than 64 levels are not supported");
    }
    let ranges = format!("{}{}", "{{ range $.list }}".repeat(20), "{{ end }}".repeat(20));
    let error = render(&ranges, &json!({"list": [1, 2, 3, 4, 5]})).expect_err("too much work");
    assert!(error.ends_with("more than 100000 actions are not supported"), "{error}");
}
