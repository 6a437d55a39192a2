//! The tools of a pool: what its workers announce, merged by name.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use ahma_cluster::{Beat, FrontEnd};
use tokio::sync::watch;

use super::wire::{Announcement, UnavailableThere};
use crate::{
    catalog::{CatalogSettings, Expose},
    toolbox::{AnnouncedTools, Unavailable},
};

/// Time that the first list of tools waits for a worker.
const FIRST_WORKER: Duration = Duration::from_secs(2);

/// Time after which a worker that did not tell its tools is asked again.
const CATALOG_RETRY: Duration = Duration::from_secs(1);

/// Keeps `tools` as the living workers have them, for ever.
pub(super) async fn follow(
    front: &FrontEnd,
    mut workers: watch::Receiver<Arc<Vec<Beat>>>,
    expose: Expose,
    tools: watch::Sender<Option<Arc<AnnouncedTools>>>,
) {
    let mut known: HashMap<String, Announcement> = HashMap::new();
    let mut last = AnnouncedTools::default();
    // The catalogs that it is made of.
    let mut merged: Option<Vec<String>> = None;
    loop {
        let beats = Arc::clone(&workers.borrow_and_update());
        for beat in beats.iter() {
            if known.contains_key(&beat.catalog) {
                continue;
            }
            match front
                .catalog(&beat.worker)
                .await
                .map(|message| Announcement::decode(&message))
            {
                Ok(Ok(announcement)) => {
                    known.insert(beat.catalog.clone(), announcement);
                }
                Ok(Err(error)) => tracing::warn!(%error, worker = beat.worker, "its tools cannot be read"),
                Err(error) => tracing::debug!(%error, worker = beat.worker, "it does not tell its tools"),
            }
        }
        known.retain(|catalog, _| beats.iter().any(|beat| beat.catalog == *catalog));
        let living: BTreeMap<&String, &Announcement> = beats
            .iter()
            .filter_map(|beat| known.get_key_value(&beat.catalog))
            .collect();
        // Most beats tell of another load only.
        let catalogs: Vec<String> = living.keys().map(|&catalog| catalog.clone()).collect();
        if merged.as_ref() != Some(&catalogs) {
            last = match living.is_empty() {
                false => merge(&living.into_values().collect::<Vec<_>>(), expose),
                // Clients keep the list they know; a call says why nothing works.
                true => AnnouncedTools {
                    nothing_works: Some(format!("no worker of pool {} is alive", front.link().pool())),
                    ..last
                },
            };
            if !catalogs.is_empty() || tools.borrow().is_some() {
                tools.send_replace(Some(Arc::new(last.clone())));
            }
            merged = Some(catalogs);
        }
        let is_shown = tools.borrow().is_some();
        let is_complete = beats.iter().all(|beat| known.contains_key(&beat.catalog));
        let patience = match (is_shown, is_complete) {
            (false, _) => FIRST_WORKER,
            (true, false) => CATALOG_RETRY,
            (true, true) => Duration::MAX,
        };
        match tokio::time::timeout(patience, workers.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) if is_shown => {}
            Err(_) => _ = tools.send_replace(Some(Arc::new(last.clone()))),
        }
    }
}

/// A file that several workers have under one name is taken from the first. A tool works if it does on one of them.
fn merge(announcements: &[&Announcement], expose: Expose) -> AnnouncedTools {
    let mut sources = BTreeMap::new();
    for source in announcements
        .iter()
        .flat_map(|announcement| announcement.sources())
    {
        sources.entry(source.name.clone()).or_insert(source);
    }
    let mut missing: BTreeMap<&str, (usize, &UnavailableThere)> = BTreeMap::new();
    for there in announcements
        .iter()
        .flat_map(|announcement| &announcement.unavailable)
    {
        missing.entry(&there.tool).or_insert((0, there)).0 += 1;
    }
    let nowhere = missing
        .values()
        .filter(|(workers, _)| *workers == announcements.len());
    AnnouncedTools {
        sources: sources.into_values().collect(),
        catalog: CatalogSettings {
            files: announcements.iter().any(|announcement| announcement.file_tools),
            expose,
            read_only_shell: announcements
                .iter()
                .any(|announcement| announcement.read_only_shell),
        },
        unavailable: nowhere
            .map(|(_, there)| Unavailable {
                tool: there.tool.clone(),
                file: None,
                reason: there.reason.clone(),
                install_instructions: there.install_instructions.clone(),
            })
            .collect(),
        nothing_works: None,
    }
}
