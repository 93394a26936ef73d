//! The outer form of a grammar: `action` blocks and `grammar` blocks.

use std::collections::HashMap;

use serde::Deserialize;

use crate::household::error::Fault;

/// A parsed grammar. Texts and conditions stay raw until an action needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grammar {
    /// Productions by symbol; the first whose condition holds is used.
    pub symbols: HashMap<String, Vec<Production>>,
    /// Texts of the actions, in file order.
    pub actions: Vec<ActionText>,
}

/// One way to write a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Production {
    /// Query that has to hold; always where empty.
    #[serde(default)]
    pub condition: String,
    /// Template of the text.
    pub rhs: String,
}

/// The texts of one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionText {
    /// Name of the action, in lower case.
    pub name: String,
    /// Template of its command.
    pub template: String,
    /// Template of its answer.
    pub feedback: String,
}

impl Grammar {
    /// Parses a grammar.
    ///
    /// # Errors
    /// When the text is malformed.
    pub fn parse_text(text: &str) -> Result<Self, crate::household::HouseholdError> {
        Self::parse(text).map_err(|fault| fault.of("", "grammar"))
    }

    /// Whether any text but the introduction has the symbol in it.
    pub(crate) fn mentions_symbol(&self, symbol: &str) -> bool {
        // Blanks may follow the opening mark.
        let tag = format!("{symbol}#");
        let texts = self.actions.iter().flat_map(|action| [&action.template, &action.feedback]);
        let productions = self.symbols.iter().filter(|(name, _)| *name != "intro");
        let productions = productions.flat_map(|(_, productions)| productions);
        texts.chain(productions.map(|production| &production.rhs)).any(|text| text.contains(&tag))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let mut scanner = Scanner { text, at: 0 };
        let mut grammar = Self::default();
        loop {
            scanner.skip_blank();
            if scanner.at == text.len() {
                return Ok(grammar);
            }
            let start = scanner.at;
            match scanner.name()? {
                "action" => {
                    let action = scanner.action(&mut grammar.symbols)?;
                    // A later block of the same name replaces the earlier one.
                    match grammar.actions.iter_mut().find(|known| known.name == action.name) {
                        Some(known) => *known = action,
                        None => grammar.actions.push(action),
                    }
                }
                "grammar" => {
                    scanner.expect("::")?;
                    let (block, offset) = scanner.block()?;
                    add_symbols(text, block, offset, false, &mut grammar.symbols)?;
                    scanner.expect(";")?;
                }
                other => {
                    let reason = format!("expected `action` or `grammar`, found `{other}`");
                    return Err(Fault::syntax(text, start, reason));
                }
            }
        }
    }
}

fn add_symbols(
    text: &str,
    block: &str,
    offset: usize,
    in_action: bool,
    symbols: &mut HashMap<String, Vec<Production>>,
) -> Result<(), Fault> {
    let is_comment = |line: &str| line.trim_start().starts_with('#');
    // Blocks of actions may have comment lines, blocks on the outside may not.
    let parsed = if in_action && block.lines().any(is_comment) {
        let kept: Vec<&str> =
            block.split('\n').map(|line| if is_comment(line) { "" } else { line }).collect();
        serde_json::from_str::<HashMap<String, Vec<Production>>>(&kept.join("\n"))
    } else {
        serde_json::from_str(block)
    };
    let parsed = parsed.map_err(|error| {
        let starts = text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count();
        let line = starts + error.line().max(1);
        Fault::Syntax { reason: format!("grammar block is not the expected JSON ({error})"), line }
    })?;
    symbols.extend(parsed);
    Ok(())
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::syntax(self.text, self.at, reason)
    }

    fn skip_blank(&mut self) {
        loop {
            self.at = self.text.len() - self.rest().trim_start().len();
            if !self.rest().starts_with('#') {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn name(&mut self) -> Result<&'a str, Fault> {
        self.skip_blank();
        let is_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '/' | '-');
        let rest = self.rest();
        let length = rest.find(|char| !is_name(char)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.fault(format!("expected a name, {}", self.found())));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    fn found(&self) -> String {
        match self.rest().chars().next() {
            Some(char) => format!("found `{char}`"),
            None => "found the end, the text seems cut off".to_owned(),
        }
    }

    fn accept(&mut self, token: &str) -> bool {
        self.skip_blank();
        let accepted = self.rest().starts_with(token);
        if accepted {
            self.at += token.len();
        }
        accepted
    }

    fn expect(&mut self, token: &str) -> Result<(), Fault> {
        if self.accept(token) {
            return Ok(());
        }
        Err(self.fault(format!("expected `{token}`, {}", self.found())))
    }

    /// `"text"`; there are no escapes.
    fn string(&mut self) -> Result<&'a str, Fault> {
        self.expect("\"")?;
        let rest = self.rest();
        let Some(length) = rest.find('"') else {
            return Err(self.fault("the string that starts here is never closed"));
        };
        self.at += length + 1;
        Ok(&rest[..length])
    }

    /// `"""text"""` with the offset of the text.
    fn block(&mut self) -> Result<(&'a str, usize), Fault> {
        self.expect("\"\"\"")?;
        let (rest, offset) = (self.rest(), self.at);
        let Some(length) = rest.find("\"\"\"") else {
            return Err(self.fault("the block that starts here is never closed"));
        };
        self.at += length + 3;
        Ok((&rest[..length], offset))
    }

    fn action(
        &mut self,
        symbols: &mut HashMap<String, Vec<Production>>,
    ) -> Result<ActionText, Fault> {
        let name = self.name()?;
        let start = self.at;
        let (mut template, mut feedback, mut has_grammar) = (None, None, false);
        self.expect("{")?;
        while !self.accept("}") {
            let field = self.name()?;
            self.expect("::")?;
            match field {
                "template" if template.is_none() => template = Some(self.string()?),
                "feedback" if feedback.is_none() => feedback = Some(self.string()?),
                "grammar" if !has_grammar => {
                    has_grammar = true;
                    let (block, offset) = self.block()?;
                    add_symbols(self.text, block, offset, true, symbols)?;
                }
                // A copy of the rule for human readers.
                "pddl" => drop(self.block()?),
                "template" | "feedback" | "grammar" => {
                    return Err(self.fault(format!("second `{field}` in action `{name}`")));
                }
                _ => {
                    return Err(self.fault(format!(
                        "expected `template`, `feedback`, `grammar` or `pddl` in action `{name}`, \
                         found `{field}`"
                    )));
                }
            }
            self.expect(";")?;
        }
        let missing =
            |field| Fault::syntax(self.text, start, format!("action `{name}` lacks its `{field}`"));
        Ok(ActionText {
            name: name.to_lowercase(),
            template: template.ok_or_else(|| missing("template"))?.to_owned(),
            feedback: feedback.ok_or_else(|| missing("feedback"))?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: &str = "# comment\ngrammar :: \"\"\"{\"a\": [{\"rhs\": \"x\"}]}\"\"\";\n\
        action Look { template :: \"look\"; feedback :: \"#a#\"; grammar :: \"\"\"\n# no\n\
        {\"b\": [{\"condition\": \"p(o:object)\", \"rhs\": \"#a#\"}]}\"\"\"; }";

    #[test]
    fn blocks_and_comments_are_read() {
        let grammar = Grammar::parse(SMALL).unwrap();
        assert_eq!(grammar.actions[0].name, "look");
        assert_eq!(grammar.symbols["b"][0].condition, "p(o:object)");
        assert_eq!(grammar.symbols["a"][0].rhs, "x");
    }

    #[test]
    fn a_fault_in_a_block_names_its_line() {
        let fault = Grammar::parse("\n\ngrammar :: \"\"\"\n{\"a\": 1}\"\"\";").unwrap_err();
        assert!(matches!(fault, Fault::Syntax { line: 4, .. }), "{fault:?}");
    }

    #[test]
    fn a_cut_off_document_is_refused() {
        for end in (12..SMALL.len() - 1).filter(|&end| end != 47) {
            let cut = &SMALL[..end];
            if !cut.trim_end().ends_with("\"\"\";") || cut.contains("action") {
                assert!(Grammar::parse(cut).is_err(), "{cut}");
            }
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC*") {
            let _ = Grammar::parse(&text);
        }

        #[test]
        fn damaged_text_never_panics(at in 0..SMALL.len(), with in "[\"{}:;#a ]{0,3}") {
            let _ = Grammar::parse(&format!("{}{with}{}", &SMALL[..at], &SMALL[at..]));
            let _ = Grammar::parse(&format!("{}{with}", &SMALL[..at]));
        }
    }
}
