//! Tools that others announce: a front end of a cluster offers those of its workers.

use std::{collections::HashSet, sync::Arc};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{
    Toolbox, ToolboxHandle, Unavailable, availability::Lack, file_cache::FileCache, load::SourceFile,
};
use crate::{
    catalog::{Catalog, CatalogSettings},
    mtdf::ToolSource,
};

/// The tools of all workers together.
#[derive(Debug, Clone, Default)]
pub struct AnnouncedTools {
    pub sources: Vec<ToolSource>,
    pub catalog: CatalogSettings,
    /// Tools that no worker can run, and why.
    pub unavailable: Vec<Unavailable>,
    /// Reason why nothing at all can be run.
    pub nothing_works: Option<String>,
}

/// A toolbox of what is announced, until `shutdown`. It is loaded with the first announcement.
pub fn announced(
    mut announcements: watch::Receiver<Option<Arc<AnnouncedTools>>>,
    shutdown: CancellationToken,
) -> ToolboxHandle {
    let (tx, toolbox) = watch::channel(Arc::new(Toolbox::default()));
    let (again, mut rechecks) = mpsc::channel(1);
    let follow = async move {
        let mut cache = FileCache::default();
        let mut loads = 0;
        loop {
            let tools = announcements.borrow_and_update().clone();
            if let Some(tools) = tools {
                loads += 1;
                tx.send_replace(Arc::new(toolbox_of(&mut cache, &tools, loads)));
            }
            tokio::select! {
                changed = announcements.changed() => if changed.is_err() { return },
                // Workers look for their programs themselves, so there is nothing to check here.
                recheck = rechecks.recv() => drop(recheck),
            }
        }
    };
    tokio::spawn(shutdown.run_until_cancelled_owned(follow));
    ToolboxHandle { toolbox, again }
}

fn toolbox_of(cache: &mut FileCache, tools: &AnnouncedTools, loads: u64) -> Toolbox {
    let file = |source: &ToolSource| SourceFile {
        name: source.name.clone(),
        text: Ok(source.text.clone()),
    };
    let loaded = cache.refresh(tools.sources.iter().map(file).collect());
    let catalog = Catalog::build(&loaded.tools, tools.catalog);
    let unavailable: Vec<Unavailable> = match &tools.nothing_works {
        Some(reason) => catalog
            .tools()
            .map(|tool| Unavailable::new(tool, &Lack::Check(reason.clone())))
            .collect(),
        None => tools.unavailable.clone(),
    };
    let missing: HashSet<&str> = unavailable.iter().map(|tool| tool.tool.as_str()).collect();
    let offered = catalog.filtered(|tool| !missing.contains(tool.name.as_str()));
    Toolbox {
        // While nothing works, clients keep the list they know.
        present: match tools.nothing_works {
            Some(_) => catalog.clone(),
            None => offered.clone(),
        },
        offered,
        catalog,
        unavailable,
        problems: loaded.problems,
        loads,
        ..Toolbox::default()
    }
}
