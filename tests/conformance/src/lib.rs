//! Conformance tests: kubelet's own prober probes an application directly and through Envoy with
//! the filter. Both verdicts must be equal, and an application that is probed over HTTP must
//! receive the same requests.
//!
//! A [`case::Case`] is data: a prober, and what the application sends, byte by byte. [`suite`] runs
//! the written cases of `tests/conformance/cases/`, and [`fuzz`] generates cases. Both run them with
//! [`batch`] and compare them with [`compare`].

pub mod allowed_differences;
pub mod answering;
pub mod application;
pub mod batch;
pub mod bytes;
pub mod case;
pub mod command;
pub mod compare;
pub mod expand;
pub mod frames;
pub mod fuzz;
pub mod http2;
pub mod kind;
pub mod page;
pub mod random;
pub mod script;
pub mod seen;
pub mod strict_http1;
pub mod strict_http2;
pub mod suite;
pub mod verdicts;
