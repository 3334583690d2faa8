//! Tests of the shipped images, compose files and systemd units in real containers, and of the application that runs
//! in the Pods of the tests.

mod application;
mod compose;
mod control_plane;
mod image;
mod life;
mod machine;
mod packages;
mod released_images;
mod units;
