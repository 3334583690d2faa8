//! Starts child processes that the kernel kills when their parent exits, even if it is killed itself.
//!
//! The option for that (`PR_SET_PDEATHSIG`) can be set safely only by the child. So the running
//! program starts itself again as a launcher, which sets the option and then executes the child's
//! program in the same process.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, OnceLock};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::getppid;
use tokio::process::Command;

/// The first argument of the launcher; the PID of its parent, the file of its control group, the program and
/// its arguments follow.
const LAUNCH: &str = "launch-child";

/// No control group.
const NONE: &str = "-";

static LAUNCHER: OnceLock<PathBuf> = OnceLock::new();
static GROUP: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Makes [`command`] use the running program as the launcher; its `main` must call
/// [`run_if_requested`] first. The children are killed when the thread that started them ends, so
/// a program that calls this needs a runtime of one thread.
///
/// # Panics
/// If the path of the running program is unknown.
pub fn enable() {
    LAUNCHER.get_or_init(|| std::env::current_exe().expect("a running binary has a path"));
}

/// Makes all children that are started from now on members of a control group before they execute their
/// programs; `members` is its file. Needs [`enable`].
pub fn set_group(members: Option<PathBuf>) {
    *group() = members;
}

fn group() -> MutexGuard<'static, Option<PathBuf>> {
    GROUP.lock().expect("the mutex is not poisoned")
}

/// Returns a command for this program.
pub fn command(program: &Path) -> Command {
    let Some(launcher) = LAUNCHER.get() else { return Command::new(program) };
    let mut command = Command::new(launcher);
    command.arg(LAUNCH).arg(std::process::id().to_string());
    command.arg(group().as_deref().unwrap_or(Path::new(NONE))).arg(program);
    command
}

/// Executes the program of a child if this process is the launcher, and returns only if that fails;
/// returns `None` in any other process.
pub fn run_if_requested() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != LAUNCH {
        return None;
    }
    let error = launch(arguments.collect());
    // The exit code reports the failure too.
    let _ = writeln!(std::io::stderr(), "{LAUNCH}: {error}");
    Some(ExitCode::FAILURE)
}

fn launch(arguments: Vec<OsString>) -> String {
    let [parent, group, program, arguments @ ..] = &*arguments else { return "no program".to_owned() };
    if let Err(error) = set_pdeathsig(Signal::SIGKILL) {
        return error.to_string();
    }
    // The parent may have exited before the option was set.
    if *parent != *getppid().to_string() {
        return "the parent has exited".to_owned();
    }
    if group != NONE
        && let Err(error) = std::fs::write(group, std::process::id().to_string())
    {
        return format!("{}: {error}", group.display());
    }
    std::process::Command::new(program).args(arguments).exec().to_string()
}
