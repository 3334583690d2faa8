//! DNS answers from the name table of istiod: the messages of DNS, the table, and what a query gets. Pure: no
//! socket is used here.
//!
//! The rules are those of Istio's `pkg/dns/client` (1.31).

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod answer;
pub mod message;
pub mod resolv_conf;
pub mod table;
