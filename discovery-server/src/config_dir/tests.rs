use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::*;

const GROUP: &str = "apiVersion: networking.istio.io/v1\nkind: WorkloadGroup\nmetadata: {name: NAME, namespace: shop}\nspec:\n  probe: {periodSeconds: PERIOD, tcpSocket: {port: 80}}\n";
const ENTRY: &str = "apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: NAME, namespace: shop}\nspec: {address: 10.0.0.7}\n";

const SERVICE: &str = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: NAME, namespace: shop}\nspec: {hosts: [HOST], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.7}]}\n";

fn group(name: &str, period: &str) -> String {
    GROUP.replace("NAME", name).replace("PERIOD", period)
}

fn entry(name: &str) -> String {
    ENTRY.replace("NAME", name)
}

fn service(name: &str, host: &str) -> String {
    SERVICE.replace("NAME", name).replace("HOST", host)
}

fn of(files: &[(&str, &str)]) -> Files {
    Ok(files.iter().map(|(name, text)| ((*name).to_owned(), Ok(text.as_bytes().to_vec()))).collect())
}

/// Formats the objects as in `G a 10, E b`, and returns the errors.
fn shown(configured: &Configured) -> (String, Vec<String>) {
    let groups = configured.config.groups.iter().map(|(key, group)| {
        let period = group.group.probe.as_ref().map_or(0, |probe| probe.period.as_secs());
        format!("G {} {period}", key.name)
    });
    let entries = configured.config.entries.keys().map(|key| format!("E {}", key.name));
    let services = configured.config.services.values();
    let services = services.map(|service| format!("S {} {}", service.key.name, service.hosts.join(" ")));
    let incomplete = configured.config.incomplete.then(|| "incomplete".to_owned());
    let all: Vec<String> = groups.chain(entries).chain(services).chain(incomplete).collect();
    (all.join(", "), configured.errors.clone())
}

/// The formatted objects and the errors.
type Expected<'a> = Option<(&'a str, &'a [&'a str])>;

/// Applies the reads in order and compares what is published after each; `None` means nothing.
fn check(rows: Vec<(Files, Expected)>) {
    let mut documents = LoadedFiles::new(BTreeSet::new(), true, false);
    for (number, (files, expected)) in rows.into_iter().enumerate() {
        let found = documents.update(files).map(|configured| shown(&configured));
        let expected = expected.map(|(config, errors)| {
            (config.to_owned(), errors.iter().map(|error| (*error).to_owned()).collect::<Vec<_>>())
        });
        assert_eq!(found, expected, "reading {number}");
    }
}

#[test]
fn invalid_document_does_not_affect_others() {
    let good = format!("# groups\n{}---\n{}---\n{}", group("a", "10"), group("b", "10"), entry("e"));
    let bad = format!("# groups\n{}---\n\n{}---\n{}", group("a", "20"), group("b", "-1"), entry("f"));
    let error = "x.yaml:9: document 2: spec.probe.periodSeconds: must be 0 or more, got -1";
    check(vec![
        (of(&[("x.yaml", &good)]), Some(("G a 10, G b 10, E e", &[]))),
        (of(&[("x.yaml", &good)]), None),
        (of(&[("x.yaml", &bad)]), Some(("G a 20, G b 10, E f", &[error]))),
        (of(&[("x.yaml", &bad)]), None),
        (of(&[("x.yaml", &good)]), Some(("G a 10, G b 10, E e", &[]))),
        (of(&[]), Some(("", &[]))),
        (of(&[("x.yaml", &bad)]), Some(("G a 20, E f, incomplete", &[error]))),
    ]);
}

#[test]
fn unparsable_file_keeps_its_previous_objects() {
    let good = format!("{}---\n{}", group("a", "10"), group("b", "10"));
    let cut = format!("{}---\nkind: [", group("a", "20"));
    let error = "x.yaml:8: document 2: column 1: ";
    let mut documents = LoadedFiles::new(BTreeSet::new(), true, false);
    documents.update(of(&[("x.yaml", &good), ("y.yaml", &entry("e"))]));
    let (config, errors) = shown(&documents.update(of(&[("x.yaml", &cut)])).expect("a change"));
    assert_eq!(config, "G a 10, G b 10");
    let heads: Vec<bool> = errors.iter().map(|found| found.starts_with(&error[..7])).collect();
    assert_eq!(heads, [true], "{errors:?}");
    let unreadable =
        BTreeMap::from([("x.yaml".to_owned(), Err("Permission denied (os error 13)".to_owned()))]);
    check(vec![
        (of(&[("x.yaml", &good)]), Some(("G a 10, G b 10", &[]))),
        (Ok(unreadable), Some(("G a 10, G b 10", &["x.yaml: Permission denied (os error 13)"]))),
        (of(&[("x.yaml", &good)]), Some(("G a 10, G b 10", &[]))),
    ]);
}

#[test]
fn missing_directory_changes_nothing() {
    let gone = || Err("/etc/app-health: No such file or directory (os error 2)".to_owned());
    let error = "/etc/app-health: No such file or directory (os error 2)";
    check(vec![
        (gone(), Some(("incomplete", &[error]))),
        (of(&[("x.yaml", &entry("e"))]), Some(("E e", &[]))),
        (gone(), Some(("E e", &[error]))),
        (gone(), None),
        (of(&[("x.yaml", &entry("e"))]), Some(("E e", &[]))),
    ]);
}

#[test]
fn empty_directory_is_a_failed_mount_if_objects_are_known() {
    let empty = || of(&[]);
    let gone = || Err("/etc/app-health: No such file or directory (os error 2)".to_owned());
    let known = of(&[("x.yaml", &entry("e"))]);
    for (has_stored, allow_empty, was_read, is_error) in [
        (false, false, false, false),
        (true, false, false, true),
        (false, false, true, true),
        (true, true, true, false),
    ] {
        let mut documents = LoadedFiles::new(BTreeSet::new(), allow_empty, has_stored);
        if was_read {
            documents.update(known.clone());
        }
        let found = documents.checked(empty());
        let row = (has_stored, allow_empty, was_read);
        assert_eq!(found.is_err(), is_error, "{row:?}: {found:?}");
        let has_fix =
            |found: &Files| found.as_ref().is_err_and(|error| error.contains("--allow-empty-config"));
        assert_eq!(has_fix(&found), is_error, "{row:?}: {found:?}");
        assert_eq!(has_fix(&documents.checked(gone())), is_error, "{row:?}");
        assert_eq!(documents.checked(known.clone()), known, "{row:?}");
        let Some(configured) = documents.update(found) else { continue };
        let (objects, errors) = shown(&configured);
        let expected = if was_read && is_error { "E e" } else { "" };
        let expected = if is_error && !was_read { "incomplete" } else { expected };
        assert_eq!((objects.as_str(), errors.len()), (expected, usize::from(is_error)), "{row:?}");
        assert_eq!(documents.update(documents.checked(empty())), None, "{row:?}: published once");
    }
}

#[test]
fn duplicate_objects_are_errors() {
    let twice = format!("{}---\n{}", entry("e"), entry("e"));
    check(vec![
        (
            of(&[("a.yaml", &group("g", "10")), ("b.yaml", &group("g", "20"))]),
            Some(("G g 10", &["b.yaml:1: document 1: WorkloadGroup shop/g is already defined in a.yaml"])),
        ),
        (of(&[("b.yaml", &group("g", "20"))]), Some(("G g 20", &[]))),
        (
            of(&[("a.yaml", &twice)]),
            Some(("E e", &["a.yaml:6: document 2: WorkloadEntry shop/e is already defined in this file"])),
        ),
    ]);
}

#[test]
fn host_and_port_belong_to_one_service() {
    let (pay, other) = (service("pay", "pay.shop"), service("other", "other.shop"));
    let both = |host: &str| format!("{pay}---\n{}", service("other", host));
    let error = "spec.hosts[0]: \"pay.shop\" port 80 is already defined by ServiceEntry shop/pay";
    let second = format!("a.yaml:6: document 2: {error}");
    let alone = format!("b.yaml:1: document 1: {error}");
    check(vec![
        // The order is that of the documents, not of the names.
        (of(&[("a.yaml", &both("pay.shop"))]), Some(("S pay pay.shop", &[&second]))),
        (of(&[("a.yaml", &both("other.shop"))]), Some(("S other other.shop, S pay pay.shop", &[]))),
        (of(&[("a.yaml", &both("pay.shop"))]), Some(("S other other.shop, S pay pay.shop", &[&second]))),
        (of(&[("b.yaml", &other)]), Some(("S other other.shop", &[]))),
        // Its previous version conflicts too.
        (of(&[("b.yaml", &service("other", "pay.shop"))]), Some(("S other pay.shop", &[]))),
        (
            of(&[("a.yaml", &pay), ("b.yaml", &service("other", "pay.shop"))]),
            Some(("S pay pay.shop", &[&alone])),
        ),
        // A service in another namespace does not conflict.
        (
            of(&[("a.yaml", &pay), ("b.yaml", &service("other", "pay.shop").replace(": shop}", ": web}"))]),
            Some(("S pay pay.shop, S other pay.shop", &[])),
        ),
    ]);
}

#[test]
fn other_documents_and_namespaces() {
    let deep = format!("kind: WorkloadGroup\nspec: {}{}", "[".repeat(70), "]".repeat(70));
    check(vec![(
        of(&[
            ("a.yaml", "kind: Deployment\n"),
            ("b.yml", "- 1\n"),
            ("c.yaml", "# nothing\n---\n"),
            ("d.yaml", &deep),
        ]),
        Some((
            "incomplete",
            &[
                "a.yaml:1: document 1: kind: expected WorkloadGroup, WorkloadEntry or ServiceEntry, got Deployment",
                "b.yml:1: document 1: kind: expected WorkloadGroup, WorkloadEntry or ServiceEntry, got none",
                "d.yaml:1: document 1: nested more than 64 levels deep",
            ],
        )),
    )]);
    let mut documents = LoadedFiles::new(BTreeSet::from(["web".to_owned()]), true, false);
    let configured = documents.update(of(&[("a.yaml", &entry("e"))])).expect("the first read");
    assert_eq!(shown(&configured), (String::new(), Vec::new()));
}

#[test]
fn partially_written_file_keeps_its_previous_content() {
    let mut documents = LoadedFiles::new(BTreeSet::new(), true, false);
    let (old, new, half) = (group("g", "10"), group("g", "20"), "# head\n");
    let known = [("a.yaml", old.as_str()), ("b.yaml", &entry("e"))];
    documents.update(of(&known));
    let gone = || Err("/etc/app-health: gone".to_owned());
    let rows = [
        // Both reads agree: changed content, a new file, a removed file.
        (of(&[("a.yaml", &new)]), of(&[("a.yaml", &new)]), of(&[("a.yaml", &new)])),
        (of(&[("c.yaml", &new)]), of(&[("c.yaml", &new)]), of(&[("c.yaml", &new)])),
        // The reads differ: truncated, half written, absent for a moment, new and half written.
        (of(&[("a.yaml", ""), known[1]]), of(&[("a.yaml", half), known[1]]), of(&known)),
        (of(&[("a.yaml", half), known[1]]), of(&[("a.yaml", &new), known[1]]), of(&known)),
        (of(&[known[1]]), of(&[("a.yaml", &new), known[1]]), of(&known)),
        (of(&[known[0]]), of(&known), of(&known)),
        (of(&[("c.yaml", half), known[0]]), of(&[("c.yaml", &new), known[0]]), of(&[known[0]])),
        // A file that is being written does not delay other files.
        (
            of(&[("a.yaml", ""), ("b.yaml", &entry("f"))]),
            of(&[("a.yaml", half), ("b.yaml", &entry("f"))]),
            of(&[known[0], ("b.yaml", &entry("f"))]),
        ),
        (gone(), of(&known), gone()),
        (of(&[known[1]]), gone(), gone()),
    ];
    for (number, (first, second, expected)) in rows.into_iter().enumerate() {
        assert!(documents.differs(&first), "row {number}");
        assert_eq!(documents.merge_reads(first, second), expected, "row {number}");
    }
    assert!(!documents.differs(&of(&known)));
}

/// A temporary directory that is removed at the end of the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("app-health-config-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn watch_directory(directory: &Directory, has_stored: bool) -> watch::Receiver<Configured> {
    let (namespaces, allow_empty) = (BTreeSet::new(), false);
    let settings = WatchSettings { directory: directory.0.clone(), namespaces, allow_empty, has_stored };
    super::watch(settings, &watch::Sender::new(None)).await
}

#[tokio::test(start_paused = true)]
async fn start_waits_for_a_mount() {
    let directory = Directory::new("mount");
    let path = directory.0.clone();
    let waiting = tokio::spawn(async move { watch_directory(&Directory(path), true).await });
    sleep(POLL * 3).await;
    assert!(!waiting.is_finished());
    fs::write(directory.0.join("x.yaml"), group("g", "10")).expect("written");
    let configured = waiting.await.expect("no panic");
    assert_eq!(shown(&configured.borrow()), ("G g 10".to_owned(), Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn swapped_symlinks_are_followed() {
    let directory = Directory::new("swap");
    for (name, period) in [("..one", "10"), ("..two", "20")] {
        fs::create_dir(directory.0.join(name)).expect("made");
        fs::write(directory.0.join(name).join("x.yaml"), group("g", period)).expect("written");
    }
    symlink("..one", directory.0.join("..data")).expect("linked");
    symlink("..data/x.yaml", directory.0.join("x.yaml")).expect("linked");
    let mut configured = watch_directory(&directory, false).await;
    assert_eq!(shown(&configured.borrow_and_update()).0, "G g 10");
    symlink("..two", directory.0.join("..new")).expect("linked");
    fs::rename(directory.0.join("..new"), directory.0.join("..data")).expect("swapped");
    configured.changed().await.expect("it is watched");
    assert_eq!(shown(&configured.borrow_and_update()).0, "G g 20");
}

#[tokio::test(start_paused = true)]
async fn partial_file_is_never_in_effect() {
    let directory = Directory::new("half");
    let write = |text: &str| fs::write(directory.0.join("x.yaml"), text).expect("written");
    write(&format!("{}---\n{}", group("g", "10"), entry("e")));
    let mut configured = watch_directory(&directory, false).await;
    assert_eq!(shown(&configured.borrow_and_update()).0, "G g 10, E e");
    sleep(POLL / 2).await;
    write(&group("g", "20"));
    // This is between the two reads.
    sleep(POLL / 2 + SETTLE_DELAY / 2).await;
    write(&format!("{}---\n{}", group("g", "20"), entry("e")));
    configured.changed().await.expect("it is watched");
    assert_eq!(shown(&configured.borrow_and_update()).0, "G g 20, E e");
}

#[test]
fn all_errors_of_a_directory() {
    let directory = Directory::new("check");
    fs::write(directory.0.join("a.yaml"), group("g", "-1")).expect("written");
    fs::write(directory.0.join("b.yaml"), vec![b' '; 2 << 20]).expect("written");
    fs::write(directory.0.join("c.txt"), "kind: Pod").expect("written");
    fs::write(directory.0.join("d.yaml"), [0xff]).expect("written");
    symlink("/dev/zero", directory.0.join("e.yaml")).expect("linked");
    let _listener = UnixListener::bind(directory.0.join("f.yaml")).expect("bound");
    assert_eq!(
        check_of(&directory.0).errors,
        [
            "a.yaml:1: document 1: spec.probe.periodSeconds: must be 0 or more, got -1",
            "b.yaml: larger than 1 MiB",
            "d.yaml: not UTF-8: invalid utf-8 sequence of 1 bytes from index 0",
            "e.yaml: not a regular file",
            "f.yaml: not a regular file",
        ]
    );
    assert_eq!(
        check_of(Path::new("/missing/directory")).errors,
        ["/missing/directory: No such file or directory (os error 2)"]
    );
}

use super::check as check_of;
