use proptest::prelude::*;

use super::printable;

proptest! {
    #[test]
    fn printable_is_short_printable_and_stays_so(text in any::<String>()) {
        let out = printable(&text);
        prop_assert!(out.len() <= 256 && out.bytes().all(|byte| (0x20..=0x7e).contains(&byte)));
        prop_assert_eq!(printable(&out), out);
    }
}
