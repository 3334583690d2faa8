//! Tests of the images and the Compose files in real containers, and of the application that they probe.

mod application;
mod compose;
mod control_plane;
mod image;
mod life;
