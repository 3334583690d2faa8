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
        if shell == Shell::Bash {
            text = with_matching_cases(&String::from_utf8_lossy(&text), &name).into_bytes();
        }
        (PathBuf::from(folder).join(file), text)
    };
    SHELLS.into_iter().map(script).collect()
}

/// Corrects the script for a program with `-` in its name. clap_complete 4.6.11 writes the name in two ways,
/// one where it finds out the command and one where it lists the commands' flags, so that no flag would be
/// offered.
fn with_matching_cases(script: &str, name: &str) -> String {
    script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"))
}

#[cfg(test)]
mod tests;
