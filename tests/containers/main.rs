//! TODO

mod application;
mod compose;
mod control_plane;
mod image;
mod life;
