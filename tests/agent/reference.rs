//! Generates docs/agent.md from the definition of the command line and compares it with the file.

use app_health_agent::args::Args;
use clap::CommandFactory;
use kit::{command_page, golden};

/// Introduction of docs/agent.md.
const HEAD: &str = "# The agent's command line

Which flags does the agent have? `./justw bless` generates this page from the definition of the
command line; `--help` shows the same text. A flag overrides its environment variable, which
overrides Istio's name for the setting, if there is one. An empty variable counts as absent. The
endpoints and the exit codes are in [configuration.md](configuration.md#the-agent).
";

#[test]
fn the_page_matches_the_command_line() {
    let page = command_page::page(HEAD, &Args::command());
    golden::assert_generated("docs/agent.md", &page);
    command_page::assert_complete(&page, Args::command());
}
