//! Tests `app-health lint`: inputs, formats, suppression and exit codes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const FINE: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: fine}\nspec:\n  containers:\n  - name: app\n    image: shop\n    \
    ports: [{name: http, containerPort: 8080}]\n    readinessProbe: {httpGet: {path: /ready, port: http}}\n";
const WARNED: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: warned}\nspec:\n  containers:\n  - name: app\n    image: shop\n    \
    ports: [{name: http, containerPort: 8080}]\n    readinessProbe: {tcpSocket: {port: http}}\n";
const WRONG: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: wrong, namespace: shop}\nspec:\n  \
    selector: {matchLabels: {app: shop}}\n  template:\n    metadata: {labels: {app: shop}}\n    spec:\n      containers:\n      - name: app\n        image: shop\n        ports: [{name: http, containerPort: 8080}]\n        \
    readinessProbe:\n          httpGet:\n            path: /ready\n            port: web\n";

/// A temporary folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("app-health-lint-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        for (name, text) in files {
            let file = folder.join(name);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, text).expect("a file");
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs `app-health lint` in `folder`, without a kubeconfig.
fn lint(folder: &Path, arguments: &[&str], stdin: &str) -> Ended {
    let mut child = Command::new(kit::agent::binary_of("app-health"))
        .arg("lint")
        .args(arguments)
        .current_dir(folder)
        .env("KUBECONFIG", folder.join("kubeconfig"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // If the arguments are invalid, the process ends before it reads its input.
    let _ = child.stdin.take().expect("piped").write_all(stdin.as_bytes());
    let output = child.wait_with_output().expect("the process ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ended {
        code: output.status.code().expect("a code"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

#[test]
fn exit_codes() {
    let folder = Folder::new(
        "codes",
        &[
            ("fine.yaml", FINE),
            ("warned.yaml", WARNED),
            ("wrong.yaml", WRONG),
            ("syntax.yaml", "kind: Pod\na: [\n"),
            ("expression.yaml", "kind: Pod\na: {{ .b }}: [\n"),
            ("kubeconfig", "apiVersion: v1\nkind: Config\n"),
        ],
    );
    fs::write(folder.0.join("latin.yaml"), b"a: b\nc: d\xe9\n").expect("a file");
    fs::write(folder.0.join("utf16.yaml"), b"\xff\xfea\0:\0").expect("a file");
    let cases: [(&[&str], i32, &str); 21] = [
        (&["-f", "fine.yaml"], 0, ""),
        (&["-f", "fine.yaml", "--strict"], 0, ""),
        (&["-f", "warned.yaml"], 0, ""),
        (&["-f", "warned.yaml", "--strict"], 1, ""),
        (&["-f", "wrong.yaml"], 1, ""),
        (&["-f", "wrong.yaml", "-f", "fine.yaml"], 1, ""),
        (&["-f", "wrong.yaml", "--format", "sarif"], 1, ""),
        (&["-f", "syntax.yaml", "-f", "wrong.yaml"], 65, "app-health: syntax.yaml:2:4: document 1: "),
        (&["-f", "expression.yaml"], 65, "use the output of helm template"),
        (&["-f", "latin.yaml"], 65, "app-health: latin.yaml:2:5: is not UTF-8"),
        (&["-f", "utf16.yaml"], 65, "utf16.yaml:1:1: is not UTF-8 but UTF-16"),
        (&["-f", "absent.yaml"], 66, "absent.yaml: No such file"),
        (&["-R", "absent"], 66, "absent: No such file"),
        (&["--format", "xml"], 64, "--format"),
        (&["--expect-pause", "30"], 64, "must be like 5s or 500ms"),
        (&["--cluster", "-f", "fine.yaml"], 64, "cannot be used with"),
        (&["-n", "shop"], 64, "--cluster"),
        (&["--cluster", "-n", "shop", "-A"], 64, "cannot be used with"),
        (&["--cluster", "-n", "../x"], 64, "--namespace = \"../x\""),
        (&["--cluster"], 69, "--cluster: no API server"),
        (&["-f", "fine.yaml", "--status-port", "15021"], 78, "--status-port = 15021"),
    ];
    for (arguments, code, words) in cases {
        let ended = lint(&folder.0, arguments, "");
        assert_eq!(ended.code, code, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.is_empty(), words.is_empty(), "{arguments:?}: {}", ended.stderr);
        assert!(code < 66 || ended.stdout.is_empty(), "{arguments:?}: {}", ended.stdout);
    }
    // A document that cannot be parsed does not hide the findings of others.
    let ended = lint(&folder.0, &["-f", "syntax.yaml", "-f", "wrong.yaml"], "");
    assert!(ended.stdout.contains("wrong.yaml:16: error: "), "{}", ended.stdout);
}

#[test]
fn stdin_has_several_documents() {
    let folder = Folder::new("stdin", &[]);
    let stream = format!("{FINE}---\n{WARNED}---\n{WRONG}");
    for arguments in [&[] as &[&str], &["-f", "-"]] {
        let ended = lint(&folder.0, arguments, &stream);
        assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
        let lines: Vec<&str> = ended.stdout.lines().filter(|line| !line.starts_with("    ")).collect();
        assert_eq!(
            lines,
            [
                "stdin:19: warning: Pod/warned: app.readinessProbe: port 8080 is called http, but this probe only opens a connection (AH012)",
                "stdin:36: error: Deployment/wrong: app.readinessProbe: port \"web\" is not a port of container app; it declares http (AH001)",
                "1 error, 1 warning, 0 info, 0 suppressed; 3 Pods in 1 file",
            ]
        );
    }
}

#[test]
fn directories_are_read_with_their_subdirectories() {
    let folder = Folder::new(
        "directories",
        &[
            ("wrong.yaml", WRONG),
            (
                "sub/fine.json",
                r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}"#,
            ),
            ("sub/warned.yml", WARNED),
            ("sub/values.yaml", "image: shop\n"),
            (
                "sub/patch.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: 3}\n",
            ),
            ("sub/mkdocs.yaml", "a: [\n"),
            ("sub/README.md", "kind: [\n"),
            ("chart/templates/web.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n{{ include \"x\" . }}\n"),
            (
                "chart/templates/port.yaml",
                "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: b, livenessProbe: {httpGet: {port: '{{ .Values.port }}'}}}]}\n",
            ),
        ],
    );
    let ended = lint(&folder.0, &["-R", "."], "");
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    for words in [
        "./wrong.yaml:16: error: ",
        "./sub/warned.yml:9: warning: ",
        "1 error, 1 warning, 0 info, 0 suppressed; 3 Pods in 6 files",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    for words in [
        "skipped: ./sub/values.yaml: document 1: not a Kubernetes object",
        "skipped: ./sub/patch.yaml: document 1: not a whole object: it has no spec.template",
        "skipped: ./sub/mkdocs.yaml: not a Kubernetes manifest: 1:4: ",
        "skipped: ./chart/templates/web.yaml: a template",
        "skipped: ./chart/templates/port.yaml: document 1: a template",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    let flat = lint(&folder.0, &["-f", "."], "");
    assert!(
        flat.stdout.ends_with("1 error, 0 warnings, 0 info, 0 suppressed; 1 Pod in 1 file\n"),
        "{}",
        flat.stdout
    );
}

/// Links to directories are not followed, and a file that cannot be read does not hide the findings
/// of others.
#[test]
fn links_and_unreadable_files() {
    let folder = Folder::new("links", &[("a/wrong.yaml", WRONG), ("kubeconfig", "")]);
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, folder.0.join(name)).expect("a link");
    };
    link("../..", "a/up");
    link("wrong.yaml", "a/link.yaml");
    let ended = lint(&folder.0, &["-R", "a"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
    assert!(
        ended.stdout.ends_with("2 errors, 0 warnings, 0 info, 0 suppressed; 2 Pods in 2 files\n"),
        "{}",
        ended.stdout
    );
    link("absent", "a/dangling.yaml");
    let ended = lint(&folder.0, &["-R", "a"], "");
    assert_eq!(ended.code, 66, "{}", ended.stderr);
    assert!(ended.stderr.contains("a/dangling.yaml: No such file"), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("a/link.yaml:16: error: "), "{}", ended.stdout);
}

#[test]
fn formats() {
    let folder = Folder::new("formats", &[("wrong.yaml", WRONG), ("values.yaml", "a: 1\n")]);
    let files = ["-f", "wrong.yaml", "-f", "values.yaml"];
    let run = |format| lint(&folder.0, &[&files[..], &["--format", format]].concat(), "");
    let json: Value = serde_json::from_str(&run("json").stdout).expect("JSON");
    let finding = &json["findings"][0];
    assert_eq!(
        (&finding["code"], &finding["line"], &finding["namespace"]),
        (&"AH001".into(), &16.into(), &"shop".into())
    );
    assert_eq!(finding["path"], "spec.template.spec.containers[0].readinessProbe.httpGet.port");
    assert_eq!(json["summary"]["errors"], 1);
    assert_eq!(
        json["skipped"][0],
        "values.yaml: document 1: not a Kubernetes object: it needs apiVersion and kind"
    );
    let sarif = run("sarif");
    assert!(sarif.stderr.contains("skipped: values.yaml"), "{}", sarif.stderr);
    let sarif: Value = serde_json::from_str(&sarif.stdout).expect("JSON");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"AH001".into(), &"error".into()));
    let github = run("github");
    assert!(
        github.stdout.starts_with("::error file=wrong.yaml,line=16,title=AH001 named-port::"),
        "{}",
        github.stdout
    );
    assert_eq!(github.code, 1);
}

#[test]
fn an_annotation_suppresses_a_rule() {
    let suppressed = WRONG.replace("namespace: shop", "annotations: {app-health.io/lint-ignore: AH001}");
    let folder = Folder::new("suppressed", &[("wrong.yaml", &suppressed)]);
    let ended = lint(&folder.0, &["-f", "wrong.yaml"], "");
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (0, "0 errors, 0 warnings, 0 info, 1 suppressed; 1 Pod in 1 file\n")
    );
}

/// The settings are those of `inject`, so `lint` reports what `inject` would warn about.
#[test]
fn settings_of_the_injection_count() {
    let folder = Folder::new("settings", &[("fine.yaml", &FINE.replace("8080", "15920"))]);
    let codes = |arguments: &[&str]| {
        let arguments = [&["-f", "fine.yaml", "--format", "json"], arguments].concat();
        let json: Value = serde_json::from_str(&lint(&folder.0, &arguments, "").stdout).expect("JSON");
        let findings = json["findings"].as_array().expect("a list").clone();
        findings
            .iter()
            .map(|finding| finding["code"].as_str().expect("a code").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(codes(&[]), Vec::<String>::new());
    assert_eq!(codes(&["--status-port", "15920"]), ["AH117"]);
    assert_eq!(codes(&["--expect-pause", "60s"]), Vec::<String>::new());
}
