//! Finds tools by a question in plain words: a small index over names, descriptions and arguments.
//!
//! The ranking is BM25 with a weight for each field. Words are reduced to a stem, and a query word also stands for its
//! synonyms at a lower weight, because a model asks to "undo" what a tool calls "revert".

use std::collections::HashMap;

use serde_json::Value;

use super::signature::Described;

/// Weights of the places a word can stand in.
const NAME_WEIGHT: f64 = 5.0;
const SUMMARY_WEIGHT: f64 = 2.0;
const DESCRIPTION_WEIGHT: f64 = 1.0;
const ARGUMENT_WEIGHT: f64 = 1.0;
const ARGUMENT_TEXT_WEIGHT: f64 = 0.3;

/// Weight of a synonym, relative to the word that was asked for.
const SYNONYM_WEIGHT: f64 = 0.4;

/// The usual constants of BM25: how soon repetition stops counting, and how much length does.
const SATURATION: f64 = 1.2;
const LENGTH_EFFECT: f64 = 0.5;

/// Words that say nothing about a tool.
const STOP_WORDS: [&str; 40] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "how", "i",
    "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "so", "some", "that", "the", "their",
    "there", "this", "to", "want", "was", "what", "which", "with", "without",
];

/// Words that mean the same in a search for a tool.
const SYNONYMS: [&[&str]; 20] = [
    &["add", "install", "new"],
    &["build", "compile", "make"],
    &["change", "modify", "edit", "update"],
    &["check", "verify", "validate", "lint"],
    &["clone", "copy"],
    &["create", "new", "init", "make"],
    &["dependency", "package", "library", "crate", "module"],
    &["diff", "compare", "difference", "change"],
    &["download", "fetch", "get", "pull"],
    &["execute", "run", "start", "launch"],
    &["find", "search", "grep", "look", "locate"],
    &["format", "fmt", "style"],
    &["history", "log", "commit"],
    &["list", "show", "print", "display", "ls", "view"],
    &["publish", "push", "upload", "send"],
    &["remove", "delete", "uninstall", "rm", "drop", "clean"],
    &["scan", "vulnerability", "security", "port"],
    &["switch", "checkout"],
    &["test", "tests", "spec"],
    &["undo", "revert", "restore", "reset", "discard", "unstage"],
];

/// Tools prepared for searching.
#[derive(Debug)]
pub struct SearchIndex {
    documents: Vec<Document>,
    /// Number of documents that hold a stem.
    frequencies: HashMap<String, usize>,
    average_length: f64,
}

#[derive(Debug)]
struct Document {
    name: String,
    /// Weighted count of each stem.
    counts: HashMap<String, f64>,
    length: f64,
}

impl SearchIndex {
    pub fn build<'t>(tools: impl IntoIterator<Item = Described<'t>>) -> Self {
        let documents: Vec<Document> = tools.into_iter().map(Document::of).collect();
        let mut frequencies = HashMap::new();
        for stem in documents.iter().flat_map(|document| document.counts.keys()) {
            *frequencies.entry(stem.clone()).or_default() += 1;
        }
        let total: f64 = documents.iter().map(|document| document.length).sum();
        let average_length = (total / documents.len().max(1) as f64).max(1.0);
        Self {
            documents,
            frequencies,
            average_length,
        }
    }

    /// Names of the tools that answer the query best, best first; none that shares no word with it.
    pub fn search(&self, query: &str, limit: usize) -> Vec<&str> {
        let words = query_words(query);
        let mut scored: Vec<(f64, &str)> = self
            .documents
            .iter()
            .map(|document| (self.score(document, &words), document.name.as_str()))
            .filter(|(score, _)| *score > 0.0)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(limit).map(|(_, name)| name).collect()
    }

    fn score(&self, document: &Document, words: &HashMap<String, f64>) -> f64 {
        let total = self.documents.len() as f64;
        let length = 1.0 - LENGTH_EFFECT + LENGTH_EFFECT * document.length / self.average_length;
        let of_word = |(stem, weight): (&String, &f64)| {
            let count = document.counts.get(stem).copied().unwrap_or(0.0);
            let documents = self.frequencies.get(stem).copied().unwrap_or(0) as f64;
            let rarity = (1.0 + (total - documents + 0.5) / (documents + 0.5)).ln();
            weight * rarity * count * (SATURATION + 1.0) / (count + SATURATION * length)
        };
        words.iter().map(of_word).sum()
    }
}

impl Document {
    fn of(tool: Described<'_>) -> Self {
        let mut document = Self {
            name: tool.name.to_owned(),
            counts: HashMap::new(),
            length: 0.0,
        };
        document.add(tool.name, NAME_WEIGHT);
        document.add(tool.summary(), SUMMARY_WEIGHT);
        document.add(tool.description, DESCRIPTION_WEIGHT);
        let properties = tool.input_schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            document.add(name, ARGUMENT_WEIGHT);
            if let Some(text) = property.get("description").and_then(Value::as_str) {
                document.add(text, ARGUMENT_TEXT_WEIGHT);
            }
        }
        document
    }

    fn add(&mut self, text: &str, weight: f64) {
        for stem in stems(text) {
            *self.counts.entry(stem).or_default() += weight;
            self.length += weight;
        }
    }
}

/// The stems of a query with their weights: its own words, then their synonyms.
fn query_words(query: &str) -> HashMap<String, f64> {
    let own: Vec<String> = stems(query).collect();
    let mut words = HashMap::new();
    for word in &own {
        for group in SYNONYMS
            .iter()
            .filter(|group| group.iter().any(|other| stem(other) == *word))
        {
            words.extend(group.iter().map(|synonym| (stem(synonym), SYNONYM_WEIGHT)));
        }
    }
    words.extend(own.into_iter().map(|word| (word, 1.0)));
    words
}

fn stems(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| !STOP_WORDS.contains(&word.as_str()))
        .map(|word| stem(&word))
}

/// The word without the commonest English endings.
fn stem(word: &str) -> String {
    let long_enough = |rest: &&str| rest.len() >= 3;
    for (ending, instead) in [
        ("ies", "y"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
        ("e", ""),
    ] {
        if let Some(rest) = word.strip_suffix(ending).filter(long_enough)
            && !(ending == "s" && rest.ends_with('s'))
        {
            // "committing" and "commit" are one word.
            let mut letters = rest.chars().rev();
            let doubled = letters.next() == letters.next() && matches!(ending, "ing" | "ed");
            let rest = if doubled { &rest[..rest.len() - 1] } else { rest };
            return format!("{rest}{instead}");
        }
    }
    word.to_owned()
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
