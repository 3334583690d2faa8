//! Reviews an AdmissionReview. The types are defined here so that the object stays an unparsed
//! value; the patch is base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use injector::patch::patch;
use injector::settings::Settings;
use injector::warning::{Code, Warning};
use injector::{Injection, PodContext, PodOutcome, ProbeSummary, WARNINGS_ANNOTATION, apply};

/// Maximum length of a warning in characters; the API server truncates longer ones.
const WARNING: usize = 256;
/// Maximum length of all warnings together.
const ALL_WARNINGS: usize = 4096;
const KIND: &str = "AdmissionReview";
const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// A body that is not an AdmissionReview, described in one line that contains no text of the
/// client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidReview(String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Request<'a> {
    uid: Option<String>,
    resource: Resource,
    sub_resource: Option<String>,
    operation: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource {
    group: Option<String>,
    version: Option<String>,
    resource: Option<String>,
}

/// Result of a review: the body of the response, and details for log and metrics.
#[derive(Clone, Debug)]
pub struct Reviewed {
    /// The response as JSON.
    pub body: Vec<u8>,
    pub outcome: PodOutcome,
    pub namespace: String,
    pub name: String,
    pub probes: Vec<ProbeSummary>,
    pub warnings: Vec<Warning>,
}

/// Returns the uid of a review if it can be parsed, for the log line of a failed review.
pub fn uid(body: &[u8]) -> Option<String> {
    let review: Review = serde_json::from_slice(body).ok()?;
    serde_json::from_str::<Request>(review.request?.get()).ok()?.uid
}

/// Reviews an object. Everything but the creation of a Pod is allowed unchanged; nothing is ever
/// denied.
///
/// # Errors
/// Returns an error if the body is not an AdmissionReview of a supported version.
pub fn review(body: &[u8], settings: &Settings) -> Result<Reviewed, InvalidReview> {
    // Parts that are not needed are skipped: a body of any shape costs no more memory than its
    // bytes.
    let review: Review = parse(body)?;
    let text =
        |value: Option<&RawValue>| value.and_then(|value| serde_json::from_str::<String>(value.get()).ok());
    let (version, kind) = (text(review.api_version), text(review.kind));
    let version = VERSIONS
        .into_iter()
        .find(|known| version.as_deref() == Some(known))
        .ok_or_else(|| InvalidReview("apiVersion: must be admission.k8s.io/v1 or v1beta1".to_owned()))?;
    if kind.as_deref() != Some(KIND) {
        return Err(InvalidReview(format!("kind: must be {KIND}")));
    }
    let needed = |field: &str| InvalidReview(format!("{field}: required"));
    let request =
        review.request.filter(|request| request.get() != "null").ok_or_else(|| needed("request"))?;
    let request: Request = serde_json::from_str(request.get())
        .map_err(|error| InvalidReview(format!("request: {}", reason(&error))))?;
    let uid = request.uid.clone().filter(|uid| !uid.is_empty()).ok_or_else(|| needed("request.uid"))?;
    let (namespace, object) = (request.namespace.clone().unwrap_or_default(), object(&request)?);
    let name = request.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| {
        let metadata = object.as_ref().and_then(|object| object.get("metadata"));
        let name = |key| metadata.and_then(|metadata| metadata.get(key)).and_then(Value::as_str);
        name("name").or_else(|| name("generateName")).unwrap_or_default().to_owned()
    });
    let surroundings = PodContext { namespace: &namespace, ..PodContext::default() };
    let (mut outcome, mut patch, mut probes, mut warnings) =
        (PodOutcome::Skipped, None, Vec::new(), Vec::new());
    match object.as_ref().map(|object| (object, apply(object, surroundings, settings))) {
        None => {}
        Some((object, Ok(injection))) => {
            patch = self::patch(object, &injection.pod);
            Injection { outcome, probes, warnings, .. } = injection;
        }
        Some((_, Err(error))) => {
            outcome = PodOutcome::Unchanged;
            warnings.push(Warning::about_pod(Code::Malformed, error.to_string()));
        }
    }
    let mut response = json!({"uid": uid, "allowed": true});
    if let Some(patch) = patch {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch).into();
    }
    let texts = truncated_warnings(&warnings);
    if !texts.is_empty() {
        response["warnings"] = texts.into();
    }
    response["auditAnnotations"] = json!({"result": outcome.word()});
    let body = json!({"apiVersion": version, "kind": KIND, "response": response}).to_string().into_bytes();
    Ok(Reviewed { body, outcome, namespace, name, probes, warnings })
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, InvalidReview> {
    // Invalid UTF-8 is rejected first, so that the code below need not handle it.
    let text = std::str::from_utf8(body)
        .map_err(|error| InvalidReview(format!("body: invalid UTF-8 at byte {}", error.valid_up_to())))?;
    serde_json::from_str(text).map_err(|error| InvalidReview(format!("body: {}", reason(&error))))
}

/// Returns the kind and place of the error without text of the client.
fn reason(error: &serde_json::Error) -> String {
    let reason = match error.classify() {
        Category::Data => "a field has the wrong type",
        Category::Eof => "ends too early",
        _ => "invalid JSON",
    };
    format!("{reason} at line {} column {}", error.line(), error.column())
}

/// Returns the Pod that is being created; `None` for anything else, and JSON `null` if the object
/// is missing.
fn object(request: &Request) -> Result<Option<Value>, InvalidReview> {
    let Resource { group, version, resource } = &request.resource;
    let is_pod = group.as_deref().unwrap_or_default().is_empty()
        && version.as_deref() == Some("v1")
        && resource.as_deref() == Some("pods")
        && request.sub_resource.as_deref().unwrap_or_default().is_empty()
        && request.operation.as_deref() == Some("CREATE");
    if !is_pod {
        return Ok(None);
    }
    let Some(object) = request.object else { return Ok(Some(Value::Null)) };
    let object = serde_json::from_str(object.get());
    object.map(Some).map_err(|error| InvalidReview(format!("request.object: {}", reason(&error))))
}

/// Returns the warnings within the limits of the API server, on each and on all together.
fn truncated_warnings(warnings: &[Warning]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut length = 0;
    let more = |count: usize| format!("app-health: {count} more, see annotation {WARNINGS_ANNOTATION}");
    for (index, warning) in warnings.iter().enumerate() {
        let text: String = warning.to_string().chars().take(WARNING).collect();
        length += text.chars().count();
        let rest = warnings.len() - index;
        if length + more(rest).len() > ALL_WARNINGS {
            texts.push(more(rest));
            break;
        }
        texts.push(text);
    }
    texts
}

#[cfg(test)]
mod tests;
