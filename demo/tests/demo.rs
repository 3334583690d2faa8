//! The demo as a newcomer runs it: its verdicts, ports in use, and its children if it is killed.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

/// All demos of a checkout use the same state directory, so one runs at a time.
static ONE: Mutex<()> = Mutex::const_new(());

fn demo(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command.spawn().expect("the demo starts")
}

/// Listens on the demo's well-known ports. One that another process uses already is as good.
fn take_well_known_ports() -> [Option<TcpListener>; 4] {
    [15020, 15021, 15004, 15090].map(|port| TcpListener::bind(("127.0.0.1", port)).ok())
}

/// Returns the processes that descend from `pid`, without it.
fn descendants(pid: u32) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").expect("Linux has /proc").flatten();
    let children: Vec<u32> = processes
        .filter_map(|process| {
            let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
            // The name in parentheses may contain blanks; state and parent follow it.
            let parent: u32 = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
            (parent == pid).then(|| process.file_name().to_string_lossy().parse().ok())?
        })
        .collect();
    children
        .into_iter()
        .flat_map(|child| {
            let id = Pid::from_raw(i32::try_from(child).expect("a process id"));
            [id].into_iter().chain(descendants(child))
        })
        .collect()
}

/// Returns false if the process has ended, also if its parent has not waited for it.
fn is_alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Requests the page at this address.
async fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("the page's port is open");
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a connection");
    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("a response in UTF-8");
    response
}

#[tokio::test]
async fn all_verdicts_are_correct_even_if_ports_are_in_use() {
    let _one = ONE.lock().await;
    let _taken = take_well_known_ports();
    let output = demo(&["--once"]).wait_with_output().await.expect("the demo can be waited for");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}");
    for port in ["15020", "15021", "15004", "15090"] {
        assert!(stdout.contains(&format!("port {port} cannot be used")), "{stdout}");
    }
    for (probe, status) in [("web/readyz", "200"), ("legacy/readyz", "503"), ("db/readyz", "200")] {
        let row = stdout.lines().find(|line| line.contains(probe)).unwrap_or_else(|| panic!("{stdout}"));
        assert!(row.contains(status), "{row}");
    }
}

#[tokio::test]
async fn a_killed_demo_leaves_no_process() {
    let _one = ONE.lock().await;
    // Agents of other tests listen on 15021 of their own addresses, which a demo on all addresses prevents.
    let _taken = take_well_known_ports();
    let mut demo = demo(&[]);
    let mut lines = BufReader::new(demo.stdout.take().expect("a pipe")).lines();
    let mut output = String::new();
    while !output.contains("page of the agent: http://") {
        let line = lines.next_line().await.expect("the demo prints text");
        output += &line.unwrap_or_else(|| panic!("the demo ended: {output}"));
    }
    let (_, address) = output.rsplit_once("page of the agent: http://").expect("the address of the page");
    let page = get(address.trim_end_matches('/')).await;
    assert!(page.contains("<th scope=\"row\">web/readyz</th>"), "{page}");
    let children = descendants(demo.id().expect("the demo runs"));
    let envoy = |pid: &Pid| {
        let program = std::fs::read_link(Path::new("/proc").join(pid.to_string()).join("exe"));
        program.is_ok_and(|program| program.ends_with("envoy/_bin/envoy"))
    };
    assert!(children.iter().any(envoy), "the demo's agent runs Envoy: {children:?}");
    demo.kill().await.expect("the demo can be killed");
    let gone = async {
        while children.iter().any(|pid| is_alive(*pid)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(40), gone).await.expect("agent and Envoy end");
}
