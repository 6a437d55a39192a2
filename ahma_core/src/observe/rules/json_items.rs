//! Finding the items of a list inside a JSON text without building the whole of it.
//!
//! A report of 64 MiB would take several times that as a tree. Here only slices of its text are held.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::observe::framing::CUT_OFF;

/// The fields of an object, each as it stands in the text.
pub(crate) type ObjectFields<'a> = BTreeMap<String, &'a RawValue>;

/// `/runs/*/results`: a JSON pointer whose `*` stands for every item of a list or object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ItemPath {
    steps: Vec<PathStep>,
}

#[derive(Debug, Clone, PartialEq)]
enum PathStep {
    Key(String),
    Every,
}

impl ItemPath {
    pub(crate) fn parse(pointer: &str) -> Option<Self> {
        if pointer.is_empty() {
            return Some(Self { steps: Vec::new() });
        }
        let step = |text: &str| match text {
            "*" => PathStep::Every,
            key => PathStep::Key(key.replace("~1", "/").replace("~0", "~")),
        };
        Some(Self {
            steps: pointer.strip_prefix('/')?.split('/').map(step).collect(),
        })
    }

    /// All items. A path that ends at a list gives what is in it; one that ends in `*` gives what that stands for.
    pub(crate) fn items<'a>(&self, root: &'a RawValue) -> Vec<&'a RawValue> {
        let mut items = Vec::new();
        self.visit(root, &mut |item, _| items.push(item));
        items
    }

    /// Gives every item to `note`, with the objects around it, the innermost last.
    pub(crate) fn visit<'a>(
        &self,
        root: &'a RawValue,
        note: &mut dyn FnMut(&'a RawValue, &[ObjectFields<'a>]),
    ) {
        self.visit_below(root, &self.steps, &mut Vec::new(), note);
    }

    fn visit_below<'a>(
        &self,
        place: &'a RawValue,
        steps: &[PathStep],
        around: &mut Vec<ObjectFields<'a>>,
        note: &mut dyn FnMut(&'a RawValue, &[ObjectFields<'a>]),
    ) {
        let Some((step, rest)) = steps.split_first() else {
            return match self.steps.last() {
                Some(PathStep::Every) => note(place, around),
                Some(PathStep::Key(_)) | None => {
                    list_items(place).into_iter().for_each(|item| note(item, around));
                }
            };
        };
        match first_byte(place) {
            b'{' => {
                let fields = object_fields(place);
                let chosen: Vec<&RawValue> = match step {
                    PathStep::Key(key) => fields.get(key).copied().into_iter().collect(),
                    PathStep::Every => {
                        let named = fields.iter().filter(|(name, _)| name.as_str() != CUT_OFF);
                        named.map(|(_, value)| *value).collect()
                    }
                };
                around.push(fields);
                for below in chosen {
                    self.visit_below(below, rest, around, note);
                }
                around.pop();
            }
            _ => {
                let items = list_items(place);
                let chosen = match step {
                    PathStep::Key(key) => key.parse().ok().and_then(|index: usize| items.get(index..=index)),
                    PathStep::Every => Some(&items[..]),
                };
                for below in chosen.unwrap_or_default() {
                    self.visit_below(below, rest, around, note);
                }
            }
        }
    }
}

fn list_items(place: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(place.get()).unwrap_or_default()
}

fn object_fields(place: &RawValue) -> ObjectFields<'_> {
    serde_json::from_str(place.get()).unwrap_or_default()
}

fn first_byte(place: &RawValue) -> u8 {
    place.get().as_bytes().first().copied().unwrap_or_default()
}
