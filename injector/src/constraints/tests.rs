use serde_json::{Value, json};

use super::{ANNOTATIONS_BYTES, check_annotations};

/// Returns a Pod with two annotations whose names and values have this many bytes together.
fn pod(bytes: usize) -> Value {
    let value = "x".repeat(bytes - "a".len() - "name".len());
    json!({"metadata": {"annotations": {"a": "", "name": value}}})
}

#[test]
fn annotations_that_become_too_large_are_an_error() {
    let (small, largest, too_large) = (pod(100), pod(ANNOTATIONS_BYTES), pod(ANNOTATIONS_BYTES + 1));
    assert!(check_annotations(&small, &largest).is_ok());
    assert!(check_annotations(&largest, &too_large).is_err());
    // The user's own are the API server's business.
    assert!(check_annotations(&too_large, &too_large).is_ok());
    assert!(check_annotations(&json!({}), &json!({"metadata": {}})).is_ok());
}
