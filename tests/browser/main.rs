//! Tests of the status pages in a real browser.

mod agent;
mod discovery;
mod foreign_pages;
mod large_mesh;
mod support;
