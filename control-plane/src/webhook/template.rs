//! Watches the template's file, and replaces the settings when its content changes.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::time::sleep;
use tracing::{info, warn};

use super::POLL;
use super::metrics::Metrics;
use crate::config::TemplateFile;
use injector::settings::Settings;

/// Runs forever. An invalid template changes nothing.
pub(super) async fn watch(file: TemplateFile, settings: Arc<ArcSwap<Settings>>, metrics: Arc<Metrics>) {
    let mut last = Ok(file.text.clone());
    loop {
        sleep(POLL).await;
        let now = std::fs::read_to_string(&file.path).map_err(|error| error.to_string());
        if now == last {
            continue;
        }
        let made = now.clone().and_then(|text| file.settings(&text).map_err(|error| error.to_string()));
        metrics.reloaded("template", made.is_ok());
        match made {
            Ok(made) => {
                settings.store(Arc::new(made));
                info!("template reloaded");
            }
            Err(error) => warn!(error, "template rejected, keeping the previous one"),
        }
        last = now;
    }
}
