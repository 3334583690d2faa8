//! What the agent writes: log lines to stderr, which block no task, the error that ends it, and files.

pub mod exit;
pub mod json_line;
pub mod log;
pub mod output;
pub mod stderr;
