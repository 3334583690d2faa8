use super::*;

fn samples(memory: [u64; 9], descriptors: u64) -> Vec<Usage> {
    memory.into_iter().map(|mib| Usage { memory: mib << 20, descriptors }).collect()
}

#[test]
fn a_peak_in_a_third_is_not_growth() {
    let trend = Trend::of(&samples([40, 90, 40, 40, 40, 40, 40, 41, 300], 10)).expect("nine samples");
    assert_eq!((trend.first.memory, trend.last.memory), (40 << 20, 41 << 20));
    assert!(trend.is_flat());
}

#[test]
fn growth_is_found() {
    let trend = Trend::of(&samples([40, 43, 46, 49, 52, 55, 58, 61, 64], 10)).expect("nine samples");
    assert!(!trend.is_flat());
    let mut more = samples([40; 9], 10);
    for usage in &mut more[6..] {
        usage.descriptors = 60;
    }
    assert!(!Trend::of(&more).expect("nine samples").is_flat());
    assert_eq!(Trend::of(&more[..2]), None);
}

#[test]
fn a_process_uses_something() {
    let own = Usage::of(std::process::id()).expect("this process runs");
    assert!(own.memory > 0 && own.descriptors > 2);
    assert_eq!(Usage::of(u32::MAX), None);
}
