//! Tests `app-health inject`: input, output and exit codes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: shop}\nspec:\n  containers:\n  - name: app\n    image: shop:1\n    \
    livenessProbe: {tcpSocket: {port: 8080}}\n";
const WARNED: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: warned}\nspec:\n  containers:\n  - name: app\n    image: shop:1\n    \
    livenessProbe: {tcpSocket: {port: 8080, host: db.test}}\n";
const OTHER: &str = "# kept\nkind: ConfigMap\napiVersion: v1\ndata: {a: 'b'} # as it was\n";

/// A temporary folder that is removed on drop.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("app-health-inject-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        for (name, text) in files {
            let file = folder.join(name);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, text).expect("a file");
        }
        Self(folder)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

fn inject(folder: &Path, arguments: &[&str], stdin: &str) -> Ended {
    run("inject", folder, arguments, stdin)
}

/// Runs a command of `app-health` in `folder`.
pub(crate) fn run(command: &str, folder: &Path, arguments: &[&str], stdin: &str) -> Ended {
    let mut child = Command::new(kit::agent::binary_of("app-health"))
        .arg(command)
        .args(arguments)
        .current_dir(folder)
        .env_remove("NO_COLOR")
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
            ("pod.yaml", POD),
            ("warned.yaml", WARNED),
            ("other.yaml", OTHER),
            ("wrong.yaml", "a: [\n"),
            ("twice.yaml", "a: 1\na: 2\n"),
            (
                "list.yaml",
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  spec: {containers: {}}\n",
            ),
            ("template.yaml", "spec: {containers: []}\n"),
        ],
    );
    fs::write(folder.0.join("latin.yaml"), b"a: b\nc: d\xe9\n").expect("a file");
    let large = fs::File::create(folder.0.join("large.yaml")).expect("a file");
    large.set_len((64 << 20) + 1).expect("a file with a hole");
    let cases: [(&[&str], i32, &str); 21] = [
        (&["-f", "pod.yaml"], 0, ""),
        (&["-f", "other.yaml", "--diff"], 0, ""),
        (&["-f", "pod.yaml", "--diff"], 1, ""),
        (&["-f", "pod.yaml", "--dry-run"], 0, ""),
        (
            &["-f", "warned.yaml"],
            0,
            "app-health: warned.yaml:1: document 1 (Pod/warned): app.livenessProbe: host \"db.test\"",
        ),
        (
            &["-f", "warned.yaml", "--strict"],
            65,
            "app-health: warned.yaml:1: document 1 (Pod/warned): app.livenessProbe",
        ),
        (&["--in-place"], 64, "cannot be used with stdin"),
        (&["--in-place", "-f", "pod.yaml", "-o", "x"], 64, "cannot be used with"),
        (&["--in-plac"], 64, "'--in-place'"),
        (&["--status-port", "x"], 64, "--status-port"),
        (&["-f", "wrong.yaml"], 65, "wrong.yaml:"),
        (&["-f", "twice.yaml"], 65, "app-health: twice.yaml:2:1: document 1: duplicate mapping key: a"),
        (
            &["-f", "list.yaml"],
            65,
            "app-health: list.yaml:1: document 1 (List): items[0].spec.containers: must be a list",
        ),
        (&["-f", "latin.yaml"], 65, "app-health: latin.yaml:2:5: is not UTF-8"),
        (&["-f", "large.yaml"], 65, "app-health: large.yaml: more than 64 MiB"),
        (&["-f", "absent.yaml"], 66, "absent.yaml: No such file"),
        (&["-f", "pod.yaml", "-o", "absent/x.yaml"], 73, "absent/x.yaml: No such file"),
        (&["-f", "pod.yaml", "-o", "/dev/full"], 73, "/dev/full: No space left"),
        (&["--template", "absent.yaml"], 78, "--template = absent.yaml"),
        (&["--template", "template.yaml"], 78, "must contain the container"),
        (&["--status-port", "15021"], 78, "--status-port = 15021: is already used by the proxy"),
    ];
    for (arguments, code, words) in cases {
        let ended = inject(&folder.0, arguments, "");
        assert_eq!(ended.code, code, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
        assert!(code < 2 || ended.stdout.is_empty(), "{arguments:?}: {}", ended.stdout);
    }
}

#[test]
fn unchanged_documents_keep_their_bytes() {
    let folder = Folder::new("stream", &[]);
    let stream = format!("{OTHER}---\n{POD}---\n{OTHER}");
    let ended = inject(&folder.0, &[], &stream);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with(&format!("{OTHER}---\napiVersion: v1\nkind: Pod\n")));
    assert!(ended.stdout.ends_with(&format!("---\n{OTHER}")));
    let again = inject(&folder.0, &[], &ended.stdout);
    assert_eq!(again.stdout, ended.stdout);
    assert_eq!(inject(&folder.0, &["--diff"], &ended.stdout).code, 0);
}

#[test]
fn files_and_directories_become_one_stream_in_order() {
    let folder = Folder::new(
        "folders",
        &[
            ("in/b.yaml", "kind: B"),
            ("in/a.yml", "kind: A\n"),
            ("in/c.json", "{\"kind\": \"C\"}\n"),
            ("in/notes.txt", "no YAML: [\n"),
            ("in/deep/d.yaml", "kind: D\n"),
            ("last.txt", "kind: E\n"),
        ],
    );
    let ended = inject(&folder.0, &["-f", "in", "-f", "last.txt"], "");
    assert_eq!(ended.stdout, "kind: A\n---\nkind: B\n---\n{\"kind\": \"C\"}\n---\nkind: E\n");
    let deep = inject(&folder.0, &["-R", "-f", "in"], "");
    assert_eq!(deep.stdout, "kind: A\n---\nkind: B\n---\n{\"kind\": \"C\"}\n---\nkind: D\n");
    let json = inject(&folder.0, &["-f", "in", "--format", "json"], "");
    assert_eq!(json.stdout, "{\n  \"kind\": \"A\"\n}\n{\n  \"kind\": \"B\"\n}\n{\"kind\": \"C\"}\n");
    let yaml = inject(&folder.0, &["-f", "in/c.json", "--format", "yaml"], "");
    assert_eq!(yaml.stdout, "kind: C\n");
}

/// What is refused is not written, and does not stop the others.
#[test]
fn a_refused_document_does_not_stop_the_others() {
    let wrong =
        format!("{POD}---\nkind: Pod\napiVersion: v1\nspec: {{containers: 1}}\n---\na: [\n---\n{OTHER}");
    let files = [("a.yaml", POD), ("b.yaml", wrong.as_str()), ("c.yaml", OTHER)];
    let folder = Folder::new("refused", &files);
    fs::write(folder.0.join("latin.yaml"), b"a: \xe9\n").expect("a file");
    let run = |arguments: &[&str]| {
        let ended = inject(&folder.0, &[&["-f", "."], arguments].concat(), "");
        assert_eq!(ended.code, 65, "{arguments:?}: {}", ended.stderr);
        for line in [
            "app-health: ./b.yaml:9: document 2 (Pod): spec.containers: must be a list\n",
            "app-health: ./b.yaml:14:4: document 3: ",
            "app-health: ./latin.yaml:1:4: is not UTF-8\n",
        ] {
            assert!(ended.stderr.contains(line), "{arguments:?}: {}", ended.stderr);
        }
        ended.stdout
    };
    let stdout = run(&[]);
    assert_eq!(stdout.matches("/app-health/app/livez\n").count(), 2, "{stdout}");
    assert!(stdout.ends_with(OTHER) && stdout.matches(OTHER).count() == 2, "{stdout}");
    assert!(!stdout.contains("containers: 1") && !stdout.contains("a: ["), "{stdout}");
    run(&["-o", "out.txt"]);
    assert_eq!(folder.read("out.txt"), stdout);
    assert_eq!(run(&["--diff"]).matches("+        path: /app-health/app/livez\n").count(), 2);
    assert_eq!(run(&["--dry-run"]).matches("sidecar native").count(), 2);
    assert!(files.iter().all(|(name, text)| folder.read(name) == *text), "nothing is changed yet");
    run(&["--in-place"]);
    assert!(folder.read("a.yaml").contains("/app-health/app/livez"));
    assert_eq!((folder.read("b.yaml").as_str(), folder.read("c.yaml").as_str()), (wrong.as_str(), OTHER));
}

#[test]
fn nothing_is_written_if_everything_is_refused() {
    let folder = Folder::new("all-refused", &[("a.yaml", "a: [\n"), ("out.txt", "before")]);
    let ended = inject(&folder.0, &["-f", "a.yaml", "-o", "out.txt"], "");
    assert_eq!((ended.code, folder.read("out.txt").as_str()), (65, "before"), "{}", ended.stderr);
    fs::write(folder.0.join("b.yaml"), POD).expect("a file");
    let ended = inject(&folder.0, &["-f", "absent.yaml", "-f", "b.yaml"], "");
    assert_eq!(ended.code, 66, "{}", ended.stderr);
    assert!(
        ended.stdout.contains("/app-health/app/livez"),
        "a file that cannot be read does not stop others"
    );
}

#[test]
fn no_file_is_changed_if_one_cannot_be_written() {
    let folder = Folder::new("read-only", &[("a.yaml", POD), ("b.yaml", POD)]);
    let mut permissions = fs::metadata(folder.0.join("b.yaml")).expect("a file").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(folder.0.join("b.yaml"), permissions).expect("permissions");
    let ended = inject(&folder.0, &["-f", "a.yaml", "-f", "b.yaml", "--in-place"], "");
    assert_eq!(ended.code, 73, "{}", ended.stderr);
    assert_eq!((folder.read("a.yaml").as_str(), folder.names().len()), (POD, 2));
}

#[test]
fn in_place_writes_each_document_to_its_file() {
    let folder = Folder::new("place", &[("a.yaml", POD), ("b.yaml", OTHER), ("real/c.yaml", POD)]);
    std::os::unix::fs::symlink("real/c.yaml", folder.0.join("c.yaml")).expect("a link");
    let ended = inject(&folder.0, &["-f", "a.yaml", "-f", "b.yaml", "-f", "c.yaml", "--in-place"], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""));
    assert_eq!(folder.read("b.yaml"), OTHER);
    assert!(folder.read("a.yaml").contains("/app-health/app/livez"));
    assert_eq!(folder.read("real/c.yaml"), folder.read("a.yaml"));
    assert!(fs::symlink_metadata(folder.0.join("c.yaml")).expect("a link").is_symlink());
    assert_eq!(folder.names(), ["a.yaml", "b.yaml", "c.yaml", "real"]);
}

#[test]
fn diff_and_dry_run_print_changes_only() {
    let stream = format!("{OTHER}---\n{POD}");
    let folder = Folder::new("diff", &[("shop.yaml", &stream)]);
    let diff = inject(&folder.0, &["-f", "shop.yaml", "--diff"], "");
    assert!(
        diff.stdout.starts_with("--- shop.yaml: document 2\n+++ shop.yaml: document 2, injected\n@@ "),
        "{}",
        diff.stdout
    );
    assert!(
        diff.stdout.contains("\n+        path: /app-health/app/livez\n") && !diff.stdout.contains('\u{1b}')
    );
    let colored = inject(&folder.0, &["-f", "shop.yaml", "--diff", "--color", "always"], "");
    assert!(colored.stdout.contains("\u{1b}[32m+        path: /app-health/app/livez\u{1b}[0m\n"));
    let dry = inject(&folder.0, &["-f", "shop.yaml", "--dry-run"], "");
    let lines = "shop.yaml: document 1: ConfigMap: no Pods\nshop.yaml: document 2: Pod/shop: sidecar native; app/livez rewritten\n";
    assert_eq!((dry.code, dry.stdout.as_str()), (0, lines));
    assert_eq!((folder.read("shop.yaml"), folder.names().len()), (stream, 1));
}

/// An item of a list that is left as it is does not stop the others, and is named.
#[test]
fn an_item_of_a_list_does_not_decide_about_the_others() {
    let item = |text: &str| format!("- {}\n", text.trim_end().replace('\n', "\n  "));
    let service = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: fn}\nspec: {template: {spec: {containers: [{image: a}]}}}";
    let folder = Folder::new("items", &[]);
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}{}{}", item(service), item(POD), item(OTHER));
    let ended = inject(&folder.0, &[], &list);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let skipped = "app-health: skipped: stdin:1: document 1: items[0] (Service/fn): Service/fn: Knative";
    assert!(ended.stderr.starts_with(skipped), "{}", ended.stderr);
    assert!(ended.stdout.contains("path: /app-health/app/livez\n"), "{}", ended.stdout);
    let dry = inject(&folder.0, &["--dry-run"], &list).stdout;
    let lines = "stdin: document 1: items[0] (Service/fn): skipped\nstdin: document 1: Pod/shop: sidecar native; app/livez rewritten\n";
    assert_eq!(dry, lines);
    let lint = run("lint", &folder.0, &[], &list);
    assert!(lint.stderr.contains("document 1: items[0] (Service/fn)"), "{}", lint.stderr);
    assert!(lint.stdout.contains("Pod/shop"), "{}", lint.stdout);
}

/// Without a line about them, users would believe that these Pods are injected.
#[test]
fn a_pod_that_is_not_subject_to_injection_is_named() {
    let folder = Folder::new("not-subject", &[]);
    let with = |from: &str, to: &str| POD.replace(from, to);
    let metadata = |text: &str| with("metadata: {name: shop}", &format!("metadata: {{name: shop, {text}}}"));
    for (pod, flags, reason) in [
        (
            with("spec:\n", "spec:\n  hostNetwork: true\n"),
            "",
            "hostNetwork: the status port would be a port of the node",
        ),
        (metadata("namespace: kube-system"), "", "Pods of the namespace kube-system are not injected"),
        (metadata("labels: {sidecar.istio.io/inject: 'false'}"), "", "sidecar.istio.io/inject is false"),
        (
            metadata("annotations: {kubernetes.io/config.mirror: a}"),
            "",
            "a mirror Pod: kubelet runs it from a file of the node",
        ),
        (
            with("spec:\n", "spec:\n  os: {name: windows}\n"),
            "--mode rewrite-only",
            "spec.os.name: the Pod runs on Windows, and the sidecar needs Linux",
        ),
        (POD.to_owned(), "--mode rewrite-only", "it has no sidecar, and the mode is rewrite-only"),
    ] {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let ended = inject(&folder.0, &flags, &pod);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, pod.as_str()));
        let line = format!("app-health: skipped: stdin:1: document 1 (Pod/shop): {reason}\n");
        assert_eq!(ended.stderr, line);
    }
}

/// Bytes of another encoding are a reason against one document, not against its neighbors.
#[test]
fn a_document_that_is_not_utf8_does_not_stop_the_others() {
    let folder = Folder::new("latin-document", &[("kustomization.yaml", "patches: [{path: patch.yaml}]\n")]);
    let latin = [b"a: \xe9\n---\n".as_slice(), POD.as_bytes(), b"---\nb: x\xe9\n"].concat();
    fs::write(folder.0.join("pod.yaml"), &latin).expect("a file");
    fs::write(folder.0.join("patch.yaml"), b"a: \xe9\n").expect("a file");
    let ended = inject(&folder.0, &["-f", "."], "");
    let lines =
        ["./patch.yaml:1:4: is not UTF-8", "./pod.yaml:1:4: is not UTF-8", "./pod.yaml:12:5: is not UTF-8"];
    let found: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("UTF-8")).collect();
    assert_eq!((ended.code, found.len()), (65, lines.len()), "{}", ended.stderr);
    assert!(found.iter().zip(lines).all(|(found, line)| found.ends_with(line)), "{}", ended.stderr);
    assert!(ended.stdout.contains("/app-health/app/livez"), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\u{fffd}'), "{}", ended.stdout);
    inject(&folder.0, &["-f", ".", "--in-place"], "");
    assert_eq!(fs::read(folder.0.join("pod.yaml")).expect("a file"), latin);
}
