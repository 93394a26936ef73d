//! The keys of a keyboard with the layout of the United States.

/// What a key does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// `KeyboardEvent.code`
    pub(crate) code: String,
    /// `KeyboardEvent.key`
    pub(crate) key: String,
    /// `KeyboardEvent.keyCode`
    pub(crate) key_code: u32,
    /// What it writes; may be empty.
    pub(crate) text: String,
    /// `KeyboardEvent.location`
    pub(crate) location: u32,
}

/// Keys that hold others down, with their bits in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modifier {
    Alt,
    Control,
    Meta,
    Shift,
}

impl Modifier {
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        match key {
            "Alt" => Some(Self::Alt),
            "Control" => Some(Self::Control),
            "Meta" => Some(Self::Meta),
            "Shift" => Some(Self::Shift),
            _ => None,
        }
    }

    pub(crate) fn bit(self) -> u32 {
        match self {
            Self::Alt => 1,
            Self::Control => 2,
            Self::Meta => 4,
            Self::Shift => 8,
        }
    }
}

/// Code, key without and with Shift, key code.
const WRITING: &[(&str, &str, &str, u32)] = &[
    ("Backquote", "`", "~", 192),
    ("Digit1", "1", "!", 49),
    ("Digit2", "2", "@", 50),
    ("Digit3", "3", "#", 51),
    ("Digit4", "4", "$", 52),
    ("Digit5", "5", "%", 53),
    ("Digit6", "6", "^", 54),
    ("Digit7", "7", "&", 55),
    ("Digit8", "8", "*", 56),
    ("Digit9", "9", "(", 57),
    ("Digit0", "0", ")", 48),
    ("Minus", "-", "_", 189),
    ("Equal", "=", "+", 187),
    ("Backslash", "\\", "|", 220),
    ("BracketLeft", "[", "{", 219),
    ("BracketRight", "]", "}", 221),
    ("Semicolon", ";", ":", 186),
    ("Quote", "'", "\"", 222),
    ("Comma", ",", "<", 188),
    ("Period", ".", ">", 190),
    ("Slash", "/", "?", 191),
    ("Space", " ", " ", 32),
];

/// Code, key, key code, location. What is pressed by the name of a key is the first one with it.
const OTHERS: &[(&str, &str, u32, u32)] = &[
    ("Escape", "Escape", 27, 0),
    ("Backspace", "Backspace", 8, 0),
    ("Tab", "Tab", 9, 0),
    ("Enter", "Enter", 13, 0),
    ("CapsLock", "CapsLock", 20, 0),
    ("ShiftLeft", "Shift", 160, 1),
    ("ShiftRight", "Shift", 161, 2),
    ("ControlLeft", "Control", 162, 1),
    ("ControlRight", "Control", 163, 2),
    ("AltLeft", "Alt", 164, 1),
    ("AltRight", "Alt", 165, 2),
    ("MetaLeft", "Meta", 91, 1),
    ("MetaRight", "Meta", 92, 2),
    ("AltGraph", "AltGraph", 225, 0),
    ("ContextMenu", "ContextMenu", 93, 0),
    ("PrintScreen", "PrintScreen", 44, 0),
    ("ScrollLock", "ScrollLock", 145, 0),
    ("Pause", "Pause", 19, 0),
    ("PageUp", "PageUp", 33, 0),
    ("PageDown", "PageDown", 34, 0),
    ("Insert", "Insert", 45, 0),
    ("Delete", "Delete", 46, 0),
    ("Home", "Home", 36, 0),
    ("End", "End", 35, 0),
    ("ArrowLeft", "ArrowLeft", 37, 0),
    ("ArrowUp", "ArrowUp", 38, 0),
    ("ArrowRight", "ArrowRight", 39, 0),
    ("ArrowDown", "ArrowDown", 40, 0),
    ("NumLock", "NumLock", 144, 0),
    ("NumpadDivide", "/", 111, 3),
    ("NumpadMultiply", "*", 106, 3),
    ("NumpadSubtract", "-", 109, 3),
    ("NumpadAdd", "+", 107, 3),
    ("NumpadEnter", "Enter", 13, 3),
];

/// The key of a name: a code (`KeyA`, `Digit1`), a key (`Enter`, `a`), or a character; with Shift held down it may be
/// another one.
pub(crate) fn find_key(name: &str, with_shift: bool) -> Option<Key> {
    let writes = |code: &str, key: &str, key_code: u32| Key {
        code: code.to_owned(),
        key: key.to_owned(),
        key_code,
        text: key.to_owned(),
        location: 0,
    };
    if name == "\n" || name == "\r" {
        return find_key("Enter", with_shift);
    }
    let letter = match name.strip_prefix("Key") {
        Some(letter) if letter.len() == 1 && letter.as_bytes()[0].is_ascii_uppercase() => {
            Some(letter.to_ascii_lowercase())
        }
        _ if name.len() == 1 && name.as_bytes()[0].is_ascii_alphabetic() => Some(name.to_owned()),
        _ => None,
    };
    if let Some(letter) = letter {
        let upper = letter.to_ascii_uppercase();
        let key = if with_shift { &upper } else { &letter };
        return Some(writes(&format!("Key{upper}"), key, u32::from(upper.as_bytes()[0])));
    }
    for (code, key, shifted, key_code) in WRITING {
        if name == *code || name == *key {
            return Some(writes(code, if with_shift { shifted } else { key }, *key_code));
        }
        if name == *shifted {
            return Some(writes(code, shifted, *key_code));
        }
    }
    if let Some(number) = name.strip_prefix('F').and_then(|number| number.parse::<u32>().ok())
        && (1..=12).contains(&number)
        && name == format!("F{number}")
    {
        return Some(Key { text: String::new(), ..writes(name, name, 111 + number) });
    }
    let found = OTHERS.iter().find(|(code, ..)| name == *code);
    let found = found.or_else(|| OTHERS.iter().find(|(_, key, ..)| name == *key));
    let (code, key, key_code, location) = found?;
    let text = match *key {
        "Enter" => "\r",
        one if one.len() == 1 => one,
        _ => "",
    };
    // Modifiers are told by their common key code when they are pressed by their own name.
    let key_code = match *key {
        "Shift" => 16,
        "Control" => 17,
        "Alt" => 18,
        _ => *key_code,
    };
    Some(Key {
        code: (*code).to_owned(),
        key: (*key).to_owned(),
        key_code,
        text: text.to_owned(),
        location: *location,
    })
}

/// The names in a combination such as `Control+Shift+a`; `+` itself can be the last of them.
pub(crate) fn split_combination(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut name = String::new();
    for character in text.chars() {
        if character == '+' && !name.is_empty() {
            names.push(std::mem::take(&mut name));
        } else {
            name.push(character);
        }
    }
    names.push(name);
    for name in &mut names {
        if name == "ControlOrMeta" {
            *name = "Control".to_owned();
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_code_name_and_character() {
        let key = |name| find_key(name, false).unwrap();
        assert_eq!(key("KeyA"), key("a"));
        let upper = key("A");
        assert_eq!((&*upper.code, &*upper.key, upper.key_code), ("KeyA", "A", 65));
        assert_eq!(find_key("a", true).unwrap().key, "A");
        assert_eq!((&*key("#").code, &*key("#").text), ("Digit3", "#"));
        assert_eq!(find_key("Digit3", true).unwrap().text, "#");
        assert_eq!((key("Enter").text, key("\n").code), ("\r".to_owned(), "Enter".to_owned()));
        assert_eq!((key("F12").key_code, key("F1").text), (123, String::new()));
        assert_eq!((&*key("Control").code, key("ControlRight").location), ("ControlLeft", 2));
        for unknown in ["", "é", "F13", "F01", "Keya", "enter", "ab"] {
            assert_eq!(find_key(unknown, false), None, "{unknown}");
        }
    }

    #[test]
    fn combinations_fall_into_their_keys() {
        assert_eq!(split_combination("ControlOrMeta+a"), ["Control", "a"]);
        assert_eq!(split_combination("Shift++"), ["Shift", "+"]);
        assert_eq!(split_combination("+"), ["+"]);
        assert_eq!(split_combination("Enter"), ["Enter"]);
    }
}
