//! What is made from the command line's own description: man pages and shell completions.

use super::command;
use super::options::LogOptions;
use crate::output::conflicts::Content;
use crate::output::files;
use clap::{Args, Command};
use clc_trace::{Error, Result};
use std::path::{Path, PathBuf};

/// Options of `clc-replay man`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ManOptions {
    /// Directory for clc-replay.1 and a page for each subcommand; it is created if it does not exist
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

/// Options of `clc-replay completions`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct CompletionsOptions {
    /// The shell
    pub shell: clap_complete::Shell,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

/// The completions for a shell.
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "clc-replay", &mut script);
    script
}

/// Writes the man pages (section 1): one for the program, one for every subcommand that is shown.
///
/// # Errors
/// A file cannot be written.
pub fn man(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut whole = command();
    whole.build();
    let mut pages = vec![page(directory, whole.clone())?];
    for subcommand in whole.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        pages.push(page(directory, subcommand.clone().version(env!("CARGO_PKG_VERSION")))?);
    }
    files::write_all(directory, &pages, Content::ManPages, false)?;
    Ok(pages.iter().map(|(name, _)| directory.join(name)).collect())
}

/// Name and contents.
fn page(directory: &Path, command: Command) -> Result<(String, Vec<u8>)> {
    // A subcommand's display name is that of the program and its own with a dash, once the whole is built.
    let name = format!("{}.1", command.get_display_name().unwrap_or(command.get_name()));
    let usage = command.clone().render_usage().to_string();
    let mut text = Vec::new();
    clap_mangen::Man::new(command)
        .manual("clc-replay")
        .render(&mut text)
        .map_err(|error| Error::io(&directory.join(&name), "cannot write the man page", &error))?;
    Ok((name, with_synopsis(&String::from_utf8_lossy(&text), &usage).into_bytes()))
}

/// The page with the usage as help texts have it for its synopsis, instead of a list of all options.
fn with_synopsis(page: &str, usage: &str) -> String {
    const SECTION: &str = ".SH SYNOPSIS\n";
    let Some((before, rest)) = page.split_once(SECTION) else { return page.to_owned() };
    let after = rest.find("\n.SH ").map_or("", |end| &rest[end..]);
    let lines = usage.trim_start_matches("Usage:").lines().map(|line| line.trim().replace('-', "\\-"));
    format!("{before}{SECTION}{}{after}", lines.collect::<Vec<_>>().join("\n.br\n"))
}
