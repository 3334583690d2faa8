use super::*;
use discovery::entries::WorkloadView;

const HOSTILE: &str = "</script><script>alert(1)</script><img src=x>";

fn view(number: usize) -> RegistryView {
    let workload = WorkloadView {
        namespace: HOSTILE.to_owned(),
        name: HOSTILE.to_owned(),
        group: None,
        address: HOSTILE.to_owned(),
        endpoint: "removed",
        why: HOSTILE.to_owned(),
        condition: None,
        agent: None,
        controller: Some(HOSTILE.to_owned()),
        health_ignored: false,
        preserved_as_last: false,
        self_preserved: false,
    };
    RegistryView {
        config_errors: vec![HOSTILE.to_owned()],
        workloads: vec![workload; number],
        ..RegistryView::default()
    }
}

fn page(number: usize) -> String {
    let view = view(number);
    html(&Overview::new(HOSTILE, "redb", &view, vec![HOSTILE.to_owned()], Vec::new()), &view)
}

#[test]
fn hostile_texts_stay_text() {
    let html = page(1);
    assert_eq!(html.matches("<script").count(), 1, "only the page's own: {html}");
    assert!(!html.contains("<img"), "{html}");
    assert!(html.matches("&lt;script&gt;alert(1)").count() >= 6, "each of them is shown: {html}");
}

#[test]
fn the_page_is_small_and_needs_nothing_but_itself() {
    assert!(PAGE.len() < 60 << 10, "{} bytes", PAGE.len());
    assert!(POLICY.starts_with("default-src 'none'; style-src 'sha256-"), "{POLICY}");
    for forbidden in ["innerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", "://"] {
        assert!(!PAGE.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn without_javascript_the_first_machines_are_shown() {
    let html = page(10_000);
    assert_eq!(html.matches("<span class=\"bad\">removed</span>").count(), 200);
    assert!(html.contains("The first 200 of 10000"), "{html}");
}
