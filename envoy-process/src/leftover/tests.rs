use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::*;

const ARGUMENTS: [&str; 2] = ["-c", "/state/envoy.json"];

/// A process group that is killed on drop.
struct Group(Child);

impl Group {
    /// Runs `script`, which has the arguments of Envoy, and waits until it prints a line.
    fn start(script: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).args(ARGUMENTS).process_group(0).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        Self(child)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    /// Returns a record of this group that an agent wrote which has exited.
    fn record(&self) -> EnvoyRecord {
        EnvoyRecord {
            scope: Scope::current().unwrap(),
            agent: ProcessIdentity { pid: 1, start_time: u64::MAX },
            envoy: ProcessIdentity::of(self.pid()).unwrap(),
            arguments: ARGUMENTS.map(|word| word.as_bytes().to_vec()).to_vec(),
        }
    }

    fn is_running(&self) -> bool {
        ProcStat::all().any(|(_, stat)| stat.group == self.pid() && !stat.is_zombie())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.pid()), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

async fn end(record: &EnvoyRecord) -> Result<(), Failure> {
    let file =
        std::env::temp_dir().join(format!("agent-leftover-{}-{}", std::process::id(), record.envoy.pid));
    fs::write(&file, serde_json::to_vec(record).unwrap()).unwrap();
    let ended = super::end(&file, true).await;
    fs::remove_file(&file).unwrap();
    ended
}

#[tokio::test]
async fn a_group_without_its_agent_is_ended() {
    for script in [
        "echo; exec sleep 1000",
        "trap '' TERM; echo; while :; do sleep 1; done",
        // The leader exits and leaves a process with its arguments.
        "sh -c 'echo; sleep 1000; :' sh \"$@\" & exit 0",
    ] {
        let mut group = Group::start(script);
        let record = group.record();
        if script.ends_with("exit 0") {
            group.0.wait().unwrap();
        }
        assert!(group.is_running() && record.is_running(), "{script}");
        end(&record).await.unwrap();
        assert!(!group.is_running(), "{script}");
    }
}

/// Each change makes the record one of another process.
#[tokio::test]
async fn other_processes_are_not_touched() {
    let group = Group::start("echo; exec sleep 1000");
    for change in [
        (|record| record.envoy.start_time += 1) as fn(&mut EnvoyRecord),
        |record| record.scope.boot_id.push('x'),
        |record| record.scope.pid_namespace = "pid:[1]".into(),
    ] {
        let mut record = group.record();
        change(&mut record);
        end(&record).await.unwrap();
        assert!(group.is_running());
    }
    // A group whose leader has exited, and in which no process has the arguments of Envoy.
    let mut other = Group::start("(echo; exec sleep 1000) & exit 0");
    let record = other.record();
    other.0.wait().unwrap();
    // The shell has the arguments until it executes the other program.
    let members = || ProcStat::all().filter(|(_, stat)| stat.group == record.envoy.pid);
    while members().any(|(pid, _)| record.has_arguments(pid)) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    end(&record).await.unwrap();
    assert!(other.is_running());
}

#[tokio::test]
async fn the_envoy_of_a_running_agent_is_not_ended() {
    let (group, agent) = (Group::start("echo; exec sleep 1000"), Group::start("echo; exec sleep 1000"));
    let record = EnvoyRecord { agent: ProcessIdentity::of(agent.pid()).unwrap(), ..group.record() };
    let failure = end(&record).await.unwrap_err();
    assert_eq!(failure.code(), 71);
    assert!(failure.to_string().contains(&format!("process id {}", agent.pid())), "{failure}");
    assert!(group.is_running());
}

#[tokio::test]
async fn files_that_record_nothing() {
    let file = std::env::temp_dir().join(format!("agent-leftover-{}", std::process::id()));
    super::end(&file, true).await.unwrap();
    let no_group = serde_json::to_string(&EnvoyRecord {
        envoy: ProcessIdentity { pid: 0, start_time: 0 },
        ..Group::start("echo; exec sleep 1000").record()
    });
    for text in ["", "{}", "[1]", &no_group.unwrap()] {
        fs::write(&file, text).unwrap();
        super::end(&file, true).await.unwrap();
    }
    fs::remove_file(&file).unwrap();
}

/// To open a FIFO blocks until another process writes to it.
#[test]
fn a_fifo_records_nothing() {
    let file = std::env::temp_dir().join(format!("agent-leftover-fifo-{}", std::process::id()));
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (sender, found) = std::sync::mpsc::channel();
    let read = file.clone();
    std::thread::spawn(move || sender.send(EnvoyRecord::read(&read).is_none()));
    let found = found.recv_timeout(Duration::from_secs(60));
    fs::remove_file(&file).unwrap();
    assert_eq!(found, Ok(true));
}
