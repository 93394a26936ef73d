//! What can be done in a window, by BrowserGym's names.

use serde_json::{Map, Value as Json, json};
use spar_core::ToolSpec;
use spar_python::signature::Default as PythonDefault;
use spar_python::{
    Argument, Arguments, Exception, ExceptionKind, Expression, NoNames, Parameter, Signature,
    UnaryOperator, Value, evaluate, parse, repr,
};

use crate::hands::Button;
use crate::keyboard::Modifier;

/// Longer texts are not looked through for an action.
const MAX_TEXT_BYTES: usize = 1 << 16;
/// Names with a bracket behind them that are looked at; each may take the length of the text.
const MAX_TRIES: usize = 200;
/// The longest that an action may wait, in milliseconds.
const MAX_WAIT: f64 = 60_000.0;

/// One kind of action: its name, its parameters, and the sets that it is in.
#[derive(Debug)]
pub struct ActionKind {
    /// Its name.
    pub name: &'static str,
    /// What it does, for a policy.
    pub about: &'static str,
    signature: Signature,
    /// A type for each parameter.
    types: &'static [Type],
    /// The sets it is in.
    pub sets: &'static [&'static str],
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Number,
    Whole,
    Truth,
    TextOrTexts,
    ButtonName,
    ModifierNames,
}

/// An action with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    Noop { wait_ms: f64 },
    Message(String),
    Infeasible(String),
    Scroll { dx: f64, dy: f64 },
    ScrollAt { x: f64, y: f64, dx: f64, dy: f64 },
    Fill { bid: String, value: String, with_menu: bool },
    SelectOption { bid: String, options: Vec<String> },
    Click { bid: String, button: Button, modifiers: u32, times: u32 },
    Hover(String),
    Press { bid: String, keys: String },
    Focus(String),
    Clear(String),
    DragAndDrop { from: String, to: String },
    Upload,
    MouseMove { x: f64, y: f64 },
    MouseUp { x: f64, y: f64, button: Button },
    MouseDown { x: f64, y: f64, button: Button },
    MouseClick { x: f64, y: f64, button: Button, times: u32 },
    MouseDrag { from: (f64, f64), to: (f64, f64) },
    KeyDown(String),
    KeyUp(String),
    KeyPress(String),
    KeyType(String),
    InsertText(String),
    Goto(String),
    GoBack,
    GoForward,
    NewTab,
    TabClose,
    TabFocus(i64),
}

/// An action that cannot be carried out as it was written; the text is for the policy, and begins with the name of the
/// exception that BrowserGym raises.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ActionError(pub(crate) String);

/// The kinds of actions that a policy may use.
#[derive(Debug, Clone)]
pub struct ActionSet {
    kinds: Vec<&'static ActionKind>,
}

const fn required(name: &'static str) -> Parameter {
    Parameter { name, default: None }
}

const fn optional(name: &'static str, default: PythonDefault) -> Parameter {
    Parameter { name, default: Some(default) }
}

macro_rules! kind {
    ($name:literal, $about:literal, [$($parameter:expr => $type:ident),* $(,)?], $sets:expr) => {
        ActionKind {
            name: $name,
            about: $about,
            signature: Signature { name: $name, parameters: &[$($parameter),*] },
            types: &[$(Type::$type),*],
            sets: $sets,
        }
    };
}

const BUTTON: Parameter = optional("button", PythonDefault::Str("left"));

/// All kinds, in the order in which they are listed; `noop` is in every set.
pub const ACTION_KINDS: &[ActionKind] = &[
    kind!(
        "noop",
        "Do nothing, and wait so many milliseconds.",
        [optional("wait_ms", PythonDefault::Int(1000)) => Number],
        &[]
    ),
    kind!(
        "send_msg_to_user",
        "Send a message to the user; it is also the answer to a question.",
        [required("text") => Text],
        &["chat", "webarena", "visualwebarena", "workarena", "workarena++", "weblinx", "assistantbench"]
    ),
    kind!(
        "report_infeasible",
        "Tell the user that what is asked cannot be done, and why.",
        [required("reason") => Text],
        &["infeas", "webarena", "visualwebarena", "workarena++"]
    ),
    kind!(
        "scroll",
        "Turn the wheel of the mouse: pixels to the right and down, negative for left and up.",
        [required("delta_x") => Number, required("delta_y") => Number],
        &[
            "bid", "miniwob_all", "miniwob_shi17", "miniwob_humphreys22", "webarena", "visualwebarena", "workarena",
            "workarena++", "weblinx", "assistantbench",
        ]
    ),
    kind!(
        "fill",
        "Write a text into a field, in the place of what stands there. With `enable_autocomplete_menu` its last character is \
         typed, so that a menu can open.",
        [
            required("bid") => Text, required("value") => Text,
            optional("enable_autocomplete_menu", PythonDefault::Bool(false)) => Truth,
        ],
        &[
            "bid", "miniwob_all", "miniwob_liu18", "webarena", "visualwebarena", "workarena", "workarena++", "weblinx",
            "assistantbench",
        ]
    ),
    kind!(
        "select_option",
        "Choose one or several options of a list, by value or label.",
        [required("bid") => Text, required("options") => TextOrTexts],
        &["bid", "webarena", "visualwebarena", "workarena", "workarena++", "assistantbench"]
    ),
    kind!(
        "click",
        "Click an element. `button` is left, middle or right; `modifiers` is a list of Alt, Control, ControlOrMeta, Meta, Shift.",
        [
            required("bid") => Text, BUTTON => ButtonName,
            optional("modifiers", PythonDefault::EmptyList) => ModifierNames,
        ],
        &[
            "bid", "miniwob_all", "miniwob_liu18", "webarena", "visualwebarena", "workarena", "workarena++", "weblinx",
            "assistantbench",
        ]
    ),
    kind!(
        "dblclick",
        "Click an element twice.",
        [
            required("bid") => Text, BUTTON => ButtonName,
            optional("modifiers", PythonDefault::EmptyList) => ModifierNames,
        ],
        &["bid", "workarena", "workarena++"]
    ),
    kind!(
        "hover",
        "Move the mouse over an element.",
        [required("bid") => Text],
        &["bid", "webarena", "visualwebarena", "workarena", "workarena++", "weblinx"]
    ),
    kind!(
        "press",
        "Press a combination of keys at an element, such as Enter or Control+a.",
        [required("bid") => Text, required("key_comb") => Text],
        &["bid", "workarena", "workarena++", "assistantbench"]
    ),
    kind!("focus", "Put the focus on an element.", [required("bid") => Text], &["bid", "workarena", "workarena++"]),
    kind!("clear", "Empty a field.", [required("bid") => Text], &["bid", "workarena", "workarena++"]),
    kind!(
        "drag_and_drop",
        "Drag one element onto another.",
        [required("from_bid") => Text, required("to_bid") => Text],
        &["bid", "workarena", "workarena++"]
    ),
    kind!(
        "upload_file",
        "Choose files for a field of files.",
        [required("bid") => Text, required("file") => TextOrTexts],
        &["bid", "visualwebarena"]
    ),
    kind!(
        "scroll_at",
        "Turn the wheel with the mouse at a place.",
        [required("x") => Number, required("y") => Number, required("dx") => Number, required("dy") => Number],
        &["coord"]
    ),
    kind!(
        "mouse_move",
        "Move the mouse to a place.",
        [required("x") => Number, required("y") => Number],
        &["coord", "miniwob_all", "miniwob_humphreys22"]
    ),
    kind!(
        "mouse_up",
        "Move the mouse to a place and let go of a button.",
        [required("x") => Number, required("y") => Number, BUTTON => ButtonName],
        &["coord", "miniwob_all", "miniwob_shi17", "miniwob_humphreys22"]
    ),
    kind!(
        "mouse_down",
        "Move the mouse to a place and hold a button down.",
        [required("x") => Number, required("y") => Number, BUTTON => ButtonName],
        &["coord", "miniwob_all", "miniwob_shi17", "miniwob_humphreys22"]
    ),
    kind!(
        "mouse_click",
        "Click at a place.",
        [required("x") => Number, required("y") => Number, BUTTON => ButtonName],
        &["coord", "miniwob_all", "miniwob_shi17", "miniwob_humphreys22"]
    ),
    kind!(
        "mouse_dblclick",
        "Click twice at a place.",
        [required("x") => Number, required("y") => Number, BUTTON => ButtonName],
        &["coord", "miniwob_all", "miniwob_shi17", "miniwob_humphreys22"]
    ),
    kind!(
        "mouse_drag_and_drop",
        "Drag from one place to another.",
        [
            required("from_x") => Number, required("from_y") => Number, required("to_x") => Number,
            required("to_y") => Number,
        ],
        &["coord"]
    ),
    kind!(
        "mouse_upload_file",
        "Choose files for a field of files at a place.",
        [required("x") => Number, required("y") => Number, required("file") => TextOrTexts],
        &["coord"]
    ),
    kind!("keyboard_down", "Hold a key down.", [required("key") => Text], &["coord"]),
    kind!("keyboard_up", "Let go of a key.", [required("key") => Text], &["coord"]),
    kind!(
        "keyboard_press",
        "Press a combination of keys.",
        [required("key") => Text],
        &["coord", "miniwob_all", "miniwob_shi17", "miniwob_humphreys22", "webarena", "visualwebarena"]
    ),
    kind!(
        "keyboard_type",
        "Type a text, key by key.",
        [required("text") => Text],
        &["coord", "miniwob_all", "miniwob_humphreys22"]
    ),
    kind!("keyboard_insert_text", "Insert a text at once.", [required("text") => Text], &["coord"]),
    kind!(
        "go_back",
        "Go to the page before.",
        [],
        &["nav", "webarena", "visualwebarena", "workarena++", "assistantbench"]
    ),
    kind!(
        "go_forward",
        "Go to the next page.",
        [],
        &["nav", "webarena", "visualwebarena", "workarena++"]
    ),
    kind!(
        "goto",
        "Go to an address.",
        [required("url") => Text],
        &["nav", "webarena", "visualwebarena", "workarena++", "weblinx", "assistantbench"]
    ),
    kind!(
        "tab_close",
        "Close the tab.",
        [],
        &["tab", "webarena", "visualwebarena", "workarena++", "weblinx"]
    ),
    kind!(
        "tab_focus",
        "Look at another tab, by its number from 0.",
        [required("index") => Whole],
        &["tab", "webarena", "visualwebarena", "workarena++", "weblinx"]
    ),
    kind!(
        "new_tab",
        "Open a tab.",
        [],
        &["tab", "webarena", "visualwebarena", "workarena++", "weblinx"]
    ),
];

/// The names of the sets of actions, BrowserGym's.
pub fn action_set_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for kind in ACTION_KINDS {
        for set in kind.sets {
            if !names.contains(set) {
                names.push(set);
            }
        }
    }
    names.sort_unstable();
    names
}

impl ActionSet {
    /// The union of sets.
    ///
    /// # Errors
    ///
    /// The text names the sets there are, where one is unknown or none is named.
    pub fn new<S: AsRef<str>>(sets: &[S]) -> Result<Self, String> {
        let known = action_set_names();
        let unknown = sets.iter().find(|set| !known.contains(&set.as_ref()));
        if let Some(unknown) = unknown {
            let (unknown, known) = (unknown.as_ref(), known.join(", "));
            return Err(format!("there is no set of actions `{unknown}`: allowed are {known}"));
        }
        if sets.is_empty() {
            return Err(format!("no set of actions is named: allowed are {}", known.join(", ")));
        }
        let is_in = |kind: &&ActionKind| {
            kind.sets.is_empty()
                || kind.sets.iter().any(|set| sets.iter().any(|it| it.as_ref() == *set))
        };
        Ok(Self { kinds: ACTION_KINDS.iter().filter(is_in).collect() })
    }

    /// The kinds in it.
    pub fn kinds(&self) -> &[&'static ActionKind] {
        &self.kinds
    }

    /// The action that stands in a text as the call of a function; whatever else stands there is passed over.
    ///
    /// # Errors
    ///
    /// [`ActionError`] where there is none, more than one, one that is not in the set, or one with other arguments.
    pub(crate) fn read(&self, text: &str) -> Result<Act, ActionError> {
        if text.len() > MAX_TEXT_BYTES {
            let text = format!("ValueError: An action has at most {MAX_TEXT_BYTES} bytes.");
            return Err(ActionError(text));
        }
        let mut calls = find_calls(text);
        let (name, arguments) = match calls.len() {
            0 => return Err(ActionError("ValueError: Received an empty action.".to_owned())),
            1 => calls.remove(0),
            _ => {
                let text = "ValueError: Received a multi-action, only single-actions are allowed.";
                return Err(ActionError(text.to_owned()));
            }
        };
        let kind = self.find(&name)?;
        kind.bind(arguments)
    }

    /// The action of a call of a tool.
    ///
    /// # Errors
    ///
    /// As [`ActionSet::read`].
    pub(crate) fn of_call(
        &self,
        name: &str,
        arguments: &Map<String, Json>,
    ) -> Result<Act, ActionError> {
        let kind = self.find(name)?;
        let keyword = arguments
            .iter()
            .map(|(name, value)| (name.clone(), spar_python::from_json(value)))
            .collect();
        kind.bind(Arguments { positional: Vec::new(), keyword })
    }

    fn find(&self, name: &str) -> Result<&'static ActionKind, ActionError> {
        let found = self.kinds.iter().find(|kind| kind.name == name);
        found.copied().ok_or_else(|| {
            let name: String = name.chars().take(100).collect();
            ActionError(format!("NameError: Invalid action type '{name}'."))
        })
    }

    /// The kinds as lines: how each is called, and what it does.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for kind in &self.kinds {
            text += &format!("{} - {}\n", kind.call(), kind.about);
        }
        text
    }

    /// The kinds as tools.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.kinds.iter().map(|kind| kind.tool()).collect()
    }
}

impl ActionKind {
    /// How it is called, such as `scroll(delta_x, delta_y)`.
    pub fn call(&self) -> String {
        let parameters =
            self.signature.parameters.iter().map(|parameter| match parameter.default {
                None => parameter.name.to_owned(),
                Some(default) => {
                    let value = repr(&default.value()).unwrap_or_default();
                    format!("{}={value}", parameter.name)
                }
            });
        format!("{}({})", self.name, parameters.collect::<Vec<_>>().join(", "))
    }

    fn tool(&self) -> ToolSpec {
        let mut properties = Map::new();
        let mut needed = Vec::new();
        for (parameter, of) in self.signature.parameters.iter().zip(self.types) {
            properties.insert(parameter.name.to_owned(), of.schema());
            if parameter.default.is_none() {
                needed.push(parameter.name);
            }
        }
        let schema = json!({
            "type": "object", "properties": properties, "required": needed, "additionalProperties": false,
        });
        ToolSpec::new(self.name, self.about, schema)
    }

    fn bind(&'static self, arguments: Arguments) -> Result<Act, ActionError> {
        let raised = |error: Exception| {
            let class = match error.kind {
                ExceptionKind::Type => "TypeError",
                _ => "ValueError",
            };
            ActionError(format!("{class}: {}", error.text))
        };
        let (most, given) = (self.signature.parameters.len(), arguments.positional.len());
        if given > most {
            let s = if most == 1 { "" } else { "s" };
            let text = format!(
                "{}() takes {most} positional argument{s} but {given} were given",
                self.name
            );
            return Err(ActionError(format!("TypeError: {text}")));
        }
        let values = self.signature.bind(arguments).map_err(raised)?;
        for ((value, parameter), of) in values.iter().zip(self.signature.parameters).zip(self.types)
        {
            if !of.takes(value) {
                let shown: String = repr(value).unwrap_or_default().chars().take(200).collect();
                return Err(ActionError(format!(
                    "ValueError: {}: expected {} for `{}`, got {shown}",
                    self.name,
                    of.about(),
                    parameter.name
                )));
            }
        }
        self.act(&values)
            .ok_or_else(|| ActionError(format!("ValueError: {} cannot be called so", self.name)))
    }

    fn act(&self, values: &[Value]) -> Option<Act> {
        let text = |at: usize| values.get(at)?.as_str().map(str::to_owned);
        let number = |at: usize| number(values.get(at)?);
        let button = |at: usize| Button::of_name(values.get(at)?.as_str()?);
        Some(match self.name {
            "noop" => Act::Noop { wait_ms: number(0)?.clamp(0.0, MAX_WAIT) },
            "send_msg_to_user" => Act::Message(text(0)?),
            "report_infeasible" => Act::Infeasible(text(0)?),
            "scroll" => Act::Scroll { dx: number(0)?, dy: number(1)? },
            "scroll_at" => {
                Act::ScrollAt { x: number(0)?, y: number(1)?, dx: number(2)?, dy: number(3)? }
            }
            "fill" => Act::Fill {
                bid: text(0)?,
                value: text(1)?,
                with_menu: values.get(2).is_some_and(Value::is_true),
            },
            "select_option" => Act::SelectOption { bid: text(0)?, options: texts(values.get(1)?) },
            "click" | "dblclick" => Act::Click {
                bid: text(0)?,
                button: button(1)?,
                modifiers: modifiers(values.get(2)?)?,
                times: if self.name == "click" { 1 } else { 2 },
            },
            "hover" => Act::Hover(text(0)?),
            "press" => Act::Press { bid: text(0)?, keys: text(1)? },
            "focus" => Act::Focus(text(0)?),
            "clear" => Act::Clear(text(0)?),
            "drag_and_drop" => Act::DragAndDrop { from: text(0)?, to: text(1)? },
            "upload_file" | "mouse_upload_file" => Act::Upload,
            "mouse_move" => Act::MouseMove { x: number(0)?, y: number(1)? },
            "mouse_up" => Act::MouseUp { x: number(0)?, y: number(1)?, button: button(2)? },
            "mouse_down" => Act::MouseDown { x: number(0)?, y: number(1)?, button: button(2)? },
            "mouse_click" | "mouse_dblclick" => Act::MouseClick {
                x: number(0)?,
                y: number(1)?,
                button: button(2)?,
                times: if self.name == "mouse_click" { 1 } else { 2 },
            },
            "mouse_drag_and_drop" => {
                Act::MouseDrag { from: (number(0)?, number(1)?), to: (number(2)?, number(3)?) }
            }
            "keyboard_down" => Act::KeyDown(text(0)?),
            "keyboard_up" => Act::KeyUp(text(0)?),
            "keyboard_press" => Act::KeyPress(text(0)?),
            "keyboard_type" => Act::KeyType(text(0)?),
            "keyboard_insert_text" => Act::InsertText(text(0)?),
            "go_back" => Act::GoBack,
            "go_forward" => Act::GoForward,
            "goto" => Act::Goto(text(0)?),
            "tab_close" => Act::TabClose,
            "tab_focus" => Act::TabFocus(number(0)? as i64),
            "new_tab" => Act::NewTab,
            _ => return None,
        })
    }
}

impl Type {
    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Text => value.as_str().is_some(),
            Self::Number => number(value).is_some(),
            Self::Whole => number(value).is_some_and(|number| number.fract() == 0.0),
            Self::Truth => matches!(value, Value::Bool(_)),
            Self::TextOrTexts => value.as_str().is_some() || is_texts(value),
            Self::ButtonName => value.as_str().is_some_and(|name| Button::of_name(name).is_some()),
            Self::ModifierNames => is_texts(value) && modifiers(value).is_some(),
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Number => "a finite number",
            Self::Whole => "a whole number",
            Self::Truth => "True or False",
            Self::TextOrTexts => "a string or a list of strings",
            Self::ButtonName => "one of 'left', 'middle', 'right'",
            Self::ModifierNames => "a list of 'Alt', 'Control', 'ControlOrMeta', 'Meta', 'Shift'",
        }
    }

    fn schema(self) -> Json {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Number => json!({ "type": "number" }),
            Self::Whole => json!({ "type": "integer" }),
            Self::Truth => json!({ "type": "boolean" }),
            Self::TextOrTexts => json!({
                "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
            }),
            Self::ButtonName => json!({ "type": "string", "enum": Button::NAMES }),
            Self::ModifierNames => json!({
                "type": "array",
                "items": { "type": "string", "enum": ["Alt", "Control", "ControlOrMeta", "Meta", "Shift"] },
            }),
        }
    }
}

/// The call of a tool that a text with one action comes to: its name, and its arguments by parameter.
pub fn as_tool_call(text: &str) -> Option<(String, Map<String, Json>)> {
    let mut calls = find_calls(text);
    let (name, given) = calls.pop().filter(|_| calls.is_empty())?;
    let kind = ACTION_KINDS.iter().find(|kind| kind.name == name)?;
    let mut arguments = Map::new();
    for (parameter, value) in kind.signature.parameters.iter().zip(&given.positional) {
        arguments.insert(parameter.name.to_owned(), to_json(value)?);
    }
    for (name, value) in &given.keyword {
        arguments.insert(name.clone(), to_json(value)?);
    }
    Some((name, arguments))
}

fn to_json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Bool(truth) => Json::from(*truth),
        Value::Int(int) => Json::from(int.to_i64()?),
        Value::Float(float) => Json::from(*float),
        Value::Str(text) => Json::from(text.as_str()),
        Value::List(items) | Value::Tuple(items) => {
            items.iter().map(to_json).collect::<Option<_>>()?
        }
        _ => return None,
    })
}

/// A number that is no truth value and neither infinite nor none at all.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Int(int) => int.to_f64(),
        Value::Float(float) => *float,
        _ => return None,
    };
    (number.is_finite() && number.abs() < 1e9).then_some(number)
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::List(items) | Value::Tuple(items) => items,
        _ => &[],
    }
}

fn is_texts(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Tuple(_))
        && items(value).iter().all(|item| item.as_str().is_some())
}

fn texts(value: &Value) -> Vec<String> {
    match value.as_str() {
        Some(one) => vec![one.to_owned()],
        None => items(value).iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

fn modifiers(value: &Value) -> Option<u32> {
    items(value).iter().try_fold(0, |bits, item| {
        let name = item.as_str()?;
        let name = if name == "ControlOrMeta" { "Control" } else { name };
        Some(bits | Modifier::of_key(name)?.bit())
    })
}

/// The calls in a text with literals alone as arguments.
fn find_calls(text: &str) -> Vec<(String, Arguments)> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut calls = Vec::new();
    let mut at = 0;
    let mut tries = 0;
    while at < bytes.len() && tries < MAX_TRIES {
        if bytes[at] == b'#' {
            // A comment, up to the end of its line.
            at = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length);
            continue;
        }
        if !is_word(bytes[at]) {
            at += 1;
            continue;
        }
        let begin = at;
        while at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        let mut open = at;
        while open < bytes.len() && bytes[open].is_ascii_whitespace() {
            open += 1;
        }
        if bytes[begin].is_ascii_digit() || bytes.get(open) != Some(&b'(') {
            continue;
        }
        tries += 1;
        let Some(end) = closing(bytes, open) else { continue };
        if let Some(arguments) = read_arguments(&text[open..end]) {
            calls.push((text[begin..at].to_owned(), arguments));
            at = end;
        }
    }
    calls
}

/// The place behind the bracket that closes the one at `open`, strings passed over.
fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = open;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            quote @ (b'\'' | b'"') => {
                let triple = [quote; 3];
                let is_triple = bytes[at..].starts_with(&triple);
                at += if is_triple { 3 } else { 1 };
                loop {
                    match *bytes.get(at)? {
                        b'\\' => at += 1,
                        byte if byte == quote && !is_triple => break,
                        byte if byte == quote && bytes[at..].starts_with(&triple) => {
                            at += 2;
                            break;
                        }
                        b'\n' if !is_triple => return None,
                        _ => {}
                    }
                    at += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The arguments in a text that begins and ends with its brackets, where all of them are literals.
fn read_arguments(text: &str) -> Option<Arguments> {
    let Ok(Expression::Call(_, given)) = parse(&format!("f{text}")) else { return None };
    let mut arguments = Arguments::default();
    for argument in given {
        match argument {
            Argument::Positional(value) if arguments.keyword.is_empty() => {
                arguments.positional.push(literal(&value)?);
            }
            Argument::Keyword(name, value) => arguments.keyword.push((name, literal(&value)?)),
            _ => return None,
        }
    }
    Some(arguments)
}

fn literal(expression: &Expression) -> Option<Value> {
    fn is_literal(expression: &Expression) -> bool {
        match expression {
            Expression::Constant(_) => true,
            Expression::List(items) | Expression::Tuple(items) => items.iter().all(is_literal),
            Expression::Dict(entries) => entries
                .iter()
                .all(|(key, value)| key.as_ref().is_some_and(is_literal) && is_literal(value)),
            Expression::Unary(UnaryOperator::Negate | UnaryOperator::Plus, inner) => {
                matches!(&**inner, Expression::Constant(Value::Int(_) | Value::Float(_)))
            }
            _ => false,
        }
    }
    is_literal(expression).then(|| evaluate(expression, &mut NoNames).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> ActionSet {
        ActionSet::new(&["bid", "chat", "infeas", "nav", "tab", "coord"]).unwrap()
    }

    #[test]
    fn an_action_is_found_in_whatever_is_written() {
        let read = |text: &str| set().read(text).unwrap();
        let click =
            Act::Click { bid: "a51".to_owned(), button: Button::Left, modifiers: 0, times: 1 };
        assert_eq!(read("click('a51')"), click);
        assert_eq!(read("I think (so).\n```\nclick( \"a51\" , )\n```\n# not click('2')"), click);
        let fill = |value: &str| Act::Fill {
            bid: "7".to_owned(),
            value: value.to_owned(),
            with_menu: false,
        };
        assert_eq!(read(r#"fill("7", 'it\'s "(x\n")')"#), fill("it's \"(x\n\")"));
        assert_eq!(read("fill(bid='7', value='''a\nb''')"), fill("a\nb"));
        assert_eq!(read("scroll(-50.2, +10)"), Act::Scroll { dx: -50.2, dy: 10.0 });
        let options = vec!["red".to_owned(), "é".to_owned()];
        assert_eq!(
            read("select_option('c48', ['red', 'é'])"),
            Act::SelectOption { bid: "c48".to_owned(), options }
        );
        assert_eq!(read("noop()"), Act::Noop { wait_ms: 1000.0 });
        let with = read("click('1', button='middle', modifiers=['Shift', 'ControlOrMeta'])");
        assert_eq!(
            with,
            Act::Click { bid: "1".to_owned(), button: Button::Middle, modifiers: 10, times: 1 }
        );
    }

    #[test]
    fn what_is_no_action_is_told_with_what_would_be() {
        let told = |text: &str| set().read(text).unwrap_err().to_string();
        let empty = "ValueError: Received an empty action.";
        for text in
            ["", "do nothing at all", "click", "click(a51)", "click('a51'", "click(f('x'))", "(((("]
        {
            assert_eq!(
                told(text),
                if text == "click(f('x'))" { "NameError: Invalid action type 'f'." } else { empty }
            );
        }
        assert_eq!(
            told("click('1') click('2')"),
            "ValueError: Received a multi-action, only single-actions are allowed."
        );
        assert_eq!(told("jump('1')"), "NameError: Invalid action type 'jump'.");
        assert_eq!(
            told("click()"),
            "TypeError: click() missing 1 required positional argument: 'bid'"
        );
        assert_eq!(told("click(1)"), "ValueError: click: expected a string for `bid`, got 1");
        assert_eq!(
            told("goto('x', 'y')"),
            "TypeError: goto() takes 1 positional argument but 2 were given"
        );
        assert!(told("scroll(1e999, 0)").contains("finite number"), "{}", told("scroll(1e999, 0)"));
        assert!(told(&format!("click('{}')", "x".repeat(1 << 20))).contains("at most"));
        assert!(told(&"(".repeat(60_000)).starts_with("ValueError"));
    }

    #[test]
    fn calls_of_tools_and_texts_come_to_the_same() {
        let arguments = json!({ "bid": "7", "value": "x" });
        let of_call = set().of_call("fill", arguments.as_object().unwrap()).unwrap();
        assert_eq!(of_call, set().read("fill('7', 'x')").unwrap());
        for tool in set().tools() {
            tool.validate().unwrap();
        }
        assert!(set().of_call("fill", &Map::new()).is_err());
    }

    #[test]
    fn the_sets_are_those_of_browsergym() {
        let names = |set: &str| -> Vec<&str> {
            let set = ActionSet::new(&[set]).unwrap();
            set.kinds().iter().map(|kind| kind.name).collect()
        };
        assert_eq!(names("miniwob_liu18"), ["noop", "fill", "click"]);
        assert_eq!(names("nav"), ["noop", "go_back", "go_forward", "goto"]);
        let wanted = [
            ("bid", 11),
            ("coord", 13),
            ("miniwob_all", 10),
            ("miniwob_shi17", 6),
            ("miniwob_humphreys22", 8),
            ("webarena", 14),
            ("visualwebarena", 15),
            ("workarena", 11),
            ("workarena++", 18),
            ("weblinx", 9),
            ("assistantbench", 8),
            ("chat", 1),
            ("infeas", 1),
            ("tab", 3),
        ];
        for (set, count) in wanted {
            // Beside `noop`.
            assert_eq!(names(set).len() - 1, count, "{set}");
        }
        let error = ActionSet::new(&["bids"]).unwrap_err();
        assert!(error.contains("`bids`") && error.contains("assistantbench, bid, chat"), "{error}");
    }
}
