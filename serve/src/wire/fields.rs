//! Fields that may have one of several forms.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use spar_core::Seed;

/// An object whose keys are token ids, or null; an error names the key.
pub(super) fn by_token<'de, D: Deserializer<'de>>(
    reader: D,
) -> Result<Option<BTreeMap<u32, f32>>, D::Error> {
    let Some(named) = Option::<BTreeMap<String, f32>>::deserialize(reader)? else {
        return Ok(None);
    };
    let token = |(name, value): (String, f32)| match name.parse() {
        Ok(token) => Ok((token, value)),
        Err(_) => Err(Error::custom(format!("the key `{name}` is no token id"))),
    };
    named.into_iter().map(token).collect::<Result<_, _>>().map(Some)
}

/// A number, or all of a seed as its 64 hexadecimal digits, or null.
pub(super) fn seed<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Seed>, D::Error> {
    struct Seeds;
    impl<'de> Visitor<'de> for Seeds {
        type Value = Option<Seed>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number of 64 bits, or 64 hexadecimal digits")
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
            Ok(Some(Seed::from_u64(number as u64)))
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
            let number = i64::try_from(number).map_err(|_| E::custom("a seed beyond 64 bits"))?;
            self.visit_i64(number)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            Seed::try_from(text.to_owned()).map(Some).map_err(E::custom)
        }
    }
    reader.deserialize_any(Seeds)
}

/// One, or a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// As a list.
    pub(crate) fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

impl<'de> Deserialize<'de> for OneOrMany<String> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Strings;
        impl<'de> Visitor<'de> for Strings {
            type Value = OneOrMany<String>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(OneOrMany::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut many = Vec::new();
                while let Some(text) = list.next_element()? {
                    many.push(text);
                }
                Ok(OneOrMany::Many(many))
            }
        }
        deserializer.deserialize_any(Strings)
    }
}

/// A prompt of `/v1/completions`: text, texts, tokens, or lists of tokens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PromptForm {
    Texts(Vec<String>),
    Tokens(Vec<Vec<u32>>),
}

impl<'de> Deserialize<'de> for PromptForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Prompts;
        impl<'de> Visitor<'de> for Prompts {
            type Value = PromptForm;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a list of strings, a list of tokens, or a list of such")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(PromptForm::Texts(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let (mut texts, mut ids, mut lists) = (Vec::new(), Vec::new(), Vec::new());
                while let Some(part) = list.next_element::<Part>()? {
                    match part {
                        Part::Text(text) => texts.push(text),
                        Part::Token(token) => ids.push(token),
                        Part::Tokens(tokens) => lists.push(tokens),
                    }
                }
                match (texts.len(), ids.len(), lists.len()) {
                    (0, 0, 0) => Err(Error::custom("an empty list of prompts")),
                    (_, 0, 0) => Ok(PromptForm::Texts(texts)),
                    (0, _, 0) => Ok(PromptForm::Tokens(vec![ids])),
                    (0, 0, _) => Ok(PromptForm::Tokens(lists)),
                    _ => Err(Error::custom("texts, tokens and lists of tokens in one list")),
                }
            }
        }
        deserializer.deserialize_any(Prompts)
    }
}

enum Part {
    Text(String),
    Token(u32),
    Tokens(Vec<u32>),
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Part;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a token, or a list of tokens")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Part, E> {
                Ok(Part::Text(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, token: u64) -> Result<Part, E> {
                let token = u32::try_from(token).map_err(|_| E::custom("a token beyond all"))?;
                Ok(Part::Token(token))
            }

            fn visit_i64<E: Error>(self, token: i64) -> Result<Part, E> {
                Err(E::custom(format!("token {token}, but tokens are not negative")))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Part, A::Error> {
                let mut tokens = Vec::new();
                while let Some(token) = list.next_element()? {
                    tokens.push(token);
                }
                Ok(Part::Tokens(tokens))
            }
        }
        deserializer.deserialize_any(Parts)
    }
}

/// A name alone, or an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NameOr<T> {
    Name(String),
    Object(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NameOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = NameOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(NameOr::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let object = T::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(NameOr::Object(object))
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// A text alone, or a list of parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Content(pub(crate) String);

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct TextPart {
            r#type: String,
            text: Option<String>,
        }
        struct Contents;
        impl<'de> Visitor<'de> for Contents {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of parts")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
                let mut whole = String::new();
                while let Some(part) = list.next_element::<TextPart>()? {
                    match (&*part.r#type, part.text) {
                        ("text", Some(text)) => whole += &text,
                        ("text", None) => return Err(Error::missing_field("text")),
                        (other, _) => {
                            let detail = format!("a part of type `{other}`; only text is read");
                            return Err(Error::custom(detail));
                        }
                    }
                }
                Ok(Content(whole))
            }
        }
        deserializer.deserialize_any(Contents)
    }
}
