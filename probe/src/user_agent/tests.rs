use super::user_agent;
use crate::path::ProbeKind;

#[test]
fn user_agents() {
    const OURS: &str = "kube-probe/app-health";
    for (caller, expected) in [
        (Some("kube-probe/1.36"), "kube-probe/1.36"),
        (Some("kube-probe/1.36+"), "kube-probe/1.36+"),
        (Some("kube-lifecycle/1.36"), "kube-lifecycle/1.36"),
        (Some("kube-probe/0123456789.+0123"), "kube-probe/0123456789.+0123"),
        (Some("kube-probe/0123456789.+01234"), OURS),
        (Some("kube-probe/"), OURS),
        (Some("kube-probe/1.36 "), OURS),
        (Some("kube-probe/1.36,kube-probe/1.36"), OURS),
        (Some("kube-probe/v1"), OURS),
        (Some("kube-probe/1\r\nX: y"), OURS),
        (Some("Kube-Probe/1.36"), OURS),
        (Some("kube-probe"), OURS),
        (Some("curl/8"), OURS),
        (Some(""), OURS),
        (None, OURS),
    ] {
        let sent = user_agent(caller.map(str::as_bytes), ProbeKind::Liveness);
        assert_eq!(String::from_utf8_lossy(sent), expected, "{caller:?}");
    }
    assert_eq!(user_agent(Some(b"kube-probe/\xff"), ProbeKind::Readiness), OURS.as_bytes());
    assert_eq!(user_agent(None, ProbeKind::PreStop), b"kube-lifecycle/app-health");
    assert_eq!(user_agent(Some(b"kube-lifecycle/1.36"), ProbeKind::PostStart), b"kube-lifecycle/1.36");
}
