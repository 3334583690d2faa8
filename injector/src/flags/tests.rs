use clap::Parser as _;

use super::SettingsArgs;

#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    settings: SettingsArgs,
}

#[test]
fn the_sidecar_name_is_a_dns_label() {
    let check = |name: &str| {
        let flag = format!("--sidecar-name={name}");
        Flags::try_parse_from(["app-health", &flag]).expect("flags").settings.check(None)
    };
    let longest = "a".repeat(63);
    for name in ["istio-proxy", "a", "0", longest.as_str()] {
        assert!(check(name).is_ok(), "{name}");
    }
    let too_long = "a".repeat(64);
    for name in ["", "-a", "a-", "-", "A", "a_b", "a.b", too_long.as_str()] {
        let error = check(name).err().unwrap_or_else(|| panic!("{name:?} is accepted"));
        assert!(error.starts_with(&format!("--sidecar-name = {name:?}: ")), "{error}");
    }
}
