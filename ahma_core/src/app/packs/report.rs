//! `ahma_mcp packs`: the packs and their tools, for people, for programs and for the documentation.

use serde_json::{Value, json};

use super::shipped::{Pack, all};
use crate::{
    app::{
        exit::{Failure, print},
        subcommands::{PacksArgs, PacksFormat},
    },
    catalog::{Catalog, CatalogSettings},
    mcp,
    mtdf::{Level, ToolSource, check_set},
};

pub(in crate::app) fn run(args: &PacksArgs) -> Result<(), Failure> {
    let packs = all()?;
    let packs: Vec<PackReport> = packs.iter().map(PackReport::new).collect();
    print(match args.format {
        PacksFormat::Text => as_text(&packs),
        PacksFormat::Json => format!("{:#}\n", as_json(&packs)),
        PacksFormat::Markdown => as_markdown(&packs),
    })
}

/// A pack with its tools.
struct PackReport<'a> {
    pack: &'a Pack,
    tools: Vec<PackTool>,
}

struct PackTool {
    name: String,
    file: String,
    description: String,
    level: Level,
    /// In the list of tools, were it there.
    bytes: usize,
}

impl PackTool {
    fn summary(&self) -> &str {
        let end = self.description.find(". ").unwrap_or(self.description.len());
        self.description[..end].trim_end_matches('.')
    }

    fn level(&self) -> &'static str {
        match self.level {
            Level::Core => "core",
            Level::Extended => "extended",
        }
    }
}

impl<'a> PackReport<'a> {
    fn new(pack: &'a Pack) -> Self {
        let sources: Vec<ToolSource> = (pack.files())
            .map(|file| ToolSource {
                name: file.name.to_owned(),
                text: file.text.to_owned(),
            })
            .collect();
        let catalog = Catalog::build(&check_set(&sources).tools, CatalogSettings::default());
        let tools = catalog.tools().filter_map(|tool| {
            Some(PackTool {
                file: tool.file.clone()?,
                name: tool.name.clone(),
                description: tool.description.clone(),
                level: tool.leaf.level,
                bytes: mcp::cost_of(tool).bytes,
            })
        });
        Self {
            pack,
            tools: tools.collect(),
        }
    }

    fn core(&self) -> impl Iterator<Item = &PackTool> {
        self.tools.iter().filter(|tool| tool.level == Level::Core)
    }

    /// Bytes and tools that the pack adds to the list.
    fn bytes(&self) -> usize {
        self.core().map(|tool| tool.bytes).sum()
    }
}

fn as_text(packs: &[PackReport<'_>]) -> String {
    let mut text = format!(
        "{:<12} {:>5} {:>5} {:>6}  what\n",
        "pack", "tools", "core", "bytes"
    );
    for row in packs {
        text.push_str(&format!(
            "{:<12} {:>5} {:>5} {:>6}  {}\n",
            row.pack.name,
            row.tools.len(),
            row.core().count(),
            row.bytes(),
            row.pack.description
        ));
    }
    text + "\ncore: tools in the list that clients get, and the bytes they take there; ahma_find finds the others\n\
            ahma_mcp init --pack NAME writes the tool files of a pack\n"
}

fn as_json(packs: &[PackReport<'_>]) -> Value {
    let tool = |tool: &PackTool| {
        json!({
            "name": tool.name,
            "description": tool.description,
            "level": tool.level(),
            "bytes": tool.bytes,
            "file": tool.file,
        })
    };
    let pack = |row: &PackReport<'_>| {
        json!({
            "name": row.pack.name,
            "description": row.pack.description,
            "signs": row.pack.signs,
            "files": row.pack.files().map(|file| file.name).collect::<Vec<_>>(),
            "core_bytes": row.bytes(),
            "tools": row.tools.iter().map(tool).collect::<Vec<_>>(),
        })
    };
    packs.iter().map(pack).collect()
}

fn as_markdown(packs: &[PackReport<'_>]) -> String {
    let mut page = HEAD.to_owned();
    for row in packs {
        let Pack {
            name, description, ..
        } = row.pack;
        page.push_str(&format!(
            "| [`{name}`](#{name}) | {description} | {} | {} | {} |\n",
            row.tools.len(),
            row.core().count(),
            row.bytes()
        ));
    }
    for row in packs {
        page.push_str(&format!("\n## {}\n\n{}.\n", row.pack.name, row.pack.description));
        if !row.pack.signs.is_empty() {
            page.push_str(&format!(
                "`init` adds it where there is {}.\n",
                quoted(&row.pack.signs).join(" or ")
            ));
        }
        if !row.pack.recorded.is_empty() {
            page.push_str(&format!(
                "Rules tested against recordings: {}.\n",
                quoted(&row.pack.recorded).join(", ")
            ));
        }
        page.push_str("\n| tool | what | level | bytes |\n|---|---|---|---|\n");
        for tool in &row.tools {
            page.push_str(&format!(
                "| `{}` | {} | {} | {} |\n",
                tool.name,
                tool.summary().replace('|', "\\|"),
                tool.level(),
                tool.bytes
            ));
        }
    }
    page
}

fn quoted(words: &[String]) -> Vec<String> {
    words.iter().map(|word| format!("`{word}`")).collect()
}

const HEAD: &str = "\
# Packs

Tool files that come with the program, sorted by what they are for.
`ahma_mcp init` writes those that fit the files of a project; `ahma_mcp init --pack NAME` adds one, and may name several.
A tool whose program is not installed is not offered, and `ahma_mcp doctor` says how to install it.

Tools of the level `core` are in the list that clients get, where they take the bytes shown; [`ahma_find`](tool-files.md#core-and-extended-tools) finds the others.
This page is written by `ahma_mcp packs --format markdown`.

| pack | for | tools | core | bytes |
|---|---|---|---|---|
";
