//! Tests of the workspace itself.

mod module_cycles;
mod workspace;
