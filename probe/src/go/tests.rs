use super::parse_bool;

#[test]
fn booleans_of_go() {
    for text in ["1", "t", "T", "true", "True", "TRUE"] {
        assert_eq!(parse_bool(text), Some(true), "{text}");
    }
    for text in ["0", "f", "F", "false", "False", "FALSE"] {
        assert_eq!(parse_bool(text), Some(false), "{text}");
    }
    for text in ["", "tRUE", " true", "yes", "2"] {
        assert_eq!(parse_bool(text), None, "{text}");
    }
}
