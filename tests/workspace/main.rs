//! TODO

mod workspace;
