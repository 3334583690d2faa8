use super::{json, line, lines};

#[test]
fn what_a_terminal_interprets_is_escaped() {
    for (text, expected) in [
        ("shop", "shop"),
        ("größe 日本 👩\u{200d}🚀", "größe 日本 👩\u{200d}🚀"),
        ("a\u{1b}[31mb", "a\\u{1b}[31mb"),
        ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
        ("a\u{9b}31m\u{7f}", "a\\u{9b}31m\\u{7f}"),
        ("a\r\nb\tc\0", "a\\r\\nb\\tc\\u{0}"),
        ("\u{85}\u{2028}\u{2029}", "\\u{85}\\u{2028}\\u{2029}"),
    ] {
        assert_eq!(line(text), expected);
        assert_eq!(line(expected), expected, "an escaped text is not escaped again");
    }
    assert_eq!(lines("a\tb\n\u{1b}\r\n"), "a\tb\n\\u{1b}\\r\n");
}

#[test]
fn bidirectional_marks_are_escaped() {
    let marks = ['\u{61c}', '\u{200e}', '\u{200f}'].into_iter();
    for mark in marks.chain('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}') {
        let code = u32::from(mark);
        assert_eq!(line(&format!("a{mark}b")), format!("a\\u{{{code:x}}}b"));
    }
}

#[test]
fn json_keeps_its_value() {
    let text = "{\n  \"a\": \"\u{9b}31m\u{202e}\u{e0041}\u{7f}ö\"\n}";
    assert_eq!(json(text), "{\n  \"a\": \"\\u009b31m\\u202e\\udb40\\udc41\\u007fö\"\n}");
}
