//! Short runs of the stress tests.

mod load;
