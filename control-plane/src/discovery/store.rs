//! Where entries live.

pub mod kubernetes;
