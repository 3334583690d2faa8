use std::path::Path;

use super::*;

async fn run(command: &[&str], seconds: u64) -> Result<(), (HealthReason, String)> {
    let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let environment = [("PATH", OsString::from("/usr/bin:/bin")), ("TZ", OsString::from("UTC"))];
    let ended = probe(&command, &environment, &AwaitedPids::default(), Duration::from_secs(seconds)).await;
    ended.map_err(|unhealthy| (unhealthy.reason(), unhealthy.text().to_owned()))
}

/// Returns true if the process exists, including zombies.
fn alive(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

/// Waits until all processes have ended, and were reaped.
async fn until_none_is_alive(pids: &str) {
    for _ in 0..2000 {
        if !pids.lines().any(alive) {
            return;
        }
        sleep(REAP_POLL_INTERVAL).await;
    }
    panic!("a process still exists: {pids}");
}

#[tokio::test]
async fn exit_results() {
    use HealthReason::{CannotRun, ExecExit, ExecTimeout};
    let missing = "cannot start /no/such: No such file or directory (os error 2)";
    for (command, seconds, expected) in [
        (vec!["true"], 9, Ok(())),
        (vec!["sh", "-c", "exit 3"], 9, Err((ExecExit, "exit code 3"))),
        (vec!["sh", "-c", "kill -9 $$"], 9, Err((ExecExit, "terminated by SIGKILL"))),
        (vec!["sleep", "99"], 1, Err((ExecTimeout, "did not exit within 1 s"))),
        (vec!["sh", "-c", "trap '' TERM INT; sleep 99"], 1, Err((ExecTimeout, "did not exit within 1 s"))),
        (vec!["/no/such"], 9, Err((CannotRun, missing))),
        (
            vec!["/etc/passwd"],
            9,
            Err((CannotRun, "cannot start /etc/passwd: Permission denied (os error 13)")),
        ),
        // The probe does not wait for a grandchild that keeps the pipes open.
        (vec!["sh", "-c", "sleep 99 & exit 0"], 9, Ok(())),
        (vec!["sh", "-c", "cat"], 9, Ok(())),
        (
            vec![
                "sh",
                "-c",
                "test \"$(pwd)\" = / && test \"$(env | grep -vE '^(PATH|TZ|APP_HEALTH_PROBE|PWD|SHLVL|_|OLDPWD)=' | wc -l)\" = 0",
            ],
            9,
            Ok(()),
        ),
    ] {
        let found = run(&command, seconds).await;
        assert_eq!(found, expected.map_err(|(reason, text)| (reason, text.to_owned())), "{command:?}");
    }
}

#[tokio::test]
async fn all_processes_are_reaped() {
    let file = std::env::temp_dir().join(format!("app-health-{}-pids", std::process::id()));
    for end in ["wait", "exit 0", "exit 1"] {
        let script = format!(
            "sleep 99 & echo $! > {0}; sleep 99 & echo $! >> {0}; echo $$ >> {0}; {end}",
            file.display()
        );
        let _ = run(&["sh", "-c", &script], 5).await;
        let pids = std::fs::read_to_string(&file).unwrap();
        assert_eq!(pids.lines().count(), 3, "{end}");
        until_none_is_alive(&pids).await;
    }
    std::fs::remove_file(file).unwrap();
}

/// A script that starts processes in other sessions, a child of such a process too, and
/// writes their process IDs into a file before it ends.
fn daemons(file: &Path, end: &str) -> String {
    let file = file.display();
    format!(
        "setsid sh -c 'echo $$ >> {file}; setsid sh -c \"echo \\$\\$ >> {file}; exec sleep 99\" & exec sleep 98' &
         setsid sh -c 'setsid sh -c \"echo \\$\\$ >> {file}; exec sleep 97\" & exit 0' &
         while [ \"$(cat {file} 2>/dev/null | wc -l)\" -lt 3 ]; do sleep 0.01; done
         {end}"
    )
}

#[tokio::test]
async fn processes_in_other_sessions_are_killed() {
    let file = std::env::temp_dir().join(format!("app-health-{}-sessions", std::process::id()));
    for end in ["sleep 99", "exit 0", "exit 1", "kill -9 $$"] {
        let _ = run(&["sh", "-c", &daemons(&file, end)], 5).await;
        let pids = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(pids.lines().count(), 3, "{end}");
        until_none_is_alive(&pids).await;
    }
}

#[tokio::test]
async fn other_children_are_left_alone() {
    let mut other = tokio::process::Command::new("setsid").args(["sleep", "99"]).spawn().unwrap();
    assert_eq!(run(&["sh", "-c", "setsid sleep 99 & exit 0"], 9).await, Ok(()));
    assert!(matches!(other.try_wait(), Ok(None)));
    other.kill().await.unwrap();
}

#[tokio::test]
async fn a_dropped_probe_leaves_no_processes() {
    let file = std::env::temp_dir().join(format!("app-health-{}-dropped", std::process::id()));
    let done = file.with_extension("done");
    let script =
        daemons(&file, &format!("echo $$ >> {}; touch {}; sleep 99", file.display(), done.display()));
    let command = ["sh", "-c", &script];
    let _ = timeout(Duration::from_secs(60), async {
        tokio::select! {
            _ = run(&command, 99) => {}
            () = async { while !done.exists() { sleep(REAP_POLL_INTERVAL).await; } } => {}
        }
    })
    .await;
    let pids = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    std::fs::remove_file(done).unwrap();
    assert_eq!(pids.lines().count(), 4);
    until_none_is_alive(&pids).await;
}

#[tokio::test]
async fn output_beyond_the_limit_is_discarded() {
    let mut kept = Vec::new();
    let endless = tokio::io::AsyncReadExt::take(tokio::io::repeat(b'x'), 64 << 20);
    read(Some(endless), &mut kept).await;
    assert_eq!((kept.len(), kept.capacity() < 64 << 10), (MAX_OUTPUT_BYTES, true));
    assert_eq!(
        run(&["sh", "-c", "head -c 100000000 /dev/zero; head -c 1000000 /dev/zero >&2"], 30).await,
        Ok(())
    );
    assert_eq!(printable_lines(b"one\ntwo\x07\xff"), "one | two\\x07\\xef\\xbf\\xbd");
}
