use super::*;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Limits of two open and of one token per second after a burst of three.
fn limits() -> SourceLimits<&'static str> {
    SourceLimits::new(2, RateLimiter::new(seconds(1), 3))
}

#[test]
fn each_source_may_have_some_open() {
    let mut limits = limits();
    assert_eq!((limits.open(&"a", seconds(0)), limits.open(&"a", seconds(0))), (Ok(()), Ok(())));
    assert_eq!(limits.open(&"a", seconds(9)), Err(Exceeded::Open));
    assert_eq!(limits.open(&"b", seconds(9)), Ok(()));
    limits.close(&"a");
    limits.close(&"unknown");
    assert_eq!(limits.open(&"a", seconds(9)), Ok(()));
    assert_eq!(limits.open(&"a", seconds(9)), Err(Exceeded::Open));
}

#[test]
fn each_source_has_its_tokens_and_opening_takes_none() {
    let mut limits = limits();
    for _ in 0..100 {
        assert_eq!(limits.open(&"a", seconds(0)), Ok(()));
        limits.close(&"a");
    }
    for _ in 0..3 {
        assert_eq!(limits.take(&"a", seconds(0)), Ok(()));
    }
    assert_eq!(limits.take(&"a", seconds(0)), Err(Exceeded::Rate));
    assert_eq!(limits.open(&"a", seconds(0)), Err(Exceeded::Rate));
    assert_eq!((limits.open(&"b", seconds(0)), limits.take(&"b", seconds(0))), (Ok(()), Ok(())));
    assert_eq!((limits.open(&"a", seconds(1)), limits.take(&"a", seconds(1))), (Ok(()), Ok(())));
}

#[test]
fn sources_that_are_open_or_lack_tokens_are_remembered() {
    let mut limits = SourceLimits::new(1, RateLimiter::new(seconds(1), 3));
    assert_eq!((limits.open(&0, seconds(0)), limits.take(&1, seconds(0))), (Ok(()), Ok(())));
    for source in 2..5000 {
        assert_eq!((limits.open(&source, seconds(0)), limits.close(&source)), (Ok(()), ()));
    }
    assert_eq!(limits.open(&0, seconds(0)), Err(Exceeded::Open));
    assert_eq!((limits.take(&1, seconds(0)), limits.take(&1, seconds(0))), (Ok(()), Ok(())));
    assert_eq!(limits.take(&1, seconds(0)), Err(Exceeded::Rate));
}

/// Each address of an attacker has a state until it has its tokens again.
#[test]
fn the_memory_for_many_sources_is_bounded() {
    let mut limits = limits();
    for source in 0..20_000_u32 {
        let name: &'static str = Box::leak(source.to_string().into_boxed_str());
        assert_eq!(limits.take(&name, Duration::from_millis(source.into())), Ok(()));
        assert_eq!(limits.open(&name, Duration::from_millis(source.into())), Ok(()));
        limits.close(&name);
    }
    let states = format!("{limits:?}").matches("SourceState").count();
    assert!(states <= 2048, "{states} states");
}
