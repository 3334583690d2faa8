//! The status pages in headless Chromium, which a WebDriver server controls. `./justw --browser`
//! installs both, and axe-core, into `.tools/browser`.

pub mod accessibility;
pub mod agent_page;
pub mod browser;
pub mod driver_server;
pub mod mesh;
pub mod network_log;
pub mod pictures;
