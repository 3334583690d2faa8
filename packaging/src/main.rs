//! `command-reference DIR` writes the manual pages and the completions of both programs into `DIR`, one
//! directory for each program.

mod completions;
mod manual;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::{Command, CommandFactory};

/// A generated file: its path below the directory of its program, and its content.
type GeneratedFile = (PathBuf, Vec<u8>);

/// Returns the command lines of both programs, without what differs from build to build.
fn programs() -> [Command; 2] {
    [app_health_agent::args::Args::command(), app_health::args::Args::command()]
        .map(|program| program.long_version(Resettable::Reset))
}

/// Returns the generated files of a program.
fn files(program: &Command) -> Result<Vec<GeneratedFile>, Box<dyn Error>> {
    let mut files = manual::pages(program)?;
    files.extend(completions::scripts(program));
    Ok(files)
}

fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    for program in programs() {
        for (path, content) in files(&program)? {
            let file = folder.join(program.get_name()).join(path);
            fs::create_dir_all(file.parent().ok_or("a file has a folder")?)?;
            fs::write(file, content)?;
        }
    }
    Ok(())
}

#[allow(clippy::print_stderr, reason = "a command reports its errors there")]
fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(folder), None) = (words.next(), words.next()) else {
        eprintln!("usage: command-reference DIR");
        return ExitCode::from(64);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("command-reference: {}: {error}", Path::new(&folder).display());
            ExitCode::FAILURE
        }
    }
}
