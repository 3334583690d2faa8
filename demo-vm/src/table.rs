//! The demo's screen: a line for each machine with its keys, and the events.

use std::io::IsTerminal as _;
use std::time::Duration;

use comfy_table::Table;

use super::demo::{Demo, GRACE, MACHINES};
use kit::app::switched::Behavior;
use kit::vm::documents::HOST;
use kit::vm::machine::Machine;

/// The current state of a machine.
pub struct Row {
    pub number: usize,
    pub name: String,
    /// The address of its application.
    pub address: String,
    pub behavior: Behavior,
    /// Whether its agent runs.
    pub has_agent: bool,
    pub health: String,
    /// The time since `health` last changed.
    pub since: Duration,
    /// Whether Envoy has it as an endpoint.
    pub is_endpoint: bool,
    /// Its share of the successful requests of the last second, in percent.
    pub share: u64,
}

/// Formats the table; on a terminal, the lines of machines that are not endpoints are red.
pub fn render(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header([
        "MACHINE",
        "ADDRESS",
        "APPLICATION",
        "AGENT",
        "HEALTH",
        "SINCE",
        "IN ENVOY",
        "REQUESTS",
        "KEYS",
    ]);
    for row in rows {
        let bar = "█".repeat(usize::try_from(row.share / 10).unwrap_or_default());
        table.add_row([
            row.name.clone(),
            row.address.clone(),
            word(row.behavior).into(),
            if row.has_agent { "runs" } else { "killed" }.into(),
            row.health.clone(),
            format!("{} s", row.since.as_secs()),
            if row.is_endpoint { "yes" } else { "no" }.into(),
            format!("{:3} % {bar:<10}", row.share),
            keys(row),
        ]);
    }
    let colours = std::io::stdout().is_terminal();
    let text = table.to_string();
    let lines = text.lines().enumerate().map(|(index, line)| {
        match index.checked_sub(1).and_then(|index| rows.get(index)) {
            Some(row) if colours && !row.is_endpoint => format!("\x1b[31m{line}\x1b[0m\n"),
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

fn keys(row: &Row) -> String {
    let (fail, hang, kill) = (row.number, row.number + MACHINES, row.number + 2 * MACHINES);
    let fail_word = if row.behavior == Behavior::Failing { "heal" } else { "fail" };
    let hang_word = if row.behavior == Behavior::Hanging { "heal" } else { "hang" };
    let kill_word = if row.has_agent { "kill" } else { "start" };
    format!("{fail} {fail_word} {hang} {hang_word} {kill} {kill_word}")
}

/// Formats the text below the table.
pub fn footer(demo: &Demo, events: &[&str]) -> String {
    let events =
        if events.is_empty() { "        no events yet: press a key".to_owned() } else { events.join("\n") };
    let agents = demo.machines.iter().map(Machine::admin_address);
    let pages = [demo.discovery.monitoring()].into_iter().chain(agents);
    let pages: Vec<String> = pages.map(|address| format!("http://{address}/")).collect();
    let pages = pages.join(" ");
    format!(
        "\nevents\n{events}\n\n\
         Each agent probes its application every second; after two consecutive failures Envoy sends it no more requests.\n\
         An agent that was killed has {} s to reconnect.\n\n\
         keys: 1 2 3 make the application fail, 4 5 6 make it hang, 7 8 9 kill its agent; the same key reverts it; q quits\n\
         send a request yourself:   curl -i --header 'Host: {HOST}' http://{}/\n\
         pages in a browser:        {pages}\n\
         as an operator would:      target/debug/app-health workloads --url http://{} --watch\n\
         logs:                      {}\n",
        GRACE.as_secs(),
        demo.client.listener,
        demo.discovery.monitoring(),
        demo.folder.display(),
    )
}

fn word(behavior: Behavior) -> &'static str {
    match behavior {
        Behavior::Serving => "serves",
        Behavior::Failing => "answers 503",
        Behavior::Hanging => "hangs",
    }
}

#[cfg(test)]
mod tests;
