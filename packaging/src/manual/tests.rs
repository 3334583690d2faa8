use super::*;
use crate::programs;

#[test]
fn every_flag_of_every_command_has_its_manual_page() {
    for program in programs() {
        let pages = pages(&program).expect("memory is writable");
        let mut flags = 0;
        for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
            let path = PathBuf::from(format!("man1/{}-{}.1", program.get_name(), command.get_name()));
            let page = pages.iter().find(|(found, _)| *found == path);
            let text = String::from_utf8_lossy(&page.unwrap_or_else(|| panic!("{}", path.display())).1);
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let Some(flag) = argument.get_long() else { continue };
                let roff = format!("\\-\\-{}\\fR", flag.replace('-', "\\-"));
                assert!(text.contains(&roff), "{}: --{flag}", path.display());
                flags += 1;
            }
        }
        assert!(flags > 50, "{}: {flags} flags", program.get_name());
    }
}

#[test]
fn hidden_commands_have_no_page() {
    let [agent, _] = programs();
    let pages = pages(&agent).expect("memory is writable");
    let names: Vec<_> = pages.iter().map(|(path, _)| path.display().to_string()).collect();
    let expected =
        ["", "-run", "-bootstrap", "-wait", "-drain", "-undrain", "-quit", "-proxy", "-request", "-copy"];
    assert_eq!(names, expected.map(|command| format!("man1/app-health-agent{command}.1")));
}

#[test]
fn a_page_names_no_build() {
    for (path, text) in programs().iter().flat_map(|program| pages(program).expect("memory is writable")) {
        assert!(!String::from_utf8_lossy(&text).contains("commit:"), "{}", path.display());
    }
}
