use std::fs;
use std::path::Path;

/// Pseudo-random numbers (xorshift) with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).expect("64 bits")).expect("below a usize")
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("a seed")).collect();
    assert!(!corpus.is_empty());
    corpus
}

/// Applies a few random changes: other bytes, truncation, deletion, or parts of another seed.
fn mutate(seed: &mut Vec<u8>, other: &[u8], numbers: &mut Numbers) {
    const WORDS: [&[u8]; 14] = [
        b"null",
        b"{}",
        b"[]",
        b"\"\"",
        b"-1",
        b"70000",
        b"1e400",
        b"\n---\n",
        b"&a ",
        b"*a",
        b"<<: ",
        b"\\u0024",
        b"\xff",
        b"\"auto\"",
    ];
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(seed.len() + 1);
        match numbers.below(6) {
            0 if at < seed.len() => seed[at] = u8::try_from(numbers.below(256)).expect("a byte"),
            1 => seed.truncate(at),
            2 => {
                let end = (at + numbers.below(16)).min(seed.len());
                seed.drain(at..end);
            }
            3 => {
                let (from, length) = (numbers.below(other.len() + 1), numbers.below(64));
                let piece = other[from..].iter().take(length).copied().collect::<Vec<_>>();
                seed.splice(at..at, piece);
            }
            _ => {
                let word = WORDS[numbers.below(WORDS.len())];
                seed.splice(at..at, word.iter().copied());
            }
        }
    }
}

/// Runs the target on its corpus and on this many mutations of it.
fn try_all(name: &str, target: fn(&[u8]), mutations: usize) {
    let corpus = corpus(name);
    corpus.iter().for_each(|seed| target(seed));
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..mutations {
        let mut bytes = corpus[numbers.below(corpus.len())].clone();
        let other = &corpus[numbers.below(corpus.len())];
        mutate(&mut bytes, other, &mut numbers);
        target(&bytes);
    }
}

#[test]
fn admission_review() {
    try_all("admission_review", super::admission_review, 80_000);
}

#[test]
fn callouts() {
    try_all("callouts", super::callouts, 100_000);
}

#[test]
fn documents() {
    try_all("documents", super::documents, 20_000);
}

#[test]
fn discovery_request() {
    try_all("discovery_request", super::discovery_request, 40_000);
}

#[test]
fn expositions() {
    try_all("expositions", super::expositions, 40_000);
}

#[test]
fn lint() {
    try_all("lint", super::lint, 2_000);
}

#[test]
fn prober_table() {
    try_all("prober_table", super::prober_table, 80_000);
}

#[test]
fn responses() {
    try_all("responses", super::responses, 200_000);
}

#[test]
fn workload_group() {
    try_all("workload_group", super::workload_group, 20_000);
}

#[test]
fn control_plane() {
    try_all("control_plane", super::control_plane, 20_000);
}

#[test]
fn xds_cache() {
    try_all("xds_cache", super::xds_cache, 40_000);
}

#[test]
fn probe_answers() {
    try_all("probe_answers", super::probe_answers, 500);
}

#[test]
fn explanations() {
    try_all("explanations", super::explanations, 2_000);
}

#[test]
fn pod_configuration() {
    try_all("pod_configuration", super::pod_configuration, 10_000);
}

#[test]
fn ca_answer() {
    try_all("ca_answer", super::ca_answer, 20_000);
}

#[test]
fn dns_query() {
    try_all("dns_query", super::dns_query, 100_000);
}

#[test]
fn name_table() {
    try_all("name_table", super::name_table, 40_000);
}
