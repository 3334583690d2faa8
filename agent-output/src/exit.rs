//! Exit codes (those of sysexits.h where one fits) and the final error line, which goes to stderr
//! and to the container's termination message, where `kubectl describe` shows it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

pub use serving::exit::Failure;

use crate::stderr;

/// Default `terminationMessagePath` of a container.
pub const TERMINATION_LOG: &str = "/dev/termination-log";
/// Maximum length of the termination message in bytes. Kubernetes accepts up to 4096.
const TERMINATION_MESSAGE_LIMIT: usize = 1024;

/// Converts the result of a command into its exit code. On failure, writes its line to stderr and
/// to the termination message: to `termination_message`, which is created if it does not exist, or
/// to [`TERMINATION_LOG`] if that file exists.
pub fn of_command(result: Result<(), Failure>, termination_message: Option<&Path>) -> ExitCode {
    let code = match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure.to_string(), termination_message);
            ExitCode::from(failure.code())
        }
    };
    stderr::flush();
    code
}

/// Handles a command line that clap did not parse: help and version return 0, everything else
/// returns 64 instead of clap's 2.
pub fn of_clap(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed stdout is not an error here.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
    } else {
        say(&one_line(&error.to_string()), None);
        stderr::flush();
    }
    ExitCode::from(64)
}

/// Writes `line` to stderr, as a JSON object if the log has that format. A closed or blocked stderr has
/// no effect.
pub fn stderr_line(line: &str) {
    stderr::write_message(line);
}

fn say(line: &str, termination_message: Option<&Path>) {
    let line = printable::lines(line);
    stderr_line(&line);
    let mut end = line.len().min(TERMINATION_MESSAGE_LIMIT);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let file = termination_message.unwrap_or(Path::new(TERMINATION_LOG));
    let opened =
        OpenOptions::new().write(true).truncate(true).create(termination_message.is_some()).open(file);
    // A failure to write the message must not change the exit code.
    let _ = opened.and_then(|mut file| file.write_all(&line.as_bytes()[..end]));
}

/// Returns clap's message without layout, usage and the hint about `--help`.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let told =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let words: Vec<&str> = told.filter(|line| !line.is_empty()).collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
