//! What a tab shows: its elements, their text, and the accessibility tree.

use std::collections::HashMap;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::WebError;
use crate::axtree::{AxOptions, flatten_axtree};
use crate::connection::Reply;
use crate::page::{ATTRIBUTES, answer_of, send_question, send_unmark};
use crate::tab::Tab;

/// Elements and texts of a page whose tree is asked for before it is known what the page has come to.
const MAX_PLAIN: usize = 2000;
const FACTS: &str = include_str!("script/facts.js");

/// An element, or a text inside one.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Element {
    /// Its number, by which actions name it; empty where it has none.
    pub bid: String,
    /// Its tag in small letters; `#text` for a text.
    pub tag: String,
    /// The place of what it is in; -1 for the root.
    pub parent: i64,
    /// Its left end in the window, in pixels.
    pub x: f64,
    /// Its upper end.
    pub y: f64,
    /// Its width.
    pub w: f64,
    /// Its height.
    pub h: f64,
    /// Its `id`.
    pub id: String,
    /// Its classes.
    pub class: String,
    /// The text, of texts.
    pub text: String,
    /// What kind of `input` it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// What a field has in it.
    pub value: Option<String>,
    /// Whether it is checked or selected.
    pub checked: bool,
    /// Whether it is disabled.
    pub disabled: bool,
    /// Whether it has the focus.
    pub focused: bool,
    /// Whether styles hide it.
    pub hidden: bool,
    /// The colour of its text, where colours are asked for.
    pub color: String,
    /// That behind it.
    pub background: String,
    /// Some of its attributes.
    pub attributes: HashMap<String, String>,
}

/// The elements of a page, in the order of the document.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct View {
    elements: Vec<Element>,
    children: Vec<Vec<usize>>,
    /// The number of the element that has the focus; may be empty.
    pub focused: String,
    /// Whether the page has more elements than are shown.
    pub is_too_large: bool,
}

/// What is told of an element beside the tree.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct ElementFacts {
    /// Whether at least half of it is inside the window.
    pub is_visible: bool,
    /// Whether it reacts to clicks.
    pub is_clickable: bool,
    /// Its middle, in pixels of the screenshot.
    pub center: Option<(f64, f64)>,
}

/// What a page tells.
#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    before: Value,
    marked: Marked,
}

impl Told {
    /// From JSON in a text, or from an object.
    fn read(value: Value) -> Result<Self, WebError> {
        let read = match &value {
            Value::String(text) => serde_json::from_str(text),
            value => Self::deserialize(value),
        };
        read.map_err(|error| WebError::Foreign {
            method: "Runtime.evaluate",
            detail: error.to_string(),
        })
    }
}

#[derive(Deserialize)]
struct Marked {
    elements: Vec<Element>,
    #[serde(rename = "isTooLarge")]
    is_too_large: bool,
    frames: usize,
    focused: String,
}

/// What is to be read off a page.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewOptions {
    /// Whether the accessibility tree is.
    pub axtree: Option<AxOptions>,
    /// Whether the colours of elements are.
    pub colors: bool,
    /// Pixels of the screenshot to a pixel of the page.
    pub scale: f64,
    /// An expression whose value is told as well, before anything is read.
    pub before: String,
}

/// What was read off a page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Looked {
    /// Its elements.
    pub view: View,
    /// The text of its accessibility tree, where that was asked for.
    pub axtree: Option<String>,
    /// The value of the expression.
    pub before: Value,
}

/// Numbers the elements of a tab's page, and reads off it what is asked for.
///
/// # Errors
///
/// [`WebError`] where the tab cannot do it.
pub async fn look(tab: &Tab, options: &ViewOptions) -> Result<Looked, WebError> {
    let before = if options.before.is_empty() { "null" } else { &options.before };
    let (aria, colors) = (options.axtree.is_some(), options.colors);
    let call = format!("__spar_page.look(() => ({before}), {aria}, {colors})");
    let asked = send_question(tab, &call);
    // The tree of a page that was small and had no frames is asked for at once: commands are carried out in the order in which
    // they are sent.
    let wants_tree_alone = options.axtree.is_some_and(|of| !of.wants_facts());
    let mut ahead = (wants_tree_alone && tab.is_plain()).then(|| send_tree(tab));
    let told = Told::read(answer_of(tab, &call, asked).await?)?;
    let marked = told.marked;
    let (frames, num_elements) = (marked.frames, marked.elements.len());
    let view = View::new(marked.elements, marked.focused, marked.is_too_large);
    let is_plain = frames == 0 && num_elements <= MAX_PLAIN;
    let mut axtree = None;
    if let Some(of) = options.axtree {
        tab.set_plain(is_plain);
        if view.is_too_large {
            if ahead.is_none() {
                tab.value_of(send_unmark(tab)).await?;
            }
        } else if frames > 0 && ahead.take().is_some() {
            // It has got frames: their trees are read as well, with marks that are put anew.
            let again = ViewOptions { before: String::new(), ..options.clone() };
            let looked = Box::pin(look(tab, &again)).await?;
            return Ok(Looked { before: told.before, ..looked });
        } else {
            axtree = Some(read_axtree(tab, of, options.scale, frames > 0, ahead).await?);
        }
    }
    Ok(Looked { view, axtree, before: told.before })
}

/// Asks for the accessibility tree, and takes the marks from the page behind it.
fn send_tree(tab: &Tab) -> (Reply, Reply) {
    (tab.send("Accessibility.getFullAXTree", Value::Null), send_unmark(tab))
}

async fn read_axtree(
    tab: &Tab,
    options: AxOptions,
    scale: f64,
    has_frames: bool,
    ahead: Option<(Reply, Reply)>,
) -> Result<String, WebError> {
    let mut facts = HashMap::new();
    if options.wants_facts() {
        facts = read_facts(tab, scale).await?;
    }
    if has_frames {
        let (nodes, inner) = read_frames(tab).await?;
        tab.value_of(send_unmark(tab)).await?;
        return Ok(flatten_axtree(&nodes, &inner, &facts, options));
    }
    let (tree, unmarked) = ahead.unwrap_or_else(|| send_tree(tab));
    let mut tree = tree.within(tab.patience()).await?;
    tab.value_of(unmarked).await?;
    let nodes = tree.get_mut("nodes").map(Value::take).unwrap_or_default();
    let nodes = nodes.as_array().map_or(&[][..], Vec::as_slice);
    Ok(flatten_axtree(nodes, &HashMap::new(), &facts, options))
}

/// The trees of all frames, and which of them hangs at which node.
async fn read_frames(tab: &Tab) -> Result<(Vec<Value>, HashMap<String, String>), WebError> {
    let tree = tab.call("Page.getFrameTree", Value::Null).await?;
    let mut todo: Vec<&Value> = tree.get("frameTree").into_iter().collect();
    let mut ids = Vec::new();
    while let Some(frame) = todo.pop() {
        if let Some(id) = frame.pointer("/frame/id").and_then(Value::as_str) {
            ids.push(id.to_owned());
        }
        todo.extend(frame.get("childFrames").and_then(Value::as_array).into_iter().flatten());
    }
    ids.truncate(50);
    let mut all = Vec::new();
    let mut roots: HashMap<String, String> = HashMap::new();
    let mut holders = Vec::new();
    for (place, id) in ids.iter().enumerate() {
        let mut answer = tab.call("Accessibility.getFullAXTree", json!({ "frameId": id })).await?;
        let mut nodes = match answer.get_mut("nodes").map(Value::take) {
            Some(Value::Array(nodes)) => nodes,
            _ => continue,
        };
        // Numbers of nodes are told apart by their frame.
        for node in &mut nodes {
            for pointer in ["/nodeId", "/parentId"] {
                if let Some(Value::String(text)) = node.pointer_mut(pointer) {
                    text.insert_str(0, &format!("{place}/"));
                }
            }
            if let Some(Value::Array(children)) = node.get_mut("childIds") {
                for child in children {
                    if let Value::String(text) = child {
                        text.insert_str(0, &format!("{place}/"));
                    }
                }
            }
        }
        if let Some(root) = nodes.first().and_then(|node| node.get("nodeId")?.as_str()) {
            roots.insert(id.clone(), root.to_owned());
        }
        for node in &nodes {
            if node.pointer("/role/value").and_then(Value::as_str) == Some("Iframe")
                && let Some(backend) = node.get("backendDOMNodeId")
                && let Some(of) = node.get("nodeId").and_then(Value::as_str)
            {
                holders.push((of.to_owned(), backend.clone()));
            }
        }
        all.append(&mut nodes);
    }
    let mut inner = HashMap::new();
    for (holder, backend) in holders {
        let described = tab.call("DOM.describeNode", json!({ "backendNodeId": backend })).await?;
        let frame = described.pointer("/node/frameId").and_then(Value::as_str);
        if let Some(root) = frame.and_then(|frame| roots.get(frame)) {
            inner.insert(holder, root.clone());
        }
    }
    Ok((all, inner))
}

/// Which elements can be seen and react to clicks, and where they are.
async fn read_facts(tab: &Tab, scale: f64) -> Result<HashMap<String, ElementFacts>, WebError> {
    let ratios = tab.evaluate(&format!("({FACTS})()")).await?;
    let params =
        json!({ "computedStyles": [], "includeDOMRects": true, "includePaintOrder": false });
    let snapshot = tab.call("DOMSnapshot.captureSnapshot", params).await?;
    let mut facts: HashMap<String, ElementFacts> = HashMap::new();
    for (bid, ratio) in ratios.as_object().into_iter().flatten() {
        let is_visible = ratio.as_f64().is_some_and(|ratio| ratio >= 0.5);
        facts.insert(bid.clone(), ElementFacts { is_visible, ..ElementFacts::default() });
    }
    let empty = Vec::new();
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let strings = snapshot.get("strings").and_then(Value::as_array).unwrap_or(&empty);
    let text = |index: &Value| {
        index.as_u64().and_then(|index| strings.get(index as usize)).and_then(Value::as_str)
    };
    let documents = snapshot.get("documents").and_then(Value::as_array).unwrap_or(&empty);
    // Where the upper left end of each document is in the window.
    let mut origins: Vec<Option<(f64, f64)>> = vec![None; documents.len()];
    if let Some(first) = origins.first_mut() {
        *first = Some((0.0, 0.0));
    }
    for place in 0..documents.len() {
        let document = &documents[place];
        let Some((left, top)) = origins[place] else { continue };
        let offset = |name: &str| document.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let (left, top) = (left - offset("scrollOffsetX"), top - offset("scrollOffsetY"));
        let mut bids: HashMap<u64, &str> = HashMap::new();
        for (node, attributes) in list(document.pointer("/nodes/attributes")).iter().enumerate() {
            let attributes = attributes.as_array().unwrap_or(&empty);
            for pair in attributes.chunks_exact(2) {
                if text(&pair[0]) == Some("bid")
                    && let Some(bid) = text(&pair[1])
                {
                    bids.insert(node as u64, bid);
                }
            }
        }
        for node in
            list(document.pointer("/nodes/isClickable/index")).iter().filter_map(Value::as_u64)
        {
            if let Some(bid) = bids.get(&node) {
                facts.entry((*bid).to_owned()).or_default().is_clickable = true;
            }
        }
        let layout = |name: &str| list(document.pointer(&format!("/layout/{name}")));
        let (nodes, bounds, rects) = (layout("nodeIndex"), layout("bounds"), layout("clientRects"));
        let mut boxes: HashMap<u64, (f64, f64)> = HashMap::new();
        for ((node, bounds), rect) in nodes.iter().zip(&bounds).zip(&rects) {
            let Some(node) = node.as_u64() else { continue };
            let number = |at: usize| bounds.get(at).and_then(Value::as_f64).unwrap_or(0.0);
            boxes.entry(node).or_insert((left + number(0), top + number(1)));
            let Some(bid) = bids.get(&node) else { continue };
            let is_drawn = rect.as_array().is_some_and(|rect| !rect.is_empty());
            // Of several boxes the last one counts.
            facts.entry((*bid).to_owned()).or_default().center = is_drawn.then(|| {
                let scaled = |at: usize, shift: f64| (number(at) + shift) * scale;
                (
                    scaled(0, left) + number(2) * scale / 2.0,
                    scaled(1, top) + number(3) * scale / 2.0,
                )
            });
        }
        let holders = list(document.pointer("/nodes/contentDocumentIndex/index"));
        let inner = list(document.pointer("/nodes/contentDocumentIndex/value"));
        for (node, inner) in holders.iter().zip(&inner) {
            let (Some(node), Some(inner)) = (node.as_u64(), inner.as_u64()) else { continue };
            if let Some(origin) = origins.get_mut(inner as usize).filter(|_| inner as usize > place)
            {
                *origin = Some(boxes.get(&node).copied().unwrap_or((0.0, 0.0)));
            }
        }
    }
    Ok(facts)
}

impl View {
    /// The elements of a page, in the order of the document.
    pub fn new(elements: Vec<Element>, focused: String, is_too_large: bool) -> Self {
        let mut children = vec![Vec::new(); elements.len()];
        for (place, element) in elements.iter().enumerate() {
            if let Ok(parent) = usize::try_from(element.parent)
                && parent < place
            {
                children[parent].push(place);
            }
        }
        Self { elements, children, focused, is_too_large }
    }

    /// All elements and texts.
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// The places of what is in an element, in order.
    pub fn children(&self, place: usize) -> &[usize] {
        self.children.get(place).map_or(&[], Vec::as_slice)
    }

    /// All that is written in an element, joined by blanks.
    pub fn text_of(&self, place: usize) -> String {
        let mut text = String::new();
        let mut todo = vec![place];
        while let Some(place) = todo.pop() {
            let Some(element) = self.elements.get(place) else { continue };
            if element.tag == "#text" {
                if !text.is_empty() {
                    text.push(' ');
                }
                text += &element.text;
            }
            todo.extend(self.children(place).iter().rev());
        }
        text
    }

    /// Whether an element has an area and nothing hides it.
    pub fn is_shown(&self, place: usize) -> bool {
        let Some(element) = self.elements.get(place) else { return false };
        element.w > 0.0 && element.h > 0.0 && !element.hidden
    }

    /// The page as HTML that is indented, with the numbers of elements, without what is not shown.
    pub fn dom_text(&self) -> String {
        let mut text = String::new();
        let roots = (0..self.elements.len()).filter(|place| self.elements[*place].parent < 0);
        for root in roots {
            self.write_dom(root, 0, &mut text);
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn write_dom(&self, place: usize, depth: usize, text: &mut String) {
        const LEFT_OUT: [&str; 9] =
            ["head", "script", "style", "link", "meta", "title", "noscript", "template", "br"];
        let element = &self.elements[place];
        let indent = depth.min(100);
        if element.tag == "#text" {
            let _ = writeln!(text, "{:indent$}{}", "", escaped(&element.text));
            return;
        }
        let is_passed = ["html", "body"].contains(&&*element.tag);
        let is_table =
            ["option", "optgroup", "area", "map", "svg", "g", "tbody"].contains(&&*element.tag);
        let has_area = (element.w > 0.0 && element.h > 0.0) || is_table;
        if LEFT_OUT.contains(&&*element.tag) || (element.hidden && !is_table) {
            return;
        }
        let children = self.children(place);
        if !has_area && children.is_empty() {
            return;
        }
        if is_passed || !has_area || depth > 200 {
            for child in children.iter().filter(|_| depth <= 200) {
                self.write_dom(*child, depth, text);
            }
            return;
        }
        let _ = write!(text, "{:indent$}<{}", "", element.tag);
        let mut attribute = |name: &str, value: &str| {
            let _ = write!(text, " {name}=\"{}\"", escaped(value));
        };
        if !element.bid.is_empty() {
            attribute("bid", &element.bid);
        }
        for (name, value) in
            [("id", &element.id), ("class", &element.class), ("type", &element.kind)]
        {
            if !value.is_empty() {
                attribute(name, value);
            }
        }
        if let Some(value) = &element.value {
            attribute("value", value);
        }
        for name in ATTRIBUTES.iter().filter(|name| **name != "style") {
            if let Some(value) = element.attributes.get(*name) {
                attribute(name, value);
            }
        }
        for (name, holds) in [
            ("checked", element.checked),
            ("disabled", element.disabled),
            ("focused", element.focused),
        ] {
            if holds {
                let _ = write!(text, " {name}");
            }
        }
        let only_text = match children {
            [] => Some(String::new()),
            [one] if self.elements[*one].tag == "#text" => Some(escaped(&self.elements[*one].text)),
            _ => None,
        };
        match only_text {
            Some(inner) if inner.is_empty() => text.push_str("/>\n"),
            Some(inner) => {
                let _ = writeln!(text, ">{inner}</{}>", element.tag);
            }
            None => {
                text.push_str(">\n");
                for child in children {
                    self.write_dom(*child, depth + 1, text);
                }
                let _ = writeln!(text, "{:indent$}</{}>", "", element.tag);
            }
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_written_with_the_numbers_of_its_elements() {
        let element = |tag: &str, bid: &str, parent: i64| Element {
            tag: tag.to_owned(),
            bid: bid.to_owned(),
            parent,
            w: 10.0,
            h: 5.0,
            ..Element::default()
        };
        let text = |text: &str, parent: i64| Element {
            text: text.to_owned(),
            ..element("#text", "", parent)
        };
        let elements = vec![
            element("html", "0", -1),
            element("script", "1", 0),
            element("div", "2", 0),
            text("a < b", 2),
            Element {
                kind: "text".to_owned(),
                value: Some("x\"".to_owned()),
                focused: true,
                ..element("input", "3", 2)
            },
            Element { hidden: true, ..element("p", "4", 2) },
            element("button", "5", 2),
            text("Go", 6),
        ];
        let view = View::new(elements, "3".to_owned(), false);
        let expected = "<div bid=\"2\">\n a &lt; b\n <input bid=\"3\" type=\"text\" value=\"x&quot;\" focused/>\n \
                        <button bid=\"5\">Go</button>\n</div>";
        assert_eq!(view.dom_text(), expected);
        assert_eq!((view.text_of(2), view.is_shown(5)), ("a < b Go".to_owned(), false));
    }
}
