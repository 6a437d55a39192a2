//! XML elements, handed out one by one as they close, with what stands in and above them.

use std::{collections::BTreeSet, mem};

use quick_xml::{escape::unescape, events::BytesStart};

use super::xml_tokens::{Token, TokenReader};

/// Deeper elements are passed over. No report nests like that; a hostile stream might.
const MAX_DEPTH: usize = 128;

/// Limit on all elements held at one time; beyond it open ones lose children, then new ones attributes and text.
const MAX_HELD_BYTES: usize = 8 * 1024 * 1024;

/// Children remembered of an element that no rule asked for. Rules may look at them from below (`../address/@addr`).
const MAX_PASSING_CHILDREN: usize = 64;

/// Longer names are cut: they are noise, and the stack of open elements must stay small.
const MAX_NAME_CHARS: usize = 256;

/// More attributes than any format has.
const MAX_ATTRIBUTES: usize = 256;

/// Approximate size of an element without its text.
const ELEMENT_OVERHEAD_BYTES: usize = 128;

/// An element: all of it if a rule asked for it, else only its attributes, text and nearest children.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

/// Turns bytes into closed elements. Holds a bounded part of the tree above the place it has reached.
#[derive(Debug)]
pub(crate) struct ElementReader {
    tokens: TokenReader,
    wanted: BTreeSet<String>,
    /// The elements that are open now, outermost first.
    open: Vec<Element>,
    /// Number of elements open below those, past `MAX_DEPTH`.
    passed_over: usize,
    /// Closed and handed out; becomes a child of the innermost open element at the next call.
    closed: Option<Element>,
    held_bytes: usize,
    has_dropped: bool,
}

impl ElementReader {
    /// Hands out only elements with one of the `wanted` names.
    pub(crate) fn new(max_token_bytes: usize, wanted: BTreeSet<String>) -> Self {
        Self {
            tokens: TokenReader::new(max_token_bytes),
            wanted,
            open: Vec::new(),
            passed_over: 0,
            closed: None,
            held_bytes: 0,
            has_dropped: false,
        }
    }

    /// True if an element lost something because it was too long, or because there was too much to hold.
    pub(crate) fn has_dropped(&self) -> bool {
        self.has_dropped
    }

    /// Eats from `input` up to the end of the next wanted element. Gives it with its ancestors, outermost first.
    pub(crate) fn next_element(&mut self, input: &mut &[u8]) -> Option<(&[Element], &Element)> {
        loop {
            if let Some(element) = self.closed.take() {
                self.adopt(element);
            }
            let tag = match self.tokens.next_token(input)? {
                Token::Text(text) => {
                    let text = unescape(&text).map_or_else(|_| text.to_string(), |text| text.into_owned());
                    self.add_text(&text);
                    continue;
                }
                Token::Cdata(text) => {
                    let text = text.into_owned();
                    self.add_text(&text);
                    continue;
                }
                Token::Tag(tag) => tag.into_owned(),
            };
            self.has_dropped |= self.tokens.is_cut();
            if self.on_tag(&tag)
                && self
                    .closed
                    .as_ref()
                    .is_some_and(|element| self.is_wanted(element))
            {
                break;
            }
        }
        self.closed
            .as_ref()
            .map(|element| (self.open.as_slice(), element))
    }

    /// Opens or closes an element; true if one was closed.
    fn on_tag(&mut self, tag: &str) -> bool {
        if let Some(name) = tag.strip_prefix('/') {
            return self.close(name.trim());
        }
        let (tag, is_empty) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        if self.open.len() == MAX_DEPTH {
            self.passed_over += usize::from(!is_empty);
            return false;
        }
        let element = self.parse(tag);
        if is_empty {
            self.closed = Some(element);
        } else {
            self.open.push(element);
        }
        is_empty
    }

    fn parse(&mut self, tag: &str) -> Element {
        let name_length = tag.find(|c: char| c.is_ascii_whitespace()).unwrap_or(tag.len());
        let name = tag[..name_length].chars().take(MAX_NAME_CHARS).collect();
        let mut element = Element {
            name,
            ..Element::default()
        };
        self.held_bytes += ELEMENT_OVERHEAD_BYTES;
        if self.has_room_for(tag.len()) {
            let start = BytesStart::from_content(tag, name_length);
            let mut attributes = start.attributes();
            attributes.with_checks(false);
            element.attributes = attributes
                .take(MAX_ATTRIBUTES)
                .filter_map(Result::ok)
                .map(|attribute| {
                    let value = unescape(&attribute.value).unwrap_or(attribute.value.as_ref().into());
                    (attribute.key.as_ref().to_owned(), value.into_owned())
                })
                .collect();
        }
        self.held_bytes += element.weight() - ELEMENT_OVERHEAD_BYTES;
        element
    }

    fn close(&mut self, name: &str) -> bool {
        if self.passed_over > 0 {
            self.passed_over -= 1;
            return false;
        }
        // An end tag without a start is noise; one further up also ends what was left open below it.
        let Some(index) = self.open.iter().rposition(|element| element.name == name) else {
            return false;
        };
        for forgotten in self.open.drain(index + 1..) {
            self.held_bytes -= forgotten.total_weight();
        }
        self.closed = self.open.pop();
        true
    }

    fn add_text(&mut self, text: &str) {
        if self.passed_over > 0 || !self.has_room_for(text.len()) {
            return;
        }
        if let Some(element) = self.open.last_mut() {
            self.has_dropped |= self.tokens.is_cut();
            element.text.push_str(text);
            self.held_bytes += text.len();
        }
    }

    /// Makes a closed element a child of the innermost open one.
    fn adopt(&mut self, mut element: Element) {
        let is_inside_wanted = self.open.iter().any(|open| self.is_wanted(open));
        let Some(parent) = self.open.last_mut() else {
            self.held_bytes = 0;
            return;
        };
        if !is_inside_wanted {
            for grandchild in mem::take(&mut element.children) {
                self.held_bytes -= grandchild.total_weight();
            }
        }
        let has_room = is_inside_wanted || parent.children.len() < MAX_PASSING_CHILDREN;
        if has_room && self.held_bytes <= MAX_HELD_BYTES {
            parent.children.push(element);
        } else {
            self.held_bytes -= element.total_weight();
        }
    }

    /// Makes room if there is none: an element that is asked for must not lose what others in front of it hold.
    fn has_room_for(&mut self, bytes: usize) -> bool {
        if self.held_bytes + bytes <= MAX_HELD_BYTES {
            return true;
        }
        self.has_dropped = true;
        for open in &mut self.open {
            let kept = open.children.len().min(MAX_PASSING_CHILDREN);
            let nested = open.children[..kept]
                .iter_mut()
                .map(|child| mem::take(&mut child.children));
            let nested: Vec<Element> = nested.flatten().collect();
            let dropped = nested.into_iter().chain(open.children.drain(kept..));
            self.held_bytes -= dropped.map(|element| element.total_weight()).sum::<usize>();
        }
        self.held_bytes + bytes <= MAX_HELD_BYTES
    }

    fn is_wanted(&self, element: &Element) -> bool {
        self.wanted.contains(&element.name) || self.wanted.contains(element.local_name())
    }
}

impl Element {
    /// The name without its namespace prefix.
    pub(crate) fn local_name(&self) -> &str {
        self.name
            .rsplit_once(':')
            .map_or(self.name.as_str(), |(_, local)| local)
    }

    fn weight(&self) -> usize {
        let attributes: usize = self
            .attributes
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        ELEMENT_OVERHEAD_BYTES + attributes + self.text.len()
    }

    fn total_weight(&self) -> usize {
        self.weight() + self.children.iter().map(Element::total_weight).sum::<usize>()
    }
}
