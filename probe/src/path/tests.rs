use proptest::prelude::*;

use super::{ProbeKind, ProbePath};

#[test]
fn the_five_kinds_of_paths_round_trip() {
    for (text, container, kind, word, hook) in [
        ("/app-health/app/livez", "app", ProbeKind::Liveness, "livez", false),
        ("/app-health/app/readyz", "app", ProbeKind::Readiness, "readyz", false),
        ("/app-health/app/startupz", "app", ProbeKind::Startup, "startupz", false),
        ("/app-lifecycle/app/prestopz", "app", ProbeKind::PreStop, "prestopz", true),
        ("/app-lifecycle/app/poststartz", "app", ProbeKind::PostStart, "poststartz", true),
        ("/app-health/A.z_0-9/livez", "A.z_0-9", ProbeKind::Liveness, "livez", false),
        ("/app-health/livez/livez", "livez", ProbeKind::Liveness, "livez", false),
        ("/app-health/../livez", "..", ProbeKind::Liveness, "livez", false),
    ] {
        let path = ProbePath::parse(text).expect(text);
        assert_eq!((path.container(), path.kind(), path.to_string().as_str()), (container, kind, text));
        assert_eq!((path.kind().word(), path.kind().is_hook()), (word, hook), "{text}");
    }
}

#[test]
fn a_container_has_1_to_253_bytes() {
    for (length, valid) in [(0, false), (1, true), (63, true), (253, true), (254, false)] {
        let text = format!("/app-health/{}/livez", "a".repeat(length));
        assert_eq!(ProbePath::parse(&text).is_some(), valid, "{length}");
    }
}

#[test]
fn similar_paths_are_rejected() {
    for text in [
        "",
        "/",
        "/app-health",
        "/app-health/",
        "/app-health/livez",
        "/app-health//livez",
        "/app-health/app",
        "/app-health/app/",
        "/app-health/app/health",
        "/app-health/app/live",
        "/app-health/app/livezz",
        "/app-health/app/livez/",
        "/app-health/app/livez?",
        "/app-health/app/livez?x=1",
        "/app-health/app/livez#x",
        "/app-health/app/livez;x",
        "/app-health/app/livez ",
        "/app-health/app/livez\0",
        "/app-health/app/Livez",
        "/app-health/app//livez",
        "/app-health/app/x/livez",
        "/App-Health/app/livez",
        "//app-health/app/livez",
        "/./app-health/app/livez",
        "app-health/app/livez",
        " /app-health/app/livez",
        "/app-health2/app/livez",
        "/app-health\\app\\livez",
        "/app-health/app%2Flivez",
        "/app%2Dhealth/app/livez",
        "/app-health/a b/livez",
        "/app-health/a%41/livez",
        "/app-health/é/livez",
        "/app-health/a;b/livez",
        "/app-health/app/prestopz",
        "/app-health/app/poststartz",
        "/app-lifecycle/app/livez",
        "/app-lifecycle/app/readyz",
        "/app-lifecycle/app/prestop",
        "http://pod/app-health/app/livez",
        "*",
    ] {
        assert_eq!(ProbePath::parse(text), None, "{text:?}");
    }
}

proptest! {
    #[test]
    fn parsed_paths_print_unchanged(text in "(/app-health/|/app-lifecycle/|/)[a-zA-Z._/-]{0,9}/(livez|readyz|prestopz|x)?") {
        if let Some(path) = ProbePath::parse(&text) {
            prop_assert_eq!(path.to_string(), text);
        }
    }
}

#[test]
fn kinds_have_kubelets_names() {
    let names = |kinds: &[super::ProbeKind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    assert_eq!(names(&super::ProbeKind::PROBES), ["liveness", "readiness", "startup"]);
    assert_eq!(names(&super::ProbeKind::HOOKS), ["preStop", "postStart"]);
}
