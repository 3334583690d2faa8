use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use injector::ProbeSummary;
use injector::warning::{Code, Warning};

use super::*;

fn source(last: u8) -> Option<Source> {
    Some(IpAddr::from([192, 0, 2, last]).into())
}

#[tokio::test(start_paused = true)]
async fn one_source_writes_few_lines() {
    let log = ReviewLog::default();
    let taken = |source| (0..10_000).filter(|_| log.is_within_limit(source, LINE)).count() * LINE;
    let most = (32 << 10) / LINE * LINE;
    assert_eq!(taken(source(1)), most);
    assert_eq!(taken(source(2)), most, "another source has its own limit");
    assert_eq!(taken(None), 10_000 * LINE, "the API server has none");
    tokio::time::advance(MINUTE).await;
    assert_eq!(taken(source(1)), most);
}

#[test]
fn names_are_as_long_as_kubernetes_permits() {
    assert_eq!(quoted("shop"), "\"shop\"");
    assert_eq!(quoted(&"x".repeat(1 << 20)).len(), NAME + 2);
    assert_eq!(quoted("a\n\u{1b}[2J"), r#""a\n\u{1b}[2J""#);
}

/// The lines of a log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Returns what `log` writes.
    fn of(log: impl FnOnce()) -> Vec<String> {
        let lines = Self::default();
        let writer = lines.clone();
        let text = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        tracing::subscriber::with_default(text.finish(), log);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

fn reviewed(outcome: PodOutcome, warnings: usize) -> Reviewed {
    let probe = |result| ProbeSummary {
        container: "app".to_owned(),
        word: "livez".to_owned(),
        handler: "httpGet",
        result,
        code: None,
    };
    let warning =
        Warning { code: Code::Annotation, place: None, field: "metadata".to_owned(), text: "x".to_owned() };
    Reviewed {
        body: Vec::new(),
        outcome,
        namespace: "shop".to_owned(),
        name: "cart".to_owned(),
        probes: vec![
            probe(ProbeResult::Rewritten),
            probe(ProbeResult::Rewritten),
            probe(ProbeResult::NotRewritten),
        ],
        warnings: vec![warning; warnings],
    }
}

#[tokio::test(start_paused = true)]
async fn lines_are_about_pods_that_changed_or_have_warnings() {
    let log = ReviewLog::default();
    for (outcome, warnings, expected) in [
        (PodOutcome::Injected, 0, Some("result=\"injected\" rewritten=2 unchanged=1 warnings=\"\"")),
        (
            PodOutcome::Rewritten,
            2,
            Some("result=\"rewritten\" rewritten=2 unchanged=1 warnings=\"annotation\""),
        ),
        (
            PodOutcome::Unchanged,
            1,
            Some("result=\"unchanged\" rewritten=2 unchanged=1 warnings=\"annotation\""),
        ),
        (PodOutcome::Skipped, 1, Some("result=\"skipped\" rewritten=2 unchanged=1 warnings=\"annotation\"")),
        (PodOutcome::Unchanged, 0, None),
        (PodOutcome::Skipped, 0, None),
    ] {
        let lines = Lines::of(|| log.write(&reviewed(outcome, warnings), source(1)));
        assert_eq!(lines.len(), usize::from(expected.is_some()), "{outcome:?}: {lines:?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.contains("pod reviewed namespace=\"shop\" name=\"cart\""), "{line}");
            assert!(line.contains(expected), "{line}");
        }
    }
}

/// The names and codes of a line count too.
#[tokio::test(start_paused = true)]
async fn suppressed_lines_are_counted_in_the_next_line() {
    let log = ReviewLog::default();
    let reviewed = reviewed(PodOutcome::Injected, 1);
    let written = |source| Lines::of(|| (0..200).for_each(|_| log.write(&reviewed, source)));
    let length = LINE + "\"shop\"".len() + "\"cart\"".len() + "annotation".len();
    let most = (32 << 10) / length;
    assert_eq!(written(source(1)).len(), most);
    let lines = written(source(2));
    assert_eq!(lines.len(), most + 1);
    assert!(lines[0].contains(&format!("suppressed={}", 200 - most)), "{}", lines[0]);
    let lines = written(None);
    assert_eq!(lines.len(), 201, "without a source there is no limit");
    assert!(lines[0].contains("lines about reviews suppressed"), "{}", lines[0]);
}
