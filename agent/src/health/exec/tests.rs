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
                "test \"$(pwd)\" = / && test \"$(env | grep -vE '^(PATH|TZ|PWD|SHLVL|_|OLDPWD)=' | wc -l)\" = 0",
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
        let _ = run(&["sh", "-c", &script], 1).await;
        let pids = std::fs::read_to_string(&file).unwrap();
        assert_eq!(pids.lines().count(), 3, "{end}");
        assert_eq!(pids.lines().filter(|pid| alive(pid)).count(), 0, "{end}: {pids}");
    }
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn a_dropped_probe_leaves_no_processes() {
    let file = std::env::temp_dir().join(format!("app-health-{}-dropped", std::process::id()));
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 99", file.display());
    let command = ["sh", "-c", &script];
    let _ = timeout(Duration::from_secs(5), async {
        tokio::select! {
            _ = run(&command, 99) => {}
            () = async { while !file.exists() { sleep(REAP_POLL_INTERVAL).await; } } => {}
        }
    })
    .await;
    let pid = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    let is_running = || {
        let stat =
            std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    for _ in 0..2000 {
        if !is_running() {
            return;
        }
        sleep(REAP_POLL_INTERVAL).await;
    }
    panic!("process {pid} still exists");
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
