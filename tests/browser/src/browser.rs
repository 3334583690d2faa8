//! A browser with one page, and what tests ask of it.

use kit::{envoy, wait};
use serde_json::{Value, json};
use thirtyfour::{
    CapabilitiesHelper as _, ChromiumLikeCapabilities as _, DesiredCapabilities, Key, TypingData, WebDriver,
};

use crate::driver_server::{DriverServer, installed};
use crate::network_log::{self, NetworkEvent};

/// Flags of the browser. Tests run as root and in containers, where Chromium has no sandbox and little
/// shared memory.
const FLAGS: [&str; 6] = [
    "--headless",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-proxy-server",
    "--enable-precise-memory-info",
];

/// Size and colors of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Width in CSS pixels.
    pub width: u32,
    /// Height in CSS pixels.
    pub height: u32,
    pub colors: Colors,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    Light,
    Dark,
}

/// A running browser; it ends on drop.
pub struct Browser {
    /// The session, for what this type does not offer.
    pub driver: WebDriver,
    _server: DriverServer,
}

impl Browser {
    /// Starts a browser without any history; `name` is that of the test.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(name: &str) -> Self {
        Self::start_with(name, &[]).await
    }

    /// Like [`Browser::start`], with more flags.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_with(name: &str, flags: &[&str]) -> Self {
        let server = DriverServer::start(&envoy::folder(name)).await;
        let mut capabilities = DesiredCapabilities::chrome();
        let binary = installed("chromium");
        capabilities.set_binary(binary.to_str().expect("a path")).expect("a capability");
        for flag in FLAGS.iter().chain(flags) {
            capabilities.add_arg(flag).expect("a capability");
        }
        let logs = json!({"browser": "ALL", "performance": "ALL"});
        capabilities.set("goog:loggingPrefs", logs).expect("a capability");
        // Proxies of the environment are not for loopback addresses. A session ends on drop, on another
        // runtime, which cannot use a connection of this one.
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build();
        let client = client.expect("a client without TLS");
        let driver = WebDriver::builder(&server.url, capabilities).client(client).await;
        Self { driver: driver.expect("Chromium starts"), _server: server }
    }

    /// Loads the page and waits for its `load` event.
    ///
    /// # Panics
    /// If it cannot be loaded.
    pub async fn open(&self, url: &str) {
        self.driver.goto(url).await.expect("the page loads");
    }

    /// Makes pages that are loaded from now on run no script, as a browser without JavaScript.
    ///
    /// # Panics
    /// If the browser has exited, as all functions below.
    pub async fn disable_scripts(&self) {
        self.command("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    }

    /// Enables scripts again for the tools of a test, and keeps the document, whose own scripts have not
    /// run: it is not loaded again by itself.
    pub async fn keep_plain_document(&self) {
        self.command("Emulation.setScriptExecutionDisabled", json!({"value": false})).await;
        self.run("window.stop()").await;
    }

    pub async fn set_screen(&self, screen: Screen) {
        let Screen { width, height, colors } = screen;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", metrics).await;
        let value = match colors {
            Colors::Light => "light",
            Colors::Dark => "dark",
        };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.command("Emulation.setEmulatedMedia", features).await;
    }

    /// Returns the value of a JavaScript expression.
    pub async fn value(&self, expression: &str) -> Value {
        self.run(&format!("return {expression};")).await
    }

    /// Runs the body of a function and returns its result.
    pub async fn run(&self, script: &str) -> Value {
        let result = self.driver.execute(script, Vec::<Value>::new()).await;
        result.unwrap_or_else(|error| panic!("{script}: {error}")).json().clone()
    }

    /// Like [`Browser::run`], for a function that calls its argument `done` with the result.
    pub async fn run_async(&self, script: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1];\n{script}");
        self.driver.execute_async(script, Vec::<Value>::new()).await.expect("the script ends").json().clone()
    }

    /// Returns the text of the page as a user sees it.
    pub async fn text(&self) -> String {
        self.value("document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a JavaScript expression is true.
    ///
    /// # Panics
    /// If that does not happen in time; the message contains the text of the page.
    pub async fn until(&self, what: &str, expression: &str) {
        let script = format!("return {expression};");
        let is_true = async || {
            // A script fails while the page is loaded again.
            let result = self.driver.execute(script.as_str(), Vec::<Value>::new()).await.ok()?;
            (*result.json() == json!(true)).then_some(())
        };
        if wait::try_poll(is_true).await.is_none() {
            let value = self.value(expression).await;
            panic!("not {what}: {expression} is {value}; the page:\n{}", self.text().await);
        }
    }

    /// Presses keys one after another, on the element that has the focus.
    pub async fn press(&self, keys: impl Into<TypingData>) {
        self.driver.action_chain().send_keys(keys).perform().await.expect("keys can be pressed");
    }

    /// Presses Tab until the element that has the focus matches a selector.
    ///
    /// # Panics
    /// If it does not after a hundred times.
    pub async fn tab_to(&self, selector: &str) {
        let is_there = format!("document.activeElement.matches({})", json!(selector));
        for _ in 0..100 {
            self.press(Key::Tab).await;
            if self.value(&is_there).await == json!(true) {
                return;
            }
        }
        panic!("{selector} is not reachable with the key Tab");
    }

    /// Returns the messages of the console since the last call: errors of the page's scripts, of its
    /// Content-Security-Policy and of its requests, and what the page itself writes.
    pub async fn console(&self) -> Vec<String> {
        let entries = self.driver.browser_log().await.expect("a log");
        entries.into_iter().map(|entry| format!("{}: {}", entry.level, entry.message)).collect()
    }

    /// Returns what happened on the network since the last call.
    pub async fn network(&self) -> Vec<NetworkEvent> {
        let entries = self.driver.get_log("performance").await.expect("a log");
        entries.iter().filter_map(|entry| network_log::parse(&entry.message)).collect()
    }

    /// Returns a picture of the visible part of the page, as PNG.
    pub async fn picture(&self) -> Vec<u8> {
        self.driver.screenshot_as_png().await.expect("a picture")
    }

    /// Sends a command of the Chrome DevTools Protocol.
    pub async fn command(&self, method: &str, parameters: Value) -> Value {
        let result = self.driver.cdp().send_raw(method, parameters).await;
        result.unwrap_or_else(|error| panic!("{method}: {error}"))
    }
}
