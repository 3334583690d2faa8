use super::*;

const TESTED: KnownVersion = KnownVersion::Release(EnvoyVersion::NEWEST);
const UNTESTED: KnownVersion = KnownVersion::Release(EnvoyVersion::OLDEST);
const ANY: Circumstances = Circumstances {
    wanted: WantedFilter::Auto,
    has_wasm_file: false,
    is_noexec: false,
    has_empty_header: false,
};

#[test]
fn the_form_depends_on_the_flag_then_on_the_circumstances() {
    use FilterForm::{Native, Wasm};
    let wanted = |wanted| Circumstances { wanted, ..ANY };
    let worst = Circumstances { has_wasm_file: true, is_noexec: true, has_empty_header: true, ..ANY };
    for (circumstances, envoy, form, reason) in [
        (ANY, TESTED, Native, FilterReason::TestedVersion),
        (ANY, UNTESTED, Wasm, FilterReason::UntestedVersion),
        (ANY, KnownVersion::Other, Wasm, FilterReason::UntestedVersion),
        (ANY, KnownVersion::Unknown, Wasm, FilterReason::UnknownVersion),
        (Circumstances { has_wasm_file: true, ..ANY }, TESTED, Wasm, FilterReason::WasmFile),
        (Circumstances { is_noexec: true, ..ANY }, TESTED, Wasm, FilterReason::NoExec),
        (Circumstances { has_empty_header: true, ..ANY }, TESTED, Wasm, FilterReason::EmptyHeader),
        (wanted(WantedFilter::Wasm), TESTED, Wasm, FilterReason::Flag),
        (wanted(WantedFilter::Native), UNTESTED, Native, FilterReason::Flag),
        (
            Circumstances { wanted: WantedFilter::Native, ..worst },
            KnownVersion::Unknown,
            Native,
            FilterReason::Flag,
        ),
    ] {
        let found = circumstances.choose(envoy);
        assert_eq!(found, FilterChoice { form, reason }, "{circumstances:?} {envoy:?}");
    }
}

#[test]
fn empty_headers_are_those_that_are_sent() {
    for (headers, expected) in [
        (r#"[{"name": "X-A", "value": "1"}]"#, false),
        (r#"[{"name": "X-A", "value": "1"}, {"name": "X-B", "value": ""}]"#, true),
        (r#"[{"name": "X-A", "value": " "}]"#, true),
        // Go omits an empty User-Agent, and takes the address for an empty Host.
        (r#"[{"name": "User-Agent", "value": ""}, {"name": "Host", "value": ""}]"#, false),
    ] {
        let table = format!(
            r#"{{"podIP": "10.0.0.5", "probers": {{"/app-health/a/livez": {{"httpGet": {{"port": 80, "httpHeaders": {headers}}}}}}}}}"#
        );
        let config = PluginConfig::parse(table.as_bytes()).unwrap();
        assert_eq!(has_empty_header(&config), expected, "{headers}");
    }
}
