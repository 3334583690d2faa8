use super::*;

#[test]
fn codes() {
    type Variant = fn(String) -> Failure;
    let codes: [(Variant, u8); 11] = [
        (Failure::General, 1),
        (Failure::Usage, 64),
        (Failure::Data, 65),
        (Failure::CannotRead, 66),
        (Failure::Unavailable, 69),
        (Failure::Software, 70),
        (Failure::Os, 71),
        (Failure::CannotWrite, 73),
        (Failure::Settings, 78),
        (Failure::NotExecutable, 126),
        (Failure::NotFound, 127),
    ];
    for (failure, code) in codes {
        let failure = failure(String::new());
        assert_eq!(failure.code(), code, "{failure:?}");
    }
    assert_eq!(Failure::Signal("SIGINT", 2).code(), 130);
    assert_eq!(Failure::Interrupted("not ready".to_owned(), 15).code(), 143);
}
