//! Keys as they are pressed, where there is a terminal; and the screen that belongs to it.

use std::io::{IsTerminal as _, Read as _};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use kit::terminal::say;

/// What is typed; the terminal is as it was once this is dropped.
pub struct Keys {
    typed: UnboundedReceiver<char>,
    before: Option<Termios>,
    is_screen: bool,
}

impl Keys {
    /// Reads keys one by one from now on, without showing them; from anything but a terminal, each character of each line.
    pub fn listen() -> Self {
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            // Ctrl-C stays what it is.
            raw.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
            // A terminal that cannot do it still has lines.
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &raw);
        }
        let (sender, typed) = mpsc::unbounded_channel();
        // A thread of its own: it may wait for a key when the demo ends, and nothing has to wait for it.
        std::thread::spawn(move || {
            for byte in std::io::stdin().lock().bytes().map_while(Result::ok) {
                if sender.send(char::from(byte)).is_err() {
                    return;
                }
            }
        });
        let is_screen = std::io::stdout().is_terminal();
        if is_screen {
            say("\x1b[?25l\x1b[2J");
        }
        Self { typed, before, is_screen }
    }

    /// The next key; never, where no more can come.
    pub async fn next(&mut self) -> char {
        match self.typed.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    /// What has to be written so that `text` is all that can be seen.
    pub fn screen(&self, text: &str) -> String {
        match self.is_screen {
            // Over what is there, line by line, so that nothing flickers.
            true => format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n")),
            false => text.to_owned(),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, before);
        }
        if self.is_screen {
            say("\x1b[?25h");
        }
    }
}
