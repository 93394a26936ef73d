use std::sync::Arc;

use proptest::prelude::*;
use spar_core::{Message, Role};

use super::*;
use crate::GrammarCompiler;

const NOUNS: [&str; 12] = [
    "apple", "desk", "drawer", "mug", "plate", "fridge", "lamp", "tomato", "shelf", "sofa",
    "pencil", "bowl",
];

/// Games that tell their own story in shared words.
fn games() -> Vec<Vec<String>> {
    (0..30)
        .map(|game| {
            let noun = |shift: usize| NOUNS[(game * 5 + shift) % NOUNS.len()];
            let mut messages = vec![format!(
                "You are in the middle of a room. Looking quickly around you, you see a {} 1, a \
                 {} 2, and a {} 12.\n\nYour task is to: put some {} on {}.",
                noun(0),
                noun(1),
                noun(2),
                noun(3),
                noun(0)
            )];
            for turn in 0..4 {
                let (place, thing) = (noun(turn), noun(turn + 3));
                messages.push(format!("go to {place} {turn}"));
                messages.push(format!(
                    "You arrive at {place} {turn}. On the {place} {turn}, you see a {thing} 1."
                ));
            }
            messages
        })
        .collect()
}

fn train(games: &[Vec<String>], config: &TokenizerConfig) -> Tokenizer {
    Tokenizer::train(games.iter().map(|game| game.iter().map(String::as_str)), config).unwrap()
}

fn tokenizer() -> Tokenizer {
    train(&games(), &TokenizerConfig::default())
}

fn with_spaces_apart() -> Tokenizer {
    train(&games(), &TokenizerConfig { spaces: Spaces::Apart, ..TokenizerConfig::default() })
}

/// One without a template of its own.
pub(super) fn trained() -> Tokenizer {
    tokenizer()
}

/// The vocabulary made here with the marks and rules of another family, and this chat template.
pub(super) fn with_template(template: &str) -> Tokenizer {
    let mut file = tokenizer().file;
    file["normalizer"] = Value::Null;
    for (index, mark) in ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].into_iter().enumerate() {
        file["added_tokens"][index]["content"] = mark.into();
    }
    file["decoder"] = file["decoder"]["decoders"][0].clone();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE), file.to_string()).unwrap();
    let config = serde_json::json!({ "eos_token": "<|im_end|>", "chat_template": template });
    std::fs::write(folder.path().join(CONFIG_FILE), config.to_string()).unwrap();
    Tokenizer::load(folder.path()).unwrap()
}

fn texts(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    let texts = |id: &u32| String::from_utf8(tokenizer.texts[*id as usize].to_vec()).unwrap();
    tokenizer.encode(text).iter().map(texts).collect()
}

#[test]
fn words_and_phrases_are_single_tokens() {
    let tokenizer = tokenizer();
    assert_eq!(
        texts(&tokenizer, "You arrive at desk 12. On the desk 12, you see a mug 1."),
        [
            " You arrive at",
            " desk",
            " 12",
            ". On the",
            " desk",
            " 12",
            ", you see a",
            " mug",
            " 1",
            "."
        ]
    );
    assert_eq!(texts(&tokenizer, "apple apple"), [" apple", " apple"]);
    // A phrase ends where a word does.
    assert_eq!(texts(&tokenizer, "You arrive attentively")[0], " You");
}

#[test]
fn words_apart_from_spaces_are_the_same_wherever_they_stand() {
    let tokenizer = with_spaces_apart();
    assert_eq!(texts(&tokenizer, "desk 12")[..2], ["desk", " "]);
    let name = tokenizer.encode("Zorvane");
    assert!(name.len() > 1, "no game has it, so that it is put together from parts");
    for (before, behind) in [("\"", "\""), ("go to ", " now"), ("(", ")")] {
        let ids = tokenizer.encode(&format!("{before}Zorvane{behind}"));
        assert!(ids.windows(name.len()).any(|window| window == name), "{before}");
    }
    let folder = tempfile::tempdir().unwrap();
    tokenizer.save(folder.path()).unwrap();
    let loaded = Tokenizer::load(folder.path()).unwrap();
    assert_eq!(loaded.lexicon.as_ref().map(|lexicon| lexicon.spaces), Some(Spaces::Apart));
    let text = &games()[0][0];
    assert_eq!(loaded.encode(text), tokenizer.encode(text));
    assert!(tokenizer.phrases().count() > 0);
}

#[test]
fn no_token_is_longer_than_grammars_take() {
    // Words that differ, so that phrases of phrases go on as long as they may.
    let template: String = (b'a'..=b'z')
        .flat_map(|a| (b'a'..=b'z').map(move |b| [a, b]))
        .fold("x".repeat(3 * LONGEST_TOKEN), |text, [a, b]| {
            format!("{text} {0}{1}{0}{1}", char::from(a), char::from(b))
        });
    let games: Vec<Vec<String>> = (0..30).map(|_| vec![template.clone()]).collect();
    let tokenizer = Arc::new(train(&games, &TokenizerConfig::default()));
    let longest =
        (0..tokenizer.vocab_size() as u32).map(|id| tokenizer.token_bytes(id).len()).max();
    let longest = longest.unwrap();
    assert!((LONGEST_TOKEN / 2..=LONGEST_TOKEN).contains(&longest), "{longest}");
    assert_eq!(tokenizer.decode(&tokenizer.encode(&template)), template);
    GrammarCompiler::new(&tokenizer, tokenizer.vocab_size()).unwrap();
}

#[test]
fn phrases_consist_of_words_that_games_share() {
    let tokenizer = tokenizer();
    let phrases: Vec<&str> = tokenizer.phrases().collect();
    assert!(!phrases.is_empty() && phrases.len() <= 32, "{phrases:?}");
    for phrase in phrases {
        assert!(NOUNS.iter().all(|noun| !phrase.contains(noun)), "{phrase}");
        assert!(!phrase.chars().any(|c| c.is_ascii_digit()), "{phrase}");
    }
    let none = TokenizerConfig { max_phrases: 0, ..TokenizerConfig::default() };
    assert_eq!(train(&games(), &none).phrases().count(), 0);
    assert_eq!(train(&games()[..9], &TokenizerConfig::default()).phrases().count(), 0);
}

#[test]
fn equal_games_give_equal_tokenizers_of_bounded_size() {
    for vocab_size in [261, 262, 300, 768] {
        let config = TokenizerConfig { vocab_size, ..TokenizerConfig::default() };
        let first = train(&games(), &config);
        assert_eq!(first.file.to_string(), train(&games(), &config).file.to_string());
        assert!(first.vocab_size() <= vocab_size);
    }
    let config = TokenizerConfig { vocab_size: 260, ..TokenizerConfig::default() };
    let error = Tokenizer::train([["a"]], &config).unwrap_err();
    assert!(matches!(error, TokenizerError::VocabularyTooSmall { found: 260, least: 261 }));
}

#[test]
fn no_text_at_all_is_enough_to_train() {
    let tokenizer = train(&[], &TokenizerConfig::default());
    assert_eq!(tokenizer.vocab_size(), 261);
    assert_eq!(tokenizer.decode(&tokenizer.encode("naïve 🙂")), "naïve 🙂");
}

#[test]
fn messages_stand_between_marks() {
    let tokenizer = tokenizer();
    let id = |mark: &str| tokenizer.inner.token_to_id(mark).unwrap();
    let look = tokenizer.encode("look");
    let encode = |role| tokenizer.encode_message(None, &Message::new(role, "look"));
    assert_eq!(encode(Role::System), [&[id("<|system|>")], &look[..]].concat());
    let user = [&[id("<|user|>")], &look[..], &[id("<|assistant|>")]].concat();
    assert_eq!(encode(Role::User), user);
    assert_eq!(encode(Role::Assistant), [&look[..], &[id("<|end|>")]].concat());
    assert_eq!(tokenizer.choice_ids("look"), encode(Role::Assistant));
    assert_eq!(tokenizer.end_of_turn(), id("<|end|>"));
    assert_eq!(tokenizer.decode(&encode(Role::User)), "look");
    assert_eq!(tokenizer.encode_message(None, &Message::new(Role::Assistant, "")), [id("<|end|>")]);
}

#[test]
fn content_never_becomes_a_mark() {
    let tokenizer = tokenizer();
    let first_mark = (tokenizer.vocab_size() - file::MARKS.len()) as u32;
    for mark in file::MARKS {
        for text in [mark.to_owned(), format!("a{mark} b"), format!(" {mark}{mark}\n{mark}")] {
            let ids = tokenizer.encode(&text);
            assert!(ids.iter().all(|id| *id < first_mark), "{text}");
            assert_eq!(tokenizer.decode(&ids), text);
        }
    }
}

#[test]
fn a_saved_tokenizer_opens_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let saved = tokenizer();
    saved.save(folder.path()).unwrap();
    let loaded = Tokenizer::load(folder.path()).unwrap();
    assert!(loaded.lexicon.is_some());
    assert_eq!(loaded.file, saved.file);
    let text = &games()[0][0];
    assert_eq!(loaded.encode(text), saved.encode(text));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn files_that_are_no_tokenizers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Tokenizer::load(folder.path()), Err(TokenizerError::Io { .. })));
    let mut without_marks = tokenizer().file;
    without_marks["added_tokens"] = serde_json::json!([]);
    let unigram = serde_json::json!({ "version": "1.0", "model": {
        "type": "Unigram", "unk_id": 0, "vocab": [["a", 0.0]], "byte_fallback": false } });
    for file in ["", "{}", "[1", &unigram.to_string()] {
        std::fs::write(folder.path().join(FILE), file).unwrap();
        let error = Tokenizer::load(folder.path()).unwrap_err();
        assert!(matches!(error, TokenizerError::Invalid { .. }), "{file}: {error}");
    }
    std::fs::write(folder.path().join(FILE), without_marks.to_string()).unwrap();
    assert!(matches!(Tokenizer::load(folder.path()), Err(TokenizerError::NoMarks { .. })));
}

#[test]
fn a_chat_ml_tokenizer_can_be_used() {
    // The vocabulary made here, with the marks and rules of another family.
    let mut file = tokenizer().file;
    file["normalizer"] = Value::Null;
    for (index, mark) in ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].into_iter().enumerate() {
        file["added_tokens"][index]["content"] = mark.into();
    }
    file["decoder"] = file["decoder"]["decoders"][0].clone();
    let tokenizer = Tokenizer::from_value(file, Path::new("t"), Beside::Nothing).unwrap();
    assert!(tokenizer.lexicon.is_none());
    let start = tokenizer.inner.token_to_id("<|im_start|>").unwrap();
    let ids = tokenizer.encode_message(None, &Message::new(Role::User, "a <|im_end|>"));
    assert_eq!(ids.iter().filter(|id| **id == start).count(), 2);
    assert_eq!(ids.iter().filter(|id| **id == tokenizer.end_of_turn()).count(), 1);
    assert_eq!(tokenizer.decode(&ids), "user\na <|im_end|>\nassistant\n");
    let hostile = " \t".repeat(100_000) + "x";
    assert_eq!(tokenizer.decode(&tokenizer.encode(&hostile)), hostile);
}

/// Text of words, marks, phrases, spaces and arbitrary characters.
fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => any::<String>(),
        3 => "[a-z 0-9.,\\n\\r\\t:]{0,12}",
        1 => "\\PC{0,8}",
        1 => "[\u{85}\u{a0}\u{2028}\u{301}\u{661}\u{b2}\u{200b} a]{0,8}",
        1 => proptest::sample::select(file::MARKS.to_vec()).prop_map(str::to_owned),
        2 => proptest::sample::select(vec![
            "You arrive at", " You arrive at ", ". On the", ", you see a", " apple", "Apple 12",
        ]).prop_map(str::to_owned),
    ];
    proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_text_comes_back(text in any_text()) {
        thread_local!(static TOKENIZERS: [Tokenizer; 2] = [tokenizer(), with_spaces_apart()]);
        TOKENIZERS.with(|tokenizers| tokenizers.iter().try_for_each(|tokenizer| {
            let ids = tokenizer.encode(&text);
            prop_assert_eq!(tokenizer.decode(&ids), &*text);
            // The crate, and so Python, reads the file the same way.
            let encoding = tokenizer.inner.encode_fast(&*text, false).unwrap();
            prop_assert_eq!(&ids, encoding.get_ids());
            prop_assert_eq!(tokenizer.inner.decode(&ids, true).unwrap(), &*text);
            Ok(())
        }))?;
    }
}
