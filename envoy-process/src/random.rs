//! The random number generator.

use std::hash::{BuildHasher, RandomState};

/// Creates a generator that the operating system's random numbers seed. By default, fastrand seeds
/// from a clock, which can be the same on machines that are started from one image.
pub fn generator() -> fastrand::Rng {
    fastrand::Rng::with_seed(RandomState::new().hash_one(()))
}
