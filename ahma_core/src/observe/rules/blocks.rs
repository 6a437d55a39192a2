//! Blocks: a line, those that follow it, and the one that ends them, which together say one thing.

use super::{
    StreamRules,
    apply::{LineUse, RuleContext},
    field::Content,
    pattern::Pattern,
    stream_rules::Selector,
};

/// More lines than this do not belong together.
const MAX_LINES: usize = 200;

/// Bytes kept of a block, which is what a description may hold.
const MAX_BYTES: usize = 8_000;

/// Lines before the one that is looked at, as far as rules need them. Holds a bounded number of bytes.
#[derive(Debug, Default)]
pub(crate) struct LineContext {
    pub(super) previous: Option<String>,
    /// At most one for each rule.
    pub(super) blocks: Vec<OpenBlock>,
}

/// A block whose end has not come yet.
#[derive(Debug)]
pub(super) struct OpenBlock {
    /// Index of its rule.
    rule: usize,
    first: String,
    lines: String,
    count: usize,
}

impl OpenBlock {
    pub(super) fn new(rule: usize, first: &str) -> Self {
        Self {
            rule,
            first: first.to_owned(),
            lines: String::new(),
            count: 0,
        }
    }

    fn collect(&mut self, line: &str, wanted: Option<&Pattern>) {
        self.count += 1;
        let wanted = match wanted.map(|pattern| pattern.captures(line)) {
            None => line,
            Some(Some(captures)) => captures
                .get(1)
                .or_else(|| captures.get(0))
                .map_or(line, |found| found.as_str()),
            Some(None) => return,
        };
        if self.lines.len() + wanted.len() < MAX_BYTES {
            if !self.lines.is_empty() {
                self.lines.push('\n');
            }
            self.lines.push_str(wanted);
        }
    }
}

impl StreamRules {
    /// Gives a line to the open blocks, and ends those that it ends.
    pub(super) fn continue_blocks(
        &self,
        line: &str,
        context: &mut LineContext,
        run: &mut RuleContext<'_>,
    ) -> LineUse {
        let mut line_use = LineUse::Plain;
        let open = std::mem::take(&mut context.blocks);
        for mut block in open {
            let Selector::Block {
                line: first,
                until,
                collect,
            } = &self.rules[block.rule].selector
            else {
                continue;
            };
            let ends = until.captures(line).is_some();
            if ends || first.captures(line).is_some() || block.count == MAX_LINES {
                self.close(&block, ends.then_some(line), run);
                // A last line with groups is part of what is said; one without only ends it.
                if ends && until.group_count() > 1 {
                    line_use = LineUse::Taken;
                }
            } else {
                block.collect(line, collect.as_ref());
                context.blocks.push(block);
                line_use = LineUse::Taken;
            }
        }
        line_use
    }

    /// Ends all blocks, as the output does.
    pub(crate) fn close_blocks(&self, context: &mut LineContext, run: &mut RuleContext<'_>) {
        for block in std::mem::take(&mut context.blocks) {
            self.close(&block, None, run);
        }
    }

    fn close(&self, block: &OpenBlock, last: Option<&str>, run: &mut RuleContext<'_>) {
        let rule = &self.rules[block.rule];
        let Selector::Block { line, until, .. } = &rule.selector else {
            return;
        };
        if let Some(captures) = line.captures(&block.first) {
            let content = Content::Text {
                line: &block.first,
                captures,
                next: last.and_then(|last| until.captures(last)),
                lines: &block.lines,
            };
            run.act(&rule.action, content);
        }
    }
}
