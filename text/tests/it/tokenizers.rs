//! Foreign tokenizers against Hugging Face's tokenizers and transformers.
//!
//! The numbers come from `scripts/make_tokenizer_fixtures.py`.

use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use spar_text::chat_template::ChatInput;
use spar_text::{Tokenizer, TokenizerConfig};

const NAMES: [&str; 5] = ["llama-3", "qwen", "llama-2", "mistral", "unigram"];

static TOKENIZERS: LazyLock<Vec<Tokenizer>> = LazyLock::new(|| {
    let own = Tokenizer::train([["You see a desk 1."]], &TokenizerConfig::default()).unwrap();
    NAMES.iter().map(|name| Tokenizer::load(&folder(name)).unwrap()).chain([own]).collect()
});

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers").join(name)
}

fn each(mut check: impl FnMut(&str, &Tokenizer, &Value)) {
    for (name, tokenizer) in NAMES.iter().zip(TOKENIZERS.iter()) {
        let bytes = std::fs::read(folder(name).join("expected.json")).unwrap();
        check(name, tokenizer, &serde_json::from_slice(&bytes).unwrap());
    }
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

#[test]
fn texts_are_encoded_and_decoded_as_by_transformers() {
    each(|name, tokenizer, expected| {
        for case in expected["cases"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let found = tokenizer.encode_prompt(text);
            assert_eq!(found, ids(&case["prompt"]), "{name}: prompt {text:?}");
            assert_eq!(tokenizer.encode(text), ids(&case["content"]), "{name}: content {text:?}");
            assert_eq!(Some(&*tokenizer.decode(&found)), case["decoded"].as_str(), "{name}");
            let with_control = tokenizer.decode_with_control(&found);
            assert_eq!(Some(&*with_control), case["decoded_with_control"].as_str(), "{name}");
        }
    });
}

#[test]
fn conversations_are_encoded_as_by_transformers() {
    each(|name, tokenizer, expected| {
        for case in expected["conversations"].as_array().unwrap() {
            let messages = case["messages"].as_array().unwrap().clone();
            let found = tokenizer.encode_chat(&ChatInput::new(messages)).unwrap();
            assert_eq!(found, ids(&case["ids"]), "{name}: {}", case["messages"]);
        }
    });
}

#[test]
fn what_the_assistant_wrote_is_masked() {
    let messages = vec![
        json!({ "role": "user", "content": "One?" }),
        json!({ "role": "assistant", "content": "One." }),
        json!({ "role": "user", "content": "Two?" }),
        json!({ "role": "assistant", "content": "Two 🙂" }),
    ];
    for (index, expected) in
        [(0, "One.<|eot|>|Two 🙂<|eot|>"), (1, "One.<|im_end|>|Two 🙂<|im_end|>")]
    {
        let tokenizer = &TOKENIZERS[index];
        let tokens = tokenizer.encode_chat_with_mask(&ChatInput::new(messages.clone())).unwrap();
        assert_eq!(tokens.ids.len(), tokens.is_assistant.len());
        let mut runs: Vec<Vec<u32>> = Vec::new();
        let mut before = false;
        for (id, is_assistant) in tokens.ids.iter().zip(&tokens.is_assistant) {
            if *is_assistant && !before {
                runs.push(Vec::new());
            }
            before = *is_assistant;
            runs.last_mut().filter(|_| before).into_iter().for_each(|run| run.push(*id));
        }
        let texts: Vec<_> = runs.iter().map(|run| tokenizer.decode_with_control(run)).collect();
        assert_eq!(texts.join("|"), expected);
        // Here no token spans what the template and the assistant wrote.
        let mut input = ChatInput::new(messages.clone());
        input.add_generation_prompt = false;
        assert_eq!(tokens.ids, tokenizer.encode_chat(&input).unwrap());
    }
}

#[test]
fn the_ends_of_completions_are_known() {
    for (index, end) in ["<|eot|>", "<|im_end|>", "</s>", "</s>", "</s>"].iter().enumerate() {
        let tokenizer = &TOKENIZERS[index];
        assert_eq!(tokenizer.end_of_turn(), tokenizer.token_id(end).unwrap(), "{index}");
    }
    assert_eq!(TOKENIZERS[0].end_tokens().len(), 2, "the end of a turn and that of a text");
    // Llama 2's brackets are text, which answers would be part of; the last but one has no template.
    let layouts = TOKENIZERS.iter().map(Tokenizer::has_message_layout).collect::<Vec<_>>();
    assert_eq!(layouts, [true, true, false, true, false, true]);
}

#[test]
fn a_saved_tokenizer_keeps_its_files() {
    for (name, tokenizer) in NAMES.iter().zip(TOKENIZERS.iter()) {
        let saved = tempfile::tempdir().unwrap();
        tokenizer.save(saved.path()).unwrap();
        let file = "tokenizer_config.json";
        let read = |folder: PathBuf| std::fs::read(folder.join(file)).unwrap();
        assert_eq!(read(saved.path().to_owned()), read(folder(name)));
        let loaded = Tokenizer::load(saved.path()).unwrap();
        let text = "naïve <s> text";
        assert_eq!(loaded.encode_prompt(text), tokenizer.encode_prompt(text));
        assert_eq!(loaded.end_tokens(), tokenizer.end_tokens());
    }
}

fn any_content() -> impl Strategy<Value = String> {
    let controls = [
        "<|im_start|>",
        "<|im_end|>",
        "<|eot|>",
        "<|start|>",
        "<|stop|>",
        "</s>",
        "<s>",
        "[INST]",
        "[/INST]",
        "<|end|>",
        "<|user|>",
        "<|begin|>",
    ];
    let part = prop_oneof![
        2 => any::<String>(),
        2 => "[<|>imendstrot_/\\[\\]INS ▁]{0,12}",
        3 => proptest::sample::select(controls.to_vec()).prop_map(str::to_owned),
    ];
    proptest::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_gives_the_whole_text_in_whole_characters(
        picks in proptest::collection::vec(any::<u32>(), 0..60),
        text in any::<String>(),
    ) {
        for tokenizer in TOKENIZERS.iter() {
            let random: Vec<u32> =
                picks.iter().map(|pick| pick % (tokenizer.vocab_size() as u32 + 2)).collect();
            for ids in [random, tokenizer.encode(&text)] {
                let mut plain = tokenizer.stream();
                let mut shown = tokenizer.stream_with_control();
                let (mut whole, mut whole_shown) = (String::new(), String::new());
                for id in &ids {
                    whole += &plain.push(*id);
                    whole_shown += &shown.push(*id);
                }
                prop_assert_eq!(whole + &plain.finish(), tokenizer.decode(&ids));
                prop_assert_eq!(whole_shown + &shown.finish(), tokenizer.decode_with_control(&ids));
            }
            // Of a valid text, no piece has a replacement for half a character.
            if tokenizer.decode(&tokenizer.encode(&text)) == text && !text.contains(char::REPLACEMENT_CHARACTER) {
                let mut stream = tokenizer.stream();
                for id in tokenizer.encode(&text) {
                    let whole = !stream.push(id).contains(char::REPLACEMENT_CHARACTER);
                    prop_assert!(whole);
                }
                prop_assert_eq!(stream.finish(), "");
            }
        }
    }

    #[test]
    fn no_message_becomes_control_tokens(contents in proptest::collection::vec(any_content(), 1..4)) {
        for tokenizer in TOKENIZERS.iter().filter(|tokenizer| tokenizer.chat_template().is_some()) {
            let count = |texts: &[String]| {
                let roles = ["user", "assistant"].into_iter().cycle();
                let messages = roles.zip(texts).map(|(role, text)| {
                    json!({ "role": role, "content": text })
                });
                let ids = tokenizer.encode_chat(&ChatInput::new(messages.collect())).unwrap();
                ids.into_iter().filter(|id| tokenizer.is_control(*id)).collect::<Vec<_>>()
            };
            let harmless = vec!["x".to_owned(); contents.len()];
            let unknown = tokenizer.token_id("<unk>");
            let mut found = count(&contents);
            // What the vocabulary lacks is control to nobody.
            found.retain(|id| Some(*id) != unknown);
            prop_assert_eq!(found, count(&harmless));
        }
    }
}
