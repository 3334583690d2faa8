//! Manual pages: one for a program, and one for each of its commands, such as app-health-agent-run(1).

use std::io;
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;

use crate::GeneratedFile;

/// Returns the pages of `program` as roff, in the directory `man1`.
pub(crate) fn pages(program: &Command) -> io::Result<Vec<GeneratedFile>> {
    let mut program = program.clone().disable_help_subcommand(true);
    // It names the commands and gives them the program's version.
    program.build();
    let mut pages = Vec::new();
    collect(&program, &mut pages)?;
    Ok(pages)
}

fn collect(command: &Command, pages: &mut Vec<GeneratedFile>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text)?;
    pages.push((PathBuf::from(format!("man1/{name}.1")), text));
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| collect(command, pages))
}

#[cfg(test)]
mod tests;
