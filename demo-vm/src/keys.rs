//! Reads single key presses from a terminal, and redraws its screen.

use std::io::{IsTerminal as _, Read as _};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use kit::terminal::say;

/// Receives the characters that the user types; the terminal settings are restored on drop.
pub struct Keys {
    typed: UnboundedReceiver<char>,
    before: Option<Termios>,
    is_screen: bool,
}

impl Keys {
    /// Starts to read keys one by one, without echo. If standard input is not a terminal, the
    /// characters of each line are read instead.
    pub fn listen() -> Self {
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            // `ISIG` stays set, so that Ctrl-C sends SIGINT.
            raw.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
            // If the settings cannot be changed, input is still read line by line.
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &raw);
        }
        let (sender, typed) = mpsc::unbounded_channel();
        // A separate thread, because a blocking read cannot be cancelled and must not delay the
        // exit.
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

    /// Returns the next key; the future never completes after the end of the input.
    pub async fn next(&mut self) -> char {
        match self.typed.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    /// Returns the text with the escape sequences that make it replace the screen.
    pub fn screen(&self, text: &str) -> String {
        match self.is_screen {
            // Overwriting line by line avoids flicker.
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
