//! Label selectors of Kubernetes.

use serde_json::Value;

use crate::container::list;

/// Returns true if `selector` selects an object with these labels. An absent selector selects all.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut equal = equal.map(|(key, value)| label(key) == value.as_str());
    let mut expressions = list(&selector["matchExpressions"]).iter().map(|expression| {
        let found = label(expression["key"].as_str().unwrap_or_default());
        let is_listed =
            found.is_some_and(|found| list(&expression["values"]).iter().any(|value| value == found));
        match expression["operator"].as_str().unwrap_or_default() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => false,
        }
    });
    equal.all(|holds| holds) && expressions.all(|holds| holds)
}

/// Returns the selector in the form of the query parameter `labelSelector`.
pub fn query(selector: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let equal = equal.map(|(key, value)| format!("{key}={}", text(value)));
    let expressions = list(&selector["matchExpressions"]).iter().map(|expression| {
        let key = text(&expression["key"]);
        let values: Vec<String> = list(&expression["values"]).iter().map(text).collect();
        let values = values.join(",");
        match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key,
        }
    });
    equal.chain(expressions).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
