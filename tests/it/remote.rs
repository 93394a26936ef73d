//! Rollouts of a served policy, which training cannot tell from those of one in the process.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use spar::agent::policies::{HttpPolicy, HttpPolicyConfig, ServerKind};
use spar::agent::{
    BranchPoint, Cancellation, Episode, EpisodeConfig, EpisodeInProgress, Player, TurnMask,
    group_samples, run_episode,
};
use spar::core::{
    CompletionRequest, GrammarSource, Group, Message, Policy, PolicyVersion, Role, Sample,
    Sampling, Seat, Seed, Source, Trajectory,
};
use spar::envs::{Resources, open_environment};
use spar::policy::checkpoint::load_model;
use spar::policy::{GrammarCache, LocalPolicy, Parameters, Tokenizer, Weights};
use spar::tasks::{SuiteOptions, Task, open_suite};
use spar::trainer::{DecoderGradient, Measured, SampleGradient, Slopes};

use crate::serve::{Server, checkpoint};

/// The same weights behind a server and in this process.
struct Both {
    _folder: tempfile::TempDir,
    _server: Server,
    base_url: String,
    tokenizer: Arc<Tokenizer>,
    weights: Arc<Weights>,
    parameters: Parameters,
    local: LocalPolicy,
}

impl Both {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small");
        checkpoint(&path);
        let server = Server::start(folder.path(), &[]);
        let base_url = format!("http://{}/v1", server.address);
        let (config, parameters, tokenizer) = load_model(Path::new(&path)).unwrap();
        let tokenizer = Arc::new(tokenizer);
        let weights = Arc::new(Weights::new(&config, parameters.clone()));
        let (version, threads) = (PolicyVersion(0), 1);
        let local = LocalPolicy::new("local", tokenizer.clone(), weights.clone(), version, threads)
            .unwrap();
        let (_folder, _server) = (folder, server);
        Self { _folder, _server, base_url, tokenizer, weights, parameters, local }
    }

    fn remote(&self, server: ServerKind) -> HttpPolicy {
        let vocabulary = server != ServerKind::Openai;
        HttpPolicy::open(HttpPolicyConfig {
            base_url: self.base_url.clone(),
            model: "small".to_owned(),
            server,
            vocabulary: vocabulary.then(|| self.tokenizer.vocab_size()),
            ..HttpPolicyConfig::default()
        })
        .unwrap()
    }

    /// The gradient of all that was sampled, by samples that were cut of the trajectory.
    fn gradient(&self, trajectory: &Trajectory, temperature: f32) -> (Vec<Sample>, Vec<f32>) {
        let advantages = vec![(1..=trajectory.turns.len()).map(|n| n as f64 - 2.5).collect()];
        let group = Group { task: trajectory.task.clone(), trajectories: vec![trajectory.clone()] };
        let samples = group_samples(&group, &advantages, TurnMask::None).unwrap();
        let vocabulary = self.tokenizer.vocab_size();
        let grammars = Arc::new(GrammarCache::new(self.tokenizer.clone(), vocabulary));
        let model = DecoderGradient::new(self.weights.clone(), temperature)
            .with_grammars(grammars)
            .prepare(&self.parameters);
        let given: Vec<&Sample> = samples.iter().collect();
        let loss = |index: usize, found: Measured<'_>| {
            let sample: &Sample = given[index];
            let places = 0..sample.len();
            for t in places.clone().filter(|t| sample.policy_weights[*t] != 0.0) {
                let sampled = sample.behavior_logprobs[t];
                assert_eq!(found.logprobs[t].to_bits(), sampled.to_bits(), "place {t}");
            }
            let slope = |t: usize| sample.policy_weights[t] * sample.advantages[t];
            Slopes::from(places.map(slope).collect::<Vec<f32>>())
        };
        let mut gradient = vec![0.0; self.parameters.data.len()];
        model.accumulate(&given, &loss, &mut gradient, None).unwrap();
        (samples, gradient)
    }
}

async fn play(policy: &dyn Policy, task: &Task, config: &EpisodeConfig, id: u64) -> Trajectory {
    let episode = Episode {
        id,
        task,
        player: Player::Policy(policy),
        seat: Seat::FIRST,
        seed: Seed::from_u64(1).derive("episode", id),
        environment_seed: Seed::from_u64(2),
        cancellation: &Cancellation::new(),
    };
    let mut environment = open_environment(task, &Resources::default()).unwrap();
    run_episode(environment.as_mut(), &episode, config).await
}

/// Plays on from the first answer of `origin` that has several tokens, behind its first one.
async fn play_on(
    policy: &dyn Policy,
    task: &Task,
    config: &EpisodeConfig,
    origin: &Trajectory,
) -> Trajectory {
    let episode = Episode {
        id: 100,
        task,
        player: Player::Policy(policy),
        seat: Seat::FIRST,
        seed: Seed::from_u64(3),
        environment_seed: Seed::from_u64(2),
        cancellation: &Cancellation::new(),
    };
    let mut environment = open_environment(task, &Resources::default()).unwrap();
    environment.reset(episode.environment_seed).await.unwrap();
    // Not the first turn where there are others, so that one is taken over whole.
    let turn = origin.turns.iter().rposition(|turn| turn.sampled.ids.len() > 1).unwrap();
    let at = BranchPoint { turn, token: 1 };
    let mut fork = EpisodeInProgress::branch(environment, origin, at, &episode, config).await;
    while fork.turn().await.is_some() {}
    fork.finish().await.0
}

/// Checks that two episodes have the same turns, save for the times they took and whose they are.
fn assert_same_turns(here: &Trajectory, there: &Trajectory, about: &str) {
    assert_eq!((&here.end, here.is_failed()), (&there.end, false), "{about}");
    assert_eq!(here.turns.len(), there.turns.len(), "{about}");
    assert_eq!(here.grammars, there.grammars, "{about}");
    for (here, there) in here.turns.iter().zip(&there.turns) {
        assert_eq!(here.sampled, there.sampled, "{about}: {}", here.text);
        assert!(!here.sampled.ids.is_empty(), "{about}");
        assert_eq!((&here.prompt, here.source), (&there.prompt, there.source), "{about}");
        assert_eq!((&here.text, here.stop), (&there.text, there.stop), "{about}");
    }
    there.validate().unwrap();
}

fn configs() -> Vec<EpisodeConfig> {
    let plain = EpisodeConfig {
        max_turns: Some(5),
        sampling: Sampling { max_tokens: 40, ..Sampling::default() },
        ..EpisodeConfig::default()
    };
    let cut = Sampling { temperature: 0.7, top_k: Some(5), top_p: 0.9, ..plain.sampling.clone() };
    let free = EpisodeConfig {
        max_turns: Some(1),
        constrain_to_admissible: false,
        stop: [Arc::from("e")].into(),
        ..plain.clone()
    };
    let schema = json!({
        "type": "object",
        "properties": { "go": { "enum": ["left", "right"] }, "why": { "type": "string", "maxLength": 4 } },
        "required": ["go", "why"],
        "additionalProperties": false,
    });
    let schema = Some(Arc::new(GrammarSource::json_schema(schema)));
    let regex = Some(Arc::new(GrammarSource::regex("(left|right|up|down)[a-z ]{0,12}")));
    let without_stops = EpisodeConfig { stop: Arc::default(), ..free.clone() };
    vec![
        EpisodeConfig { sampling: cut.clone(), ..plain.clone() },
        plain,
        EpisodeConfig { sampling: cut.clone(), ..free.clone() },
        free,
        EpisodeConfig { grammar: schema.clone(), ..without_stops.clone() },
        EpisodeConfig { grammar: schema, sampling: cut, ..without_stops.clone() },
        EpisodeConfig { grammar: regex, ..without_stops },
    ]
}

#[tokio::test]
async fn episodes_of_a_served_policy_train_as_those_of_a_local_one() {
    let both = Both::start();
    let remote = both.remote(ServerKind::Spar);
    let suite = open_suite("frozen-lake", &SuiteOptions::default()).unwrap();
    for (number, config) in configs().iter().enumerate() {
        config.validate().unwrap();
        for id in 0..2 {
            let task = suite.task("test", id).unwrap();
            let here = play(&both.local, &task, config, id as u64).await;
            let there = play(&remote, &task, config, id as u64).await;
            assert_same_turns(&here, &there, &format!("config {number}"));
            for stop in config.stop.iter() {
                assert!(here.turns.iter().all(|turn| !turn.text.contains(&**stop)));
            }
            let temperature = config.sampling.temperature;
            let (samples, gradient) = both.gradient(&here, temperature);
            assert!(gradient.iter().any(|slope| *slope != 0.0), "config {number}");
            assert_eq!((samples, gradient), both.gradient(&there, temperature));
            // Forks in mid-turn are played alike, too.
            let here = play_on(&both.local, &task, config, &here).await;
            let there = play_on(&remote, &task, config, &there).await;
            assert_same_turns(&here, &there, &format!("fork with config {number}"));
            assert!(here.turns.iter().any(|turn| turn.source == Source::Regenerated));
        }
    }
}

#[tokio::test]
async fn a_served_policy_goes_on_behind_what_was_sampled() {
    let both = Both::start();
    let (remote, of_vllm) = (both.remote(ServerKind::Spar), both.remote(ServerKind::Vllm));
    let message = Message::new(Role::User, "You see a door.");
    for config in configs() {
        let mut request = CompletionRequest {
            prompt_ids: both.tokenizer.encode_message(None, &message).into(),
            messages: vec![Arc::new(message.clone())].into(),
            grammar: config.grammar,
            stop: config.stop,
            sampling: config.sampling,
            ..CompletionRequest::new(1, Seed::from_u64(5))
        };
        let whole = both.local.complete(request.clone()).await.unwrap();
        let count = whole.tokens.ids.len() / 2;
        request.partial = whole.tokens.first(count);
        request.seed = Seed::from_u64(6);
        let here = both.local.complete(request.clone()).await.unwrap();
        let there = remote.complete(request.clone()).await.unwrap();
        assert_eq!(here.tokens.first(count), request.partial);
        assert_eq!((here.tokens, here.text, here.stop), (there.tokens, there.text, there.stop));
        if request.grammar.is_some() {
            assert!(of_vllm.complete(request).await.is_err());
            continue;
        }
        let there = of_vllm.complete(request.clone()).await.unwrap();
        let begun = both.tokenizer.decode(&request.partial.ids);
        assert!(there.text.starts_with(&begun), "{begun}: {}", there.text);
        let is_kept = !request.sampling.truncates();
        assert_eq!(!there.tokens.ids.is_empty(), is_kept);
        if is_kept {
            assert_eq!(there.tokens.first(count), request.partial);
            assert_eq!(there.prompt_ids.as_deref(), Some(&*request.prompt_ids));
        }
    }
}

#[tokio::test]
async fn a_server_that_tells_no_tokens_is_good_for_evaluation() {
    let both = Both::start();
    let suite = open_suite("frozen-lake", &SuiteOptions::default()).unwrap();
    let task = suite.task("test", 0).unwrap();
    let config = EpisodeConfig { max_turns: Some(2), ..EpisodeConfig::default() };
    let trajectory = play(&both.remote(ServerKind::Openai), &task, &config, 0).await;
    assert!(!trajectory.is_failed() && !trajectory.turns.is_empty());
    for turn in &trajectory.turns {
        assert!(turn.sampled.ids.is_empty() && turn.prompt.appended.is_empty());
        assert!(turn.counts.sampled.is_some_and(|count| count > 0));
    }
}
