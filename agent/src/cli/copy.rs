//! The command `copy`.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::args::CopyArgs;
use agent_output::exit::Failure;

const NAME: &str = "app-health-agent";
/// The file that the kernel executes, whatever the program was called.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Copies this program into a directory.
///
/// # Errors
/// If the file cannot be written there.
pub fn run(args: &CopyArgs) -> Result<(), Failure> {
    let directory = &args.directory;
    copy(Path::new(THIS_PROGRAM), directory)
        .map_err(|error| Failure::CannotWrite(format!("{}: {error}", directory.join(NAME).display())))
}

/// Replaces the file by another one, since a program that runs from an older copy cannot be overwritten.
fn copy(program: &Path, directory: &Path) -> io::Result<()> {
    let new = directory.join(format!(".{NAME}.new"));
    fs::copy(program, &new)?;
    // Other users execute it too, whatever the umask is.
    fs::set_permissions(&new, Permissions::from_mode(0o755))?;
    fs::rename(&new, directory.join(NAME))
}
