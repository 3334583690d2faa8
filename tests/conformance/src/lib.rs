//! The proof: kubelet's own prober asks an application directly, and through Envoy with the filter, and both must come
//! to the same verdict; an application that is asked over HTTP must see the same request.
//!
//! A [`case::Case`] is data: a prober, and what the application does, byte by byte. [`suite`] runs those that are
//! written down in `tests/conformance/`, [`fuzz`] makes them up. Both run them by [`batch`] and judge by [`judge`].

pub mod application;
pub mod batch;
pub mod bytes;
pub mod case;
pub mod command;
pub mod expand;
pub mod frames;
pub mod fuzz;
pub mod http2;
pub mod judge;
pub mod kind;
pub mod known;
pub mod page;
pub mod random;
pub mod script;
pub mod seen;
pub mod strict_http1;
pub mod strict_http2;
pub mod suite;
