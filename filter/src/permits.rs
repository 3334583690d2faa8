//! The permits for probes in flight of one prober on one worker.

use std::cell::RefCell;
use std::rc::Rc;

use probe::permits;

#[derive(Debug, Default)]
pub struct Permits(RefCell<permits::Permits>);

/// A permit for a probe in flight. Dropping it frees it.
#[derive(Debug)]
pub struct Permit {
    permits: Rc<Permits>,
    permit: permits::Permit,
}

impl Permits {
    /// Takes a permit; see [`permits::Permits::take`].
    pub fn take(self: &Rc<Self>, client: impl FnOnce() -> Vec<u8>) -> Option<Permit> {
        let permit = self.0.try_borrow_mut().ok()?.take(client)?;
        Some(Permit { permits: Rc::clone(self), permit })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Ok(mut permits) = self.permits.0.try_borrow_mut() {
            permits.give_back(&self.permit);
        }
    }
}

#[cfg(test)]
mod tests;
