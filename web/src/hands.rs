//! Mouse and keyboard.

use serde_json::{Value, json};

use crate::WebError;
use crate::keyboard::{Modifier, find_key, split_combination};
use crate::tab::Tab;

/// A button of the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Button {
    Left,
    Middle,
    Right,
}

impl Button {
    pub(crate) const NAMES: [&str; 3] = ["left", "middle", "right"];

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        match name {
            "left" => Some(Self::Left),
            "middle" => Some(Self::Middle),
            "right" => Some(Self::Right),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Middle => "middle",
            Self::Right => "right",
        }
    }

    fn bit(self) -> u32 {
        match self {
            Self::Left => 1,
            Self::Right => 2,
            Self::Middle => 4,
        }
    }
}

/// What is held down, and where the mouse is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hands {
    x: f64,
    y: f64,
    buttons: u32,
    /// The button that was pressed last and is still held.
    last: Option<Button>,
    /// Bits of the modifiers that are held down.
    modifiers: u32,
    /// Codes of the keys that are held down.
    pressed: Vec<String>,
}

/// A key that does not exist; the text is for the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownKey(pub(crate) String);

impl Hands {
    /// Moves the mouse, in pixels of the page.
    pub(crate) async fn move_to(&mut self, tab: &Tab, x: f64, y: f64) -> Result<(), WebError> {
        self.send_mouse(tab, (x, y), &[("mouseMoved", None, 0)]).await
    }

    /// Presses a button where the mouse is.
    pub(crate) async fn press_button(&mut self, tab: &Tab, button: Button) -> Result<(), WebError> {
        self.send_mouse(tab, (self.x, self.y), &[("mousePressed", Some(button), 1)]).await
    }

    /// Lets go of a button where the mouse is.
    pub(crate) async fn release_button(
        &mut self,
        tab: &Tab,
        button: Button,
    ) -> Result<(), WebError> {
        self.send_mouse(tab, (self.x, self.y), &[("mouseReleased", Some(button), 1)]).await
    }

    /// Moves the mouse and clicks, once or several times.
    pub(crate) async fn click(
        &mut self,
        tab: &Tab,
        (x, y): (f64, f64),
        button: Button,
        times: u32,
    ) -> Result<(), WebError> {
        let mut events = vec![("mouseMoved", None, 0)];
        for count in 1..=times {
            events.push(("mousePressed", Some(button), count));
            events.push(("mouseReleased", Some(button), count));
        }
        self.send_mouse(tab, (x, y), &events).await
    }

    /// Turns the wheel where the mouse is.
    pub(crate) async fn wheel(&mut self, tab: &Tab, dx: f64, dy: f64) -> Result<(), WebError> {
        let params = json!({
            "type": "mouseWheel", "x": self.x, "y": self.y, "deltaX": dx, "deltaY": dy,
            "modifiers": self.modifiers,
        });
        tab.call("Input.dispatchMouseEvent", params).await.map(drop)
    }

    /// Sends events of the mouse at one place behind each other, and waits for the last.
    async fn send_mouse(
        &mut self,
        tab: &Tab,
        (x, y): (f64, f64),
        events: &[(&'static str, Option<Button>, u32)],
    ) -> Result<(), WebError> {
        (self.x, self.y) = (x, y);
        let mut replies = Vec::with_capacity(events.len());
        for (kind, button, count) in events {
            match (*kind, button) {
                ("mousePressed", Some(button)) => {
                    self.buttons |= button.bit();
                    self.last = Some(*button);
                }
                ("mouseReleased", Some(button)) => {
                    self.buttons &= !button.bit();
                    self.last = None;
                }
                _ => {}
            }
            let held = self.last.map_or("none", Button::name);
            let params = json!({
                "type": kind, "x": x, "y": y, "modifiers": self.modifiers, "buttons": self.buttons,
                "button": button.map_or(held, Button::name), "clickCount": count,
                "force": if self.buttons == 0 { 0.0 } else { 0.5 },
            });
            replies.push(tab.send("Input.dispatchMouseEvent", params));
        }
        for reply in replies {
            reply.within(tab.patience()).await?;
        }
        self.drop_what_is_dragged(tab, events).await
    }

    /// Carries on what a page drags by the browser's own means, which the mouse alone does not.
    async fn drop_what_is_dragged(
        &mut self,
        tab: &Tab,
        events: &[(&'static str, Option<Button>, u32)],
    ) -> Result<(), WebError> {
        let Some(data) = tab.take_drag() else { return Ok(()) };
        let (x, y) = (self.x, self.y);
        let is_over = events.iter().any(|(kind, ..)| *kind == "mouseReleased");
        let kinds: &[&str] =
            if is_over { &["dragEnter", "dragOver", "drop"] } else { &["dragEnter", "dragOver"] };
        for kind in kinds {
            let params =
                json!({ "type": kind, "x": x, "y": y, "data": data, "modifiers": self.modifiers });
            tab.call("Input.dispatchDragEvent", params).await?;
        }
        Ok(())
    }

    /// Presses a combination of keys and lets go of them.
    pub(crate) async fn press_keys(
        &mut self,
        tab: &Tab,
        combination: &str,
    ) -> Result<Result<(), UnknownKey>, WebError> {
        let names = split_combination(combination);
        // Nothing is pressed where one of them does not exist.
        for name in &names {
            if find_key(name, false).is_none() {
                return Ok(Err(UnknownKey(name.clone())));
            }
        }
        let mut replies = Vec::new();
        for name in &names {
            replies.push(self.key_event(tab, name, true));
        }
        for name in names.iter().rev() {
            replies.push(self.key_event(tab, name, false));
        }
        for reply in replies.into_iter().flatten() {
            reply.within(tab.patience()).await?;
        }
        Ok(Ok(()))
    }

    /// Presses a key, or lets go of it.
    pub(crate) async fn hold_key(
        &mut self,
        tab: &Tab,
        name: &str,
        is_down: bool,
    ) -> Result<Result<(), UnknownKey>, WebError> {
        let name = if name == "ControlOrMeta" { "Control" } else { name };
        match self.key_event(tab, name, is_down) {
            Some(reply) => reply.within(tab.patience()).await.map(|_| Ok(())),
            None => Ok(Err(UnknownKey(name.to_owned()))),
        }
    }

    /// Types a text, key by key; what no key writes is inserted.
    pub(crate) async fn type_text(&mut self, tab: &Tab, text: &str) -> Result<(), WebError> {
        for character in text.chars() {
            let name = character.to_string();
            if find_key(&name, false).is_some() {
                let replies = [self.key_event(tab, &name, true), self.key_event(tab, &name, false)];
                for reply in replies.into_iter().flatten() {
                    reply.within(tab.patience()).await?;
                }
            } else {
                insert_text(tab, &name).await?;
            }
        }
        Ok(())
    }

    fn key_event(
        &mut self,
        tab: &Tab,
        name: &str,
        is_down: bool,
    ) -> Option<crate::connection::Reply> {
        let with_shift = self.modifiers & Modifier::Shift.bit() != 0;
        let mut key = find_key(name, with_shift)?;
        let is_repeated = self.pressed.contains(&key.code);
        let bit = Modifier::of_key(&key.key).map_or(0, Modifier::bit);
        match is_down {
            true => self.modifiers |= bit,
            false => self.modifiers &= !bit,
        }
        match is_down {
            true if !is_repeated => self.pressed.push(key.code.clone()),
            true => {}
            false => self.pressed.retain(|code| *code != key.code),
        }
        // With anything but Shift held down a key writes nothing.
        if self.modifiers & !Modifier::Shift.bit() != 0 {
            key.text.clear();
        }
        let mut params = json!({
            "modifiers": self.modifiers, "windowsVirtualKeyCode": key.key_code, "code": key.code, "key": key.key,
            "location": key.location,
        });
        if is_down {
            params["type"] =
                Value::from(if key.text.is_empty() { "rawKeyDown" } else { "keyDown" });
            params["text"] = Value::from(key.text.clone());
            params["unmodifiedText"] = Value::from(key.text);
            params["autoRepeat"] = Value::from(is_repeated);
            params["isKeypad"] = Value::from(key.location == 3);
        } else {
            params["type"] = Value::from("keyUp");
        }
        Some(tab.send("Input.dispatchKeyEvent", params))
    }

    /// Holds modifiers down for what follows; gives what was held before.
    pub(crate) fn hold(&mut self, modifiers: u32) -> u32 {
        let held = self.modifiers;
        self.modifiers |= modifiers;
        held
    }

    /// Has exactly these modifiers be held down.
    pub(crate) fn set_held(&mut self, modifiers: u32) {
        self.modifiers = modifiers;
    }
}

/// Inserts a text where the page is written in.
pub(crate) async fn insert_text(tab: &Tab, text: &str) -> Result<(), WebError> {
    tab.call("Input.insertText", json!({ "text": text })).await.map(drop)
}
