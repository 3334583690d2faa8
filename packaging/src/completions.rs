//! Completions for bash, zsh and fish, under the names that these shells expect.

use std::path::PathBuf;

use clap::Command;
use clap_complete::{Generator, Shell, generate};

use crate::GeneratedFile;

const SHELLS: [(Shell, &str); 3] = [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")];

/// Returns the scripts of `program`, each in the directory of its shell.
pub(crate) fn scripts(program: &Command) -> Vec<GeneratedFile> {
    let name = program.get_name().to_owned();
    let script = |(shell, folder): (Shell, &str)| {
        let file = if folder == "bash" { name.clone() } else { shell.file_name(&name) };
        let mut text = Vec::new();
        generate(shell, &mut program.clone(), name.clone(), &mut text);
        (PathBuf::from(folder).join(file), text)
    };
    SHELLS.into_iter().map(script).collect()
}

#[cfg(test)]
mod tests;
