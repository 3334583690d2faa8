use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use ::redb::{Database, TableDefinition};

use super::*;
use discovery::entries::Record;

/// A temporary directory that is removed on drop.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("app-health-store-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn store(&self) -> PathBuf {
        self.0.join("discovery.redb")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn batch(names: &[&str], session: u64) -> BTreeMap<Key, Write> {
    let record = Record { session, ..Record::default() };
    let write = Write { sequence: session, record: Some(Box::new(record)), session };
    names.iter().map(|name| (Key::new("shop", *name), write.clone())).collect()
}

fn sessions(stored: &[(Key, Record)]) -> Vec<String> {
    stored.iter().map(|(key, record)| format!("{key} {}", record.session)).collect()
}

#[test]
fn commits_are_read_back() {
    let directory = Directory::new("read");
    let (store, stored, is_new) = file::open(&directory.store()).expect("created");
    assert_eq!((stored.len(), is_new), (0, true));
    store.commit(&batch(&["a", "b"], 1)).expect("written");
    store.commit(&batch(&["b"], 2)).expect("written");
    let mut delete = batch(&["a"], 3);
    delete.values_mut().for_each(|write| write.record = None);
    store.commit(&delete).expect("written");
    let in_use = file::open(&directory.store()).expect_err("two at a time");
    assert_eq!(
        in_use.to_string(),
        format!("store {}: in use by another process", directory.store().display())
    );
    drop(store);
    let (_, stored, is_new) = file::open(&directory.store()).expect("opened");
    assert_eq!((sessions(&stored), is_new), (vec!["shop/b 2".to_owned()], false));
}

#[test]
fn an_unfinished_creation_is_replaced() {
    let directory = Directory::new("creation");
    let unfinished = directory.0.join("discovery.redb.new");
    fs::write(&unfinished, vec![0; 1 << 20]).expect("written");
    let (store, stored, is_new) = file::open(&directory.store()).expect("created");
    assert_eq!((stored.len(), is_new, unfinished.exists()), (0, true, false));
    store.commit(&batch(&["a"], 1)).expect("written");
    let in_use = file::open(&directory.store()).expect_err("two at a time");
    assert!(matches!(in_use, StoreError::InUse(_)), "{in_use}");
    drop(store);
    let (_, stored, is_new) = file::open(&directory.store()).expect("opened");
    assert_eq!((sessions(&stored), is_new), (vec!["shop/a 1".to_owned()], false));
}

#[test]
fn only_one_process_creates_the_file() {
    let directory = Directory::new("race");
    let unfinished = fs::File::create(directory.0.join("discovery.redb.new")).expect("created");
    unfinished.lock().expect("locked");
    let in_use = file::open(&directory.store()).expect_err("another one creates it");
    assert!(matches!(in_use, StoreError::InUse(_)), "{in_use}");
    assert!(!directory.store().exists());
}

/// Checks that a damaged store is rejected with `expected` and stays unchanged byte by byte.
fn check_rejected(name: &str, damage: impl FnOnce(&Path), expected: &str) {
    let directory = Directory::new(name);
    let path = directory.store();
    let (store, ..) = file::open(&path).expect("created");
    let names: Vec<String> = (0..500).map(|number| format!("e{number}")).collect();
    store.commit(&batch(&names.iter().map(String::as_str).collect::<Vec<_>>(), 1)).expect("written");
    drop(store);
    damage(&path);
    let before = fs::read(&path).expect("there");
    let error = file::open(&path).expect_err("damaged").to_string();
    let error = error.replace(&path.display().to_string(), "PATH");
    let head = error.split(": ").take(2).collect::<Vec<_>>().join(": ");
    assert!(if expected.contains("newer") { error == expected } else { head == expected }, "{error}");
    assert!(
        error.contains("newer")
            || error.ends_with("; the file was not changed; move it away to start with an empty store")
    );
    assert!(fs::read(&path).expect("there") == before, "{name}: bytes changed");
}

#[test]
fn damaged_files_are_rejected_and_unchanged() {
    let corrupt = "store PATH: corrupt";
    check_rejected("text", |path| fs::write(path, "no store at all").expect("written"), corrupt);
    check_rejected("zeros", |path| fs::write(path, [0; 100_000]).expect("written"), corrupt);
    let cut = |path: &Path| {
        let bytes = fs::read(path).expect("there");
        fs::write(path, &bytes[..bytes.len() / 2]).expect("written");
    };
    check_rejected("cut", cut, corrupt);
    let flipped = |path: &Path| {
        let mut bytes = fs::read(path).expect("there");
        let needle = b"shop/e250";
        let at = bytes.windows(needle.len()).rposition(|window| window == needle).expect("it is in the file");
        bytes[at] ^= 1;
        fs::write(path, bytes).expect("written");
    };
    check_rejected("flipped", flipped, corrupt);
    let foreign = |path: &Path| {
        fs::remove_file(path).expect("there");
        let database = Database::create(path).expect("created");
        let transaction = database.begin_write().expect("begun");
        transaction.open_table(TableDefinition::<&str, u64>::new("other")).expect("a table");
        transaction.commit().expect("written");
    };
    check_rejected("foreign", foreign, corrupt);
    let newer = |path: &Path| {
        let database = Database::open(path).expect("opened");
        let transaction = database.begin_write().expect("begun");
        let table = TableDefinition::<&str, u64>::new("app-health");
        transaction.open_table(table).expect("a table").insert("format", 3).expect("written");
        transaction.commit().expect("written");
    };
    check_rejected("newer", newer, "store PATH: format 3 is newer than 1");
}

#[tokio::test]
async fn batches_are_acknowledged_after_the_flush() {
    let directory = Directory::new("task");
    let (mut store, task) = open(directory.store(), Arc::default()).await.expect("created");
    let push = |name: &str, session: u64| {
        for (key, write) in batch(&[name], session) {
            store.writes.push(key, write);
        }
    };
    push("a", 1);
    push("a", 2);
    let Some(Input::Stored { key, write }) = store.inputs.recv().await else { panic!("an acknowledgement") };
    assert_eq!((key.to_string().as_str(), write), ("shop/a", 2));
    // This is the last batch before the process ends.
    push("b", 3);
    drop(store);
    task.await.expect("it ends");
    let (_, stored, _) = file::open(&directory.store()).expect("opened");
    assert_eq!(sessions(&stored), ["shop/a 2", "shop/b 3"]);
}

/// Checks that writes fail after `damage`, are retried, and succeed after `repair`. Both receive
/// the path of the store and a path next to it.
async fn check_retried(
    name: &str,
    damage: impl FnOnce(&Path, &Path),
    expected: &str,
    repair: impl FnOnce(&Path, &Path),
) {
    let directory = Directory::new(name);
    let (path, aside) = (directory.store(), directory.0.join("aside.redb"));
    let (mut store, task) = open(path.clone(), Arc::default()).await.expect("created");
    let push = |session: u64| {
        batch(&["a"], session).into_iter().for_each(|(key, write)| store.writes.push(key, write));
    };
    push(1);
    let Some(Input::Stored { .. }) = store.inputs.recv().await else { panic!("an acknowledgement") };
    damage(&path, &aside);
    let before = fs::read(&path).ok();
    for session in 2..=3 {
        push(session);
        store.degraded.wait_for(Option::is_some).await.expect("it runs");
        sleep(2 * RETRY).await;
    }
    let text = store.degraded.borrow().clone().expect("a reason");
    assert_eq!(text.replace(&path.display().to_string(), "PATH"), expected);
    assert!(store.inputs.try_recv().is_err(), "{name}: acknowledged too early");
    assert!(fs::read(&path).ok() == before, "{name}: neither created nor written");
    repair(&path, &aside);
    let Some(Input::Stored { write, .. }) = store.inputs.recv().await else { panic!("an acknowledgement") };
    assert_eq!((write, store.degraded.borrow().clone()), (3, None));
    drop(store);
    task.await.expect("it ends");
    let (_, stored, _) = file::open(&path).expect("opened");
    assert_eq!(sessions(&stored), ["shop/a 3"]);
}

#[tokio::test(start_paused = true)]
async fn writes_are_retried_after_the_file_was_replaced() {
    let back = |path: &Path, aside: &Path| fs::rename(aside, path).expect("renamed");
    let away = |path: &Path, aside: &Path| fs::rename(path, aside).expect("renamed");
    let todo = "nothing is stored: restore the file, or restart to use what is at this path";
    check_retried("gone", away, &format!("store PATH: the file no longer exists; {todo}"), back).await;
    let another = |path: &Path, aside: &Path| {
        away(path, aside);
        drop(file::open(path).expect("a store that is not open"));
    };
    let expected = format!("store PATH: the path names another file; {todo}");
    check_retried("another", another, &expected, back).await;
}

/// The process that is killed: commits one entry after another and prints each commit.
#[test]
#[ignore = "started as a child process by the test below"]
fn writer() {
    let mut path = String::new();
    std::io::stdin().read_line(&mut path).expect("a path");
    let (store, ..) = file::open(Path::new(path.trim())).expect("opened");
    let mut stdout = std::io::stdout();
    for number in 0_u64.. {
        store.commit(&batch(&[&format!("e{}", number % 50)], number + 1)).expect("written");
        writeln!(stdout, "stored {number}").expect("the test reads");
    }
}

#[test]
fn acknowledged_writes_survive_a_kill() {
    let directory = Directory::new("kill");
    for round in 0..6_u64 {
        let mut child = Command::new(std::env::current_exe().expect("a test"))
            .args(["--exact", "store::redb::tests::writer", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let mut stdin = child.stdin.take().expect("a pipe");
        writeln!(stdin, "{}", directory.store().display()).expect("it reads");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let number = |line: String| {
            let at = line.find("stored ")?;
            line[at + 7..].parse::<u64>().ok()
        };
        // Waits for this many commits, then kills the process at an arbitrary point.
        let awaited = 7 + round * 13;
        let mut last =
            lines.by_ref().filter_map(number).find(|number| *number >= awaited).expect("it writes");
        std::thread::sleep(Duration::from_micros(round * 777));
        child.kill().expect("killed");
        child.wait().expect("reaped");
        last = lines.filter_map(number).last().unwrap_or(last);
        let (_, stored, _) = file::open(&directory.store()).expect("opened");
        let highest = stored.iter().map(|(_, record)| record.session).max().expect("entries");
        assert!(highest > last, "acknowledged {last}, found {highest}");
        assert_eq!(stored.len(), usize::try_from((highest).min(50)).expect("small"));
        fs::remove_file(directory.store()).expect("there");
    }
}
