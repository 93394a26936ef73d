//! The accessibility tree as BrowserGym writes it.

use std::collections::HashMap;

use serde_json::Value;
use spar_python::{from_json, repr, repr_str};

use crate::view::ElementFacts;

/// Nodes of these roles are passed over, their children are not.
const IGNORED_ROLES: [&str; 1] = ["LineBreak"];
/// Properties that are not told.
const IGNORED_PROPERTIES: [&str; 7] =
    ["editable", "readonly", "level", "settable", "multiline", "invalid", "focusable"];
/// Properties that are told by their name alone, and only where they hold.
const BARE_PROPERTIES: [&str; 3] = ["required", "focused", "atomic"];
/// What our marks begin with.
const MARK: &str = "browsergym_id_";
/// Deeper nodes are left out.
const MAX_DEPTH: usize = 200;

/// What is told of elements beside roles, names and properties; BrowserGym's options of the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AxOptions {
    /// Tells which elements can be seen. Default false.
    pub with_visible: bool,
    /// Tells which elements react to clicks. Default false.
    pub with_clickable: bool,
    /// Tells where the middle of each element is, in pixels of the screenshot. Default false.
    pub with_center_coords: bool,
    /// Leaves out elements that cannot be seen. Default false.
    pub filter_visible_only: bool,
}

impl AxOptions {
    /// Whether more than the tree is needed.
    pub(crate) fn wants_facts(self) -> bool {
        self.with_visible
            || self.with_clickable
            || self.with_center_coords
            || self.filter_visible_only
    }
}

/// Writes the nodes of `Accessibility.getFullAXTree` with one line each, indented by tabs. Elements have their number in
/// front, which stands in the description of their role; `frames` are the trees inside frames, by the node that they hang at.
///
/// After `flatten_axtree_to_str` of BrowserGym 0.14.3, with its defaults but for `options`.
pub fn flatten_axtree(
    nodes: &[Value],
    frames: &HashMap<String, String>,
    facts: &HashMap<String, ElementFacts>,
    options: AxOptions,
) -> String {
    let by_id: HashMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node.get("nodeId")?.as_str()?, node))).collect();
    let mut writer = Writer { by_id, frames, facts, options, text: String::new() };
    if let Some(root) = nodes.first() {
        writer.write(root, 0, 0, false, "");
    }
    writer.text
}

struct Writer<'a> {
    by_id: HashMap<&'a str, &'a Value>,
    frames: &'a HashMap<String, String>,
    facts: &'a HashMap<String, ElementFacts>,
    options: AxOptions,
    text: String,
}

impl<'a> Writer<'a> {
    fn write(
        &mut self,
        node: &'a Value,
        indent: usize,
        depth: usize,
        parent_is_filtered: bool,
        parent_name: &str,
    ) {
        if depth > MAX_DEPTH {
            return;
        }
        let role = text_at(node, "/role/value");
        let mut name = "";
        let mut is_filtered = false;
        let mut line = None;
        if !IGNORED_ROLES.contains(&role) && node.get("name").is_some() {
            name = text_at(node, "/name/value");
            let (bid, attributes) = attributes_of(node);
            let mut is_skipped = role == "generic" && attributes.is_empty();
            let mut told = Vec::new();
            if role == "StaticText" {
                is_skipped |= parent_is_filtered || parent_name.contains(name);
            } else if let Some(facts) = bid.and_then(|bid| self.facts.get(bid)) {
                is_filtered = self.options.filter_visible_only && !facts.is_visible;
                is_skipped |= is_filtered;
                if self.options.with_center_coords
                    && let Some((x, y)) = facts.center
                {
                    let digits = |number: f64| spar_python::fixed(number, 0);
                    told.push(format!("center=\"({},{})\"", digits(x), digits(y)));
                }
                if self.options.with_clickable && facts.is_clickable {
                    told.push("clickable".to_owned());
                }
                if self.options.with_visible && facts.is_visible {
                    told.push("visible".to_owned());
                }
            }
            if !is_skipped {
                let mut words = match bid {
                    Some(bid) => format!("[{bid}] "),
                    None => String::new(),
                };
                words += role;
                if role != "generic" || !name.is_empty() {
                    words.push(' ');
                    words += &repr_str(spar_python::text::strip(name));
                }
                if let Some(value) = node.pointer("/value/value").filter(|value| !value.is_null()) {
                    words += &format!(" value={}", python_repr(value));
                }
                for attribute in told.into_iter().chain(attributes) {
                    words += ", ";
                    words += &attribute;
                }
                line = Some(words);
            }
        }
        let below = if line.is_some() { indent + 1 } else { indent };
        if let Some(line) = line {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.extend(std::iter::repeat_n('\t', indent));
            self.text += &line;
        }
        let id = text_at(node, "/nodeId");
        let children =
            node.get("childIds").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let inner = self.frames.get(id).map(String::as_str);
        for child in children.iter().filter_map(Value::as_str).chain(inner) {
            if child != id
                && let Some(child) = self.by_id.get(child)
            {
                self.write(child, below, depth + 1, is_filtered, name);
            }
        }
    }
}

fn text_at<'v>(node: &'v Value, pointer: &str) -> &'v str {
    node.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The value as Python writes it that has read it from JSON.
fn python_repr(value: &Value) -> String {
    repr(&from_json(value)).unwrap_or_else(|error| error.text)
}

/// The number of a node's element, and what is told of the node's properties.
fn attributes_of(node: &Value) -> (Option<&str>, Vec<String>) {
    let mut bid = None;
    let mut attributes = Vec::new();
    let properties =
        node.get("properties").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut is_first_description = true;
    for property in properties {
        let name = text_at(property, "/name");
        let Some(value) = property.pointer("/value/value") else { continue };
        if IGNORED_PROPERTIES.contains(&name) {
            continue;
        }
        if name == "roledescription" && std::mem::take(&mut is_first_description) {
            let (marked, rest) = split_mark(value.as_str().unwrap_or_default());
            bid = marked;
            // What is left of it is told, unless nothing is.
            if !rest.is_empty() {
                attributes.push(format!("{name}={}", repr_str(rest)));
            }
        } else if BARE_PROPERTIES.contains(&name) {
            if from_json(value).is_true() {
                attributes.push(name.to_owned());
            }
        } else {
            attributes.push(format!("{name}={}", python_repr(value)));
        }
    }
    if bid.is_none() {
        bid = split_mark(text_at(node, "/description/value")).0;
    }
    (bid, attributes)
}

/// The number in a text that begins with a mark, and what stands behind the mark.
fn split_mark(text: &str) -> (Option<&str>, &str) {
    let Some(rest) = text.strip_prefix(MARK) else { return (None, text) };
    let end = rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (bid, rest) = rest.split_at(end);
    let without = rest.strip_prefix(|character: char| spar_python::characters::is_space(character));
    let rest = without.unwrap_or(rest);
    match bid.is_empty() || rest.contains('\n') {
        true => (None, text),
        false => (Some(bid), rest),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flat(nodes: &Value, options: AxOptions) -> String {
        let facts =
            ElementFacts { is_visible: true, is_clickable: true, center: Some((189.2, 115.5)) };
        let facts = HashMap::from([("13".to_owned(), facts)]);
        flatten_axtree(nodes.as_array().unwrap(), &HashMap::new(), &facts, options)
    }

    fn property(name: &str, value: Value) -> Value {
        json!({ "name": name, "value": { "value": value } })
    }

    #[test]
    fn a_tree_is_written_line_by_line() {
        let nodes = json!([
            { "nodeId": "1", "role": { "value": "RootWebArea" }, "name": { "value": "Click Test Task" },
              "properties": [property("focusable", json!(true)), property("focused", json!(true)), property("url", json!("http://a.test/"))],
              "childIds": ["2"] },
            { "nodeId": "2", "role": { "value": "generic" }, "name": { "value": "" }, "childIds": ["3", "5", "6"],
              "properties": [property("roledescription", json!("browsergym_id_9 "))] },
            { "nodeId": "3", "role": { "value": "button" }, "name": { "value": "it's" }, "childIds": ["4"],
              "value": { "value": 3.5 },
              "properties": [property("roledescription", json!("browsergym_id_13 old")), property("invalid", json!("false")),
                property("checked", json!("mixed")), property("required", json!(false))] },
            { "nodeId": "4", "role": { "value": "StaticText" }, "name": { "value": "it's" }, "childIds": ["9"] },
            { "nodeId": "9", "role": { "value": "InlineTextBox" }, "name": { "value": "it's" }, "childIds": [] },
            { "nodeId": "5", "role": { "value": "none" }, "childIds": [], "ignored": true },
            { "nodeId": "6", "role": { "value": "paragraph" }, "name": { "value": " x\u{a0}" }, "childIds": ["6"],
              "description": { "value": "browsergym_id_a14 " } },
        ]);
        let expected = "RootWebArea 'Click Test Task', focused, url='http://a.test/'\n\
                        \t[13] button \"it's\" value=3.5, roledescription='old', checked='mixed'\n\
                        \t\tInlineTextBox \"it's\"\n\
                        \t[a14] paragraph 'x'";
        assert_eq!(flat(&nodes, AxOptions::default()), expected);
        let all = AxOptions {
            with_visible: true,
            with_clickable: true,
            with_center_coords: true,
            filter_visible_only: false,
        };
        let text = flat(&nodes, all);
        assert!(
            text.contains(
                "value=3.5, center=\"(189,116)\", clickable, visible, roledescription='old'"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_tree_without_end_comes_to_one() {
        let deep: Vec<Value> = (0..5000)
            .map(|at: usize| {
                json!({ "nodeId": at.to_string(), "role": { "value": "list" }, "name": { "value": "" },
                    "childIds": [(at + 1).to_string()] })
            })
            .collect();
        let text = flatten_axtree(&deep, &HashMap::new(), &HashMap::new(), AxOptions::default());
        assert_eq!(text.lines().count(), MAX_DEPTH + 1);
    }
}
