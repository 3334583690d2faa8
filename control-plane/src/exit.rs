//! Ends the process: error lines on stderr, and the exit code.

use std::io::Write;
use std::process::ExitCode;

use serving::exit::Failure;

/// Returns the exit code of a command, after writing the lines of a failure to stderr.
pub fn of_command(result: Result<u8, Failure>) -> ExitCode {
    let failure = match result {
        Ok(code) => return ExitCode::from(code),
        Err(failure) => failure,
    };
    for line in failure.to_string().lines() {
        stderr_line(line);
    }
    ExitCode::from(failure.code())
}

/// Returns the exit code for a command line that clap did not accept: 0 for help and version,
/// otherwise 64 (clap itself uses 2).
pub fn of_clap(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let printable = printable::lines(&text);
    // Ignores errors: the stream may be closed.
    let _ = match printable == text {
        true => error.print(),
        false => write!(std::io::stderr(), "{printable}"),
    };
    if error.use_stderr() { ExitCode::from(64) } else { ExitCode::SUCCESS }
}

/// Joins errors, of which each becomes one line of a failure.
pub fn joined(errors: &[String]) -> String {
    let lines: Vec<_> = errors.iter().map(|error| printable::line(error)).collect();
    lines.join("\n")
}

/// Writes `line` to stderr; errors are ignored.
pub fn stderr_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "app-health: {}", printable::line(line));
}
