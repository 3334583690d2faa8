//! Fuzz targets for untrusted input, as functions over bytes: they check that the code terminates,
//! does not panic, and returns consistent results. Tests run them on a corpus and on seeded
//! mutations of it; a fuzzer can call the same functions.

mod callouts;
mod control_plane;
mod discovery;
mod explain;
mod expositions;
mod filter;
mod istio;
mod lint;
mod mesh_dns;
mod probe_answers;
mod workload_group;

use serde_json::Value;

use app_health::webhook::review;
use injector::document;
use injector::kinds::Kinds;
use injector::settings::{InjectionMode, Settings, SidecarMode};
use injector::template::Template;
use injector::yaml_documents::{self, Format};

pub use callouts::callouts;
pub use control_plane::{control_plane, xds_cache};
pub use discovery::discovery_request;
pub use explain::explanations;
pub use expositions::expositions;
pub use filter::{prober_table, responses};
pub use istio::{ca_answer, pod_configuration};
pub use lint::lint;
pub use mesh_dns::{dns_query, name_table};
pub use probe_answers::probe_answers;
pub use workload_group::workload_group;

/// Returns the settings with the defaults of the command line.
fn settings() -> Settings {
    Settings {
        sidecar_name: injector::template::SIDECAR_NAME.to_owned(),
        mode: InjectionMode::Auto,
        template: Template::built_in(injector::template::SIDECAR_NAME, None)
            .expect("the built-in template is valid"),
        sidecar_mode: SidecarMode::Native,
        hold: true,
        rewrite_probes: true,
        status_port: injector::settings::STATUS_PORT,
        ignored_namespaces: vec!["kube-system".to_owned()],
    }
}

/// Reviews an AdmissionReview: for any input the response allows the Pod, is JSON, and has short
/// warnings.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn admission_review(body: &[u8]) {
    thread_local!(static SETTINGS: Settings = settings());
    let Ok(reviewed) = SETTINGS.with(|settings| review::review(body, settings)) else { return };
    let answer: Value = serde_json::from_slice(&reviewed.body).expect("the answer is JSON");
    let response = &answer["response"];
    assert_eq!(response["allowed"], true);
    assert_eq!(response.get("patch").is_some(), response.get("patchType").is_some());
    let warnings = response["warnings"].as_array().map_or(&[][..], Vec::as_slice);
    let length: usize = warnings.iter().filter_map(Value::as_str).map(|text| text.chars().count()).sum();
    assert!(length <= 4096, "{length} characters of warnings");
}

/// Injects into a stream of documents: the written output reads back as the same value, and a
/// second injection changes nothing.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn documents(bytes: &[u8]) {
    thread_local!(static SETTINGS: Settings = settings());
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for document in yaml_documents::read(text).into_iter().flatten() {
        let Ok(injected) =
            SETTINGS.with(|settings| document::inject(&document.value, &Kinds::default(), settings))
        else {
            continue;
        };
        for format in [Format::Yaml, Format::Json] {
            let written = document.with_value(&injected.value, format);
            let mut read = yaml_documents::read(&written).into_iter().filter_map(|document| match document {
                Ok(document) => (document.number > 0).then_some(document.value),
                Err(error) => panic!("{error}: {written}"),
            });
            assert_eq!(read.next().unwrap_or_default(), injected.value, "{written}");
        }
        let again = SETTINGS
            .with(|settings| document::inject(&injected.value, &Kinds::default(), settings))
            .expect("still a workload");
        assert!(!again.changed, "{}", injected.value);
    }
}

#[cfg(test)]
mod tests;
