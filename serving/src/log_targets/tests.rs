use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing::subscriber::with_default;
use tracing_subscriber::fmt::format;

use super::*;

const NAMES: &[(&str, &str)] = &[("serving", "program::part"), ("other", "program")];

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[test]
fn lines_name_the_module_of_the_program() {
    let lines = Lines::default();
    let writer = lines.clone();
    let text = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .event_format(LogTargets { format: format(), names: NAMES });
    with_default(text.finish(), || {
        tracing::info!(field = "x", "seen");
        tracing::info!(target: "other::a", "other::a: seen");
        tracing::info!(target: "third::a", "seen");
    });
    let text = lines.text();
    for line in [
        " INFO program::part::log_targets::tests: seen field=\"x\"",
        " INFO program::a: other::a: seen",
        " INFO third::a: seen",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn json_lines_name_it_too() {
    let lines = Lines::default();
    let writer = lines.clone();
    let json = tracing_subscriber::fmt()
        .json()
        .with_writer(move || writer.clone())
        .map_event_format(|format| LogTargets { format, names: NAMES });
    with_default(json.finish(), || tracing::info!(target: "other::a", "seen"));
    let text = lines.text();
    assert!(text.contains("\"target\":\"program::a\""), "{text}");
}
