//! TODO

mod load;
