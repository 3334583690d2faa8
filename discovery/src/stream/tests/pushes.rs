//! Tests that a stream which compares only what changed sends the same as one that compares
//! everything.

use proptest::prelude::*;

use super::*;

const HOSTS: [&str; 4] = ["a", "b", "c", "d@81"];

/// A step of a random run.
#[derive(Clone, Debug)]
enum Step {
    /// Hosts, each with its number of endpoints, or without a service.
    Publish(Vec<Option<u8>>, bool),
    /// Type, names, and names to unsubscribe in the incremental variant.
    Request(&'static str, Vec<&'static str>, Vec<&'static str>),
    /// Acknowledges or rejects the last response of the type.
    Acknowledge(&'static str, bool),
    /// Time in milliseconds.
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let names = || prop::sample::subsequence(HOSTS.to_vec(), 0..=HOSTS.len());
    let kind = || prop::sample::select(vec!["CDS", "EDS", "LDS", "RDS"]);
    let published = prop::collection::vec(prop::option::weighted(0.8, 0..3_u8), HOSTS.len());
    let step = prop_oneof![
        3 => (published, prop::bool::weighted(0.2)).prop_map(|(hosts, grace)| Step::Publish(hosts, grace)),
        2 => (kind(), names(), names()).prop_map(|(kind, names, removed)| Step::Request(kind, names, removed)),
        1 => kind().prop_map(|kind| Step::Request(kind, vec!["*"], Vec::new())),
        4 => (kind(), prop::bool::weighted(0.9)).prop_map(|(kind, accepts)| Step::Acknowledge(kind, accepts)),
        2 => (0..200_u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..40)
}

/// Returns the names of the type for these hosts.
fn names_of(kind: &str, hosts: &[&'static str]) -> Vec<&'static str> {
    let name = |host: &&'static str| match (kind, *host) {
        ("LDS", "d@81") => "lds81",
        ("LDS", "a" | "b" | "c") => "lds80",
        ("RDS", "d@81") => "rds81",
        ("RDS", "a" | "b" | "c") => "rds80",
        (_, other) => other,
    };
    hosts.iter().map(name).collect()
}

/// A stream with its peer, which requests the same names in SotW acknowledgements.
struct Run {
    stream: AdsStream,
    variant: Variant,
    served: Snapshot,
    now: Duration,
    /// Nonces and names by type.
    peer: BTreeMap<&'static str, (String, Vec<&'static str>)>,
}

impl Run {
    fn new(variant: Variant) -> Self {
        let (stream, served) = (AdsStream::new(variant, None), snapshot("", false, None));
        Self { stream, variant, served, now: Duration::ZERO, peer: BTreeMap::new() }
    }

    fn step(&mut self, step: &Step, follows: bool) -> String {
        let input = match step {
            Step::Publish(hosts, grace) => {
                let hosts = HOSTS.iter().zip(hosts).filter_map(|(host, number)| Some((host, (*number)?)));
                let text: String = hosts.map(|(host, number)| format!(" {host}:{number}")).collect();
                let text = format!("{OUTBOUND}{text}");
                self.served = snapshot(&text, *grace, Some(&self.served).filter(|_| follows));
                Input::Poll
            }
            Step::Request(kind, names, removed) => {
                let (names, removed) = (names_of(kind, names), names_of(kind, removed));
                let removed: String = removed.iter().map(|name| format!(" -{name}")).collect();
                let text = format!("{kind} {} {}", names.join(","), removed);
                self.peer.entry(kind).or_default().1 = names;
                Input::Request(Box::new(request(&text, self.variant)))
            }
            Step::Acknowledge(kind, accepts) => {
                let (nonce, names) = self.peer.entry(kind).or_default();
                let names = if self.variant == Variant::Sotw { names.join(",") } else { String::new() };
                let nack = if *accepts { "" } else { "nack=no" };
                let text = format!("{kind} {names} nonce={nonce} {nack}");
                Input::Request(Box::new(request(&text, self.variant)))
            }
            Step::Wait(time) => {
                self.now += Duration::from_millis(*time);
                Input::Poll
            }
        };
        let effects = self.stream.step(self.now, input, &self.served);
        for effect in &effects {
            if let Effect::Send(response) = effect {
                self.peer.entry(response.type_url.short_name()).or_default().0.clone_from(&response.nonce);
            }
        }
        effects.iter().filter_map(shown).collect::<Vec<_>>().join("; ")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pushes_are_complete(steps in steps(), delta in any::<bool>()) {
        let variant = if delta { Variant::Delta } else { Variant::Sotw };
        let (mut compares_all, mut compares_changes) = (Run::new(variant), Run::new(variant));
        for step in &steps {
            prop_assert_eq!(compares_changes.step(step, true), compares_all.step(step, false), "{:?}", step);
        }
    }
}
