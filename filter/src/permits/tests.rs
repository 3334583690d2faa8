use std::rc::Rc;

use super::{Permit, Permits};

#[test]
fn a_dropped_permit_is_free_again() {
    let permits = Rc::new(Permits::default());
    let take = || -> Vec<Permit> { (0..20).map_while(|_| permits.take(|| b"a".to_vec())).collect() };
    let taken = take();
    assert_eq!((taken.len(), take().len()), (10, 0));
    drop(taken);
    assert_eq!(take().len(), 10);
}
