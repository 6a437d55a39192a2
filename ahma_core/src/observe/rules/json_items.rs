//! Finding the items of a list inside a JSON text without building the whole of it.
//!
//! A report of 64 MiB would take several times that as a tree. Here only slices of its text are held.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::observe::framing::CUT_OFF;

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
        let mut places = vec![root];
        for step in &self.steps {
            places = match step {
                PathStep::Key(key) => places.into_iter().filter_map(|place| child(place, key)).collect(),
                PathStep::Every => places.into_iter().flat_map(children).collect(),
            };
        }
        match self.steps.last() {
            Some(PathStep::Every) => places,
            Some(PathStep::Key(_)) | None => places.into_iter().flat_map(list_items).collect(),
        }
    }
}

fn child<'a>(place: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    match first_byte(place) {
        b'{' => object_fields(place).remove(key),
        b'[' => list_items(place).get(key.parse::<usize>().ok()?).copied(),
        _ => None,
    }
}

fn children(place: &RawValue) -> Vec<&RawValue> {
    match first_byte(place) {
        b'{' => {
            let mut fields = object_fields(place);
            fields.remove(CUT_OFF);
            fields.into_values().collect()
        }
        _ => list_items(place),
    }
}

fn list_items(place: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(place.get()).unwrap_or_default()
}

fn object_fields(place: &RawValue) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(place.get()).unwrap_or_default()
}

fn first_byte(place: &RawValue) -> u8 {
    place.get().as_bytes().first().copied().unwrap_or_default()
}
