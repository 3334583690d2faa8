use std::ffi::OsString;
use std::process::Command;

use nix::sys::signal::kill;

use super::*;
use crate::process::tests::command;

#[test]
fn versions() {
    let text = "\n/bin/envoy  version: 9e558/1.40.0/Clean/RELEASE/BoringSSL\n\n";
    assert_eq!(version_word(text).as_deref(), Some("1.40.0"));
    assert_eq!(version_word("sh: bad option"), None);
}

/// Creates a program that runs `text`, whatever its arguments are.
fn script(name: &str, text: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("agent-question-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    let source = folder.join(format!("{name}.sh"));
    std::fs::write(&source, format!("#!/bin/sh\n{text}\n")).unwrap();
    // Another process writes the program: one that another test starts now inherits the files that this
    // process has open, and the kernel runs no program that is open for writing.
    let installed = Command::new("install").args(["-m", "755"]).args([&source, &file]).status().unwrap();
    assert!(installed.success());
    file
}

#[tokio::test]
async fn versions_that_programs_print() {
    let (good, long) = ("echo 'envoy  version: 9e558/1.39.1/Clean'", Duration::from_secs(300));
    for (name, text, expected) in [
        ("good", good.to_owned(), Ok("1.39.1")),
        ("noisy", format!("yes warning | head -c 1000000 >&2; {good}"), Ok("1.39.1")),
        ("crashes", format!("{good}; kill -SEGV $$"), Ok("1.39.1")),
        ("leaves", format!("{good}; sleep 1000 & exit 0"), Ok("1.39.1")),
        ("silent", "exit 0".to_owned(), Err("--version printed no version and exited with code 0")),
        (
            "broken",
            "echo 'envoy: error while loading shared libraries: libx.so' >&2; exit 127".to_owned(),
            Err(
                "--version printed no version and exited with code 127: envoy: error while loading shared libraries: libx.so",
            ),
        ),
        (
            "endless",
            "exec yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned(),
            Err("--version printed no version and exited terminated by SIGPIPE"),
        ),
    ] {
        let found = super::version(&script(name, &text), long).await.map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{name}");
    }
    let pid_file = script("pid", "");
    let text =
        format!("echo 'waits for a disk' >&2; sh -c 'echo $$ > {}; exec sleep 1000'", pid_file.display());
    // On a busy machine the script needs more time to start.
    let mut seconds = 2;
    let left = loop {
        let limit = Duration::from_secs(seconds);
        let hanging = super::version(&script("hanging", &text), limit).await.unwrap_err().to_string();
        if let Ok(left) = std::fs::read_to_string(&pid_file).unwrap().trim().parse() {
            assert_eq!(hanging, format!("--version did not finish within {seconds} s: waits for a disk"));
            break left;
        }
        seconds *= 2;
        assert!(seconds < 100, "{hanging}");
    };
    assert!(gone(Pid::from_raw(left)).await, "the process was not killed");
    assert!(super::version(Path::new("/nonexistent"), long).await.is_err());
    std::fs::remove_dir_all(pid_file.parent().unwrap()).unwrap();
}

/// Returns true if the process ends within ten seconds. A zombie counts as ended.
async fn gone(pid: Pid) -> bool {
    for _ in 0..500 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if kill(pid, None).is_err() || stat.contains(") Z ") {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

#[tokio::test]
async fn validation_errors() {
    for (script, error) in [
        ("exit 0", None),
        ("echo no memory >&2; kill -9 $$", None),
        ("echo not started >&2; exit 71", None),
        ("echo no such cluster >&2; exit 1", Some("no such cluster")),
        ("echo no such cluster >&2; sleep 1000 & exit 1", Some("no such cluster")),
        ("exit 3", Some("it exited with code 3 and printed nothing")),
    ] {
        let found = Validation::start(&command(script)).unwrap().error().await;
        assert_eq!(found.as_deref(), error, "{script}");
    }
}

#[test]
fn user_flags_are_validated() {
    for (given, kept) in [
        ("--concurrency 2 --service-node me", "--concurrency 2 --service-node me"),
        ("-l debug --concurrency 2", "--concurrency 2"),
        ("-ldebug --log-level=info --log-level trace --component-log-level x:debug a", "a"),
        ("--log-path /dev/null -l", "--log-path /dev/null"),
    ] {
        let given: Vec<OsString> = given.split(' ').map(OsString::from).collect();
        let found: Vec<_> = flags(&given).into_iter().map(|flag| flag.to_str().unwrap()).collect();
        assert_eq!(found.join(" "), kept);
    }
}
