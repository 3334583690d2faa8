//! Scrapes the metrics of Envoy and of the application, and merges them with those of the agent.

mod config;
mod scrape;

pub use config::{MetricsConfig, Target};
pub use scrape::*;
