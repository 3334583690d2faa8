use std::process::Command as Process;

use super::*;
use crate::programs;

/// Returns what bash offers after `words`, with the script of `program`.
fn offers(program: &Command, words: &[&str]) -> Vec<String> {
    let (_, script) = scripts(program).swap_remove(0);
    let text = String::from_utf8(script).expect("UTF-8");
    let (name, last) = (program.get_name(), words.len());
    let function = format!("_{}", name.replace('-', "__"));
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let (current, previous) = (words[last - 1], if last > 1 { words[last - 2] } else { name });
    let session = format!(
        "{text}\nCOMP_WORDS=({name} {}); COMP_CWORD={last}\n{function} {name} '{current}' '{previous}'\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        quoted.join(" ")
    );
    let output = Process::new("bash").args(["--norc", "-c", &session]).output().expect("bash runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let [agent, control_plane] = programs();
    assert_eq!(offers(&agent, &["ru"]), ["run"]);
    assert_eq!(offers(&agent, &["run", "--proxy-x"]), ["--proxy-xds"]);
    assert_eq!(offers(&agent, &["run", "--log-format", "j"]), ["json"]);
    assert_eq!(offers(&control_plane, &["disc"]), ["discovery"]);
    assert_eq!(offers(&control_plane, &["discovery", "--config-d"]), ["--config-dir"]);
}

#[test]
fn each_shell_has_its_file() {
    let [agent, _] = programs();
    let paths: Vec<String> = scripts(&agent).iter().map(|(path, _)| path.display().to_string()).collect();
    assert_eq!(paths, ["bash/app-health-agent", "zsh/_app-health-agent", "fish/app-health-agent.fish"]);
}
