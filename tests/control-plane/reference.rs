//! Generates docs/control-plane.md from the definition of the command line and compares it with the file.

use app_health::args::Args;
use clap::CommandFactory;
use kit::{command_page, golden};

/// Introduction of docs/control-plane.md.
const HEAD: &str = "# The control plane's command line

Which flags does `app-health` have? `./justw bless` generates this page from the definition of the
command line; `--help` shows the same text. A flag overrides its environment variable. What the commands
do is in [injection.md](injection.md), [lint.md](lint.md), [explain.md](explain.md) and
[discovery.md](discovery.md).
";

#[test]
fn the_page_matches_the_command_line() {
    let page = command_page::page(HEAD, &Args::command());
    golden::assert_generated("docs/control-plane.md", &page);
    command_page::assert_complete(&page, Args::command());
}
