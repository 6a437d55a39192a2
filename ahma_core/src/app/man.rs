//! The manual page: flags, subcommands with theirs, and the examples, all in one, because one page is what is installed.

use std::io;

use super::args::Args;

/// In roff, as `man` reads it.
pub(super) fn page() -> io::Result<Vec<u8>> {
    let mut command = Args::described();
    command.build();
    let manual = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    manual.render_title(&mut page)?;
    manual.render_name_section(&mut page)?;
    manual.render_synopsis_section(&mut page)?;
    manual.render_description_section(&mut page)?;
    manual.render_options_section(&mut page)?;
    for task in command.get_subcommands_mut() {
        render_task(task, &mut page)?;
    }
    if let Some(examples) = command.get_after_help() {
        page.extend_from_slice(b".SH EXAMPLES\n");
        verbatim(&examples.to_string(), &mut page);
    }
    manual.render_version_section(&mut page)?;
    Ok(page)
}

/// A subcommand with subcommands of its own is described under their names.
fn render_task(task: &mut clap::Command, page: &mut Vec<u8>) -> io::Result<()> {
    if task.is_hide_set() || task.get_name() == "help" {
        return Ok(());
    }
    if task.has_subcommands() {
        return task
            .get_subcommands_mut()
            .try_for_each(|task| render_task(task, page));
    }
    let name = task.get_bin_name().unwrap_or(task.get_name()).to_owned();
    page.extend_from_slice(format!(".SH \"{}\"\n", escaped(&name.to_uppercase())).as_bytes());
    if let Some(about) = task.get_about() {
        page.extend_from_slice(format!("{}.\n", escaped(&about.to_string())).as_bytes());
    }
    page.extend_from_slice(b".PP\n");
    verbatim(&task.render_usage().to_string(), page);
    let mut options = Vec::new();
    clap_mangen::Man::new(task.clone()).render_options_section(&mut options)?;
    // The text above the heading is for a page of its own; headings are one level lower here.
    let options = String::from_utf8_lossy(&options);
    let below = options.split_once(".SH OPTIONS\n").map_or("", |(_, below)| below);
    page.extend_from_slice(below.replace("\n.SH ", "\n.SS ").as_bytes());
    if let Some(after) = task.get_after_help() {
        page.extend_from_slice(b".PP\n");
        verbatim(&after.to_string(), page);
    }
    Ok(())
}

/// Text as help shows it: indented lines stay as they are, the others are filled.
fn verbatim(text: &str, page: &mut Vec<u8>) {
    let mut is_filled = true;
    for line in text.lines() {
        let fills = !line.starts_with(' ');
        if fills != is_filled {
            page.extend_from_slice(if fills { b".fi\n" } else { b".nf\n" });
            is_filled = fills;
        }
        match line {
            "" => page.extend_from_slice(b".PP\n"),
            line => page.extend_from_slice(format!("{}\n", escaped(line)).as_bytes()),
        }
    }
    if !is_filled {
        page.extend_from_slice(b".fi\n");
    }
}

/// A dot or an apostrophe at the beginning of a line would be a request.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) {
        format!("\\&{text}")
    } else {
        text
    }
}
