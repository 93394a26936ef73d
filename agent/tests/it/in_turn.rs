//! Answers that go on behind what their calls have shown.

use serde_json::json;
use spar_agent::policies::ScriptedPolicy;
use spar_agent::{
    BranchPoint, Cancellation, Episode, EpisodeConfig, EpisodeInProgress, Player, ScaffoldChoice,
    cut_samples, run_branch, run_episode,
};
use spar_core::{
    Completion, CompletionRequest, EndReason, Message, Policy, PolicyError, Role, Sample, Seat,
    Seed, StopCause, Trajectory,
};
use spar_envs::{Environment, open_environment};
use spar_tasks::Task;

use super::environments::resources;

const END_OF_TURN: u32 = 256;

fn task() -> Task {
    serde_json::from_value(json!({
        "id": "code/test/0", "environment": "code", "instruction": "Answer.", "max_turns": 6, "tags": [],
        "parameters": { "prompt": "What is 2 + 3?", "answer": 5, "solution": "echo 5" },
    }))
    .unwrap()
}

fn config() -> EpisodeConfig {
    let config =
        EpisodeConfig { scaffold: ScaffoldChoice::named("retool").unwrap(), ..Default::default() };
    config.validate().unwrap();
    config
}

fn open() -> Box<dyn Environment> {
    // What stands for an interpreter in memory runs shell commands.
    open_environment(&task(), &resources()).unwrap()
}

async fn play(player: Player<'_>, config: &EpisodeConfig) -> Trajectory {
    let (task, cancellation) = (task(), Cancellation::new());
    let episode = Episode {
        id: 3,
        task: &task,
        player,
        seat: Seat::FIRST,
        seed: Seed::from_u64(1),
        environment_seed: Seed::from_u64(2),
        cancellation: &cancellation,
    };
    let mut environment = open();
    let trajectory = run_episode(&mut *environment, &episode, config).await;
    environment.close().await.unwrap();
    trajectory.validate().unwrap();
    trajectory
}

fn script() -> ScriptedPolicy {
    ScriptedPolicy::new([
        "I compute.\n<code>\necho 5\n</code>\n<interpreter>\n6\n</interpreter>",
        "Once more. <code>echo 7</code>",
        r"So \boxed{5}.",
    ])
}

fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

#[tokio::test]
async fn output_is_written_into_the_answer_and_carries_no_weight() {
    let trajectory = play(Player::Policy(&script()), &config()).await;
    assert_eq!(trajectory.end, EndReason::Terminated);
    assert!(trajectory.success);
    let turns = &trajectory.turns;
    assert_eq!(turns[0].text, "I compute.\n<code>\necho 5\n</code>", "what it made up is gone");
    assert_eq!(turns[0].stop, Some(StopCause::StopSequence));
    let mut before = turns[0].prompt.appended.len();
    for (turn, shown) in [(1, "5"), (2, "7")] {
        let prompt = &turns[turn].prompt;
        before += turns[turn - 1].sampled.ids.len();
        assert_eq!(prompt.kept, before, "nothing is laid out again");
        assert_eq!(prompt.appended, bytes(&format!("\n<interpreter>\n{shown}\n</interpreter>\n")));
        before += prompt.appended.len();
    }
    let samples = cut_samples(&trajectory).unwrap();
    let [sample] = &samples[..] else { panic!("{}", samples.len()) };
    let sampled: Vec<u32> = turns.iter().flat_map(|turn| turn.sampled.ids.clone()).collect();
    let kept =
        sample.tokens.iter().zip(&sample.turns).filter(|(_, turn)| **turn != Sample::OBSERVED);
    assert_eq!(kept.map(|(token, _)| *token).collect::<Vec<_>>(), sampled);
    assert_eq!(sample.tokens.iter().filter(|token| **token == END_OF_TURN).count(), 1);
}

#[tokio::test]
async fn a_branch_goes_on_from_the_same_tokens() {
    let (policy, config) = (script(), config());
    let origin = play(Player::Policy(&policy), &config).await;
    let (task, cancellation) = (task(), Cancellation::new());
    let last = ScriptedPolicy::new([r"No: \boxed{4}."]);
    let episode = Episode {
        id: 4,
        task: &task,
        player: Player::Policy(&last),
        seat: Seat::FIRST,
        seed: Seed::from_u64(1),
        environment_seed: Seed::from_u64(2),
        cancellation: &cancellation,
    };
    let mut environment = open();
    environment.reset(Seed::from_u64(2)).await.unwrap();
    let at = BranchPoint::before(2);
    let (branch, _) = run_branch(environment, &origin, at, &episode, &config).await;
    branch.validate().unwrap();
    assert_eq!(branch.turns[2].prompt, origin.turns[2].prompt);
    assert_eq!((branch.end, branch.success), (EndReason::Terminated, false));
}

#[tokio::test]
async fn demonstrations_end_where_the_policy_would_stop() {
    let encoder = ScriptedPolicy::new(["unused"]);
    let trajectory = play(Player::Oracle { encoder: Some(&encoder) }, &config()).await;
    assert!(trajectory.success);
    let [first, last] = &trajectory.turns[..] else { panic!("{:?}", trajectory.turns.len()) };
    assert_eq!(first.sampled.ids, bytes("<code>\n```python\necho 5\n```\n</code>"));
    assert_eq!(last.sampled.ids.last(), Some(&END_OF_TURN));
    assert_eq!(first.stop, Some(StopCause::StopSequence));
    assert_eq!(cut_samples(&trajectory).unwrap().len(), 1);
}

#[tokio::test]
async fn hints_within_an_answer_end_it() {
    let (policy, config, task) = (script(), config(), task());
    let cancellation = Cancellation::new();
    let episode = Episode {
        id: 5,
        task: &task,
        player: Player::Policy(&policy),
        seat: Seat::FIRST,
        seed: Seed::from_u64(1),
        environment_seed: Seed::from_u64(2),
        cancellation: &cancellation,
    };
    let mut playing = EpisodeInProgress::start(open(), &episode, &config).await;
    playing.turn().await.unwrap();
    playing.inject(Message::new(Role::User, "Hurry."));
    while playing.turn().await.is_some() {}
    let (trajectory, mut environment) = playing.finish().await;
    environment.close().await.unwrap();
    trajectory.validate().unwrap();
    assert!(trajectory.success, "{:?}", trajectory.end);
    let appended = &trajectory.turns[1].prompt.appended;
    let wanted =
        [bytes("\n<interpreter>\n5\n</interpreter>\n"), vec![257], bytes("Hurry."), vec![258]];
    assert_eq!(*appended, wanted.concat());
}

/// Says the lines of a script without telling tokens, as endpoints do, and ends at no string.
struct Endpoint(ScriptedPolicy);

#[async_trait::async_trait]
impl Policy for Endpoint {
    fn name(&self) -> &str {
        "endpoint"
    }

    fn encode(&self, _: Option<&Message>, _: &Message) -> Vec<u32> {
        Vec::new()
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
        assert!(roles.last() == Some(&Role::User), "{roles:?}");
        let completion = self.0.complete(request).await?;
        Ok(Completion::new("endpoint", completion.text, StopCause::EndOfTurn))
    }
}

#[tokio::test]
async fn a_policy_that_works_on_text_is_shown_messages() {
    let trajectory = play(Player::Policy(&Endpoint(script())), &config()).await;
    assert!(trajectory.success, "{:?}", trajectory.end);
    assert_eq!(trajectory.turns[0].text, "I compute.\n<code>\necho 5\n</code>");
    assert_eq!(trajectory.turns.len(), 3);
}

#[test]
fn what_an_open_answer_cannot_have_is_refused() {
    for (setting, part) in [
        (json!({ "context": { "window_turns": 3 } }), "window_turns"),
        (json!({ "stop": ["x"] }), "stop is given"),
        (json!({ "context": { "reasoning": "strip" } }), "context.reasoning"),
        (
            json!({ "context": { "policy": { "kind": "elide_observations" } } }),
            "window_turns and context policies",
        ),
    ] {
        let mut setting = setting;
        setting["scaffold"] = json!("retool");
        let config: EpisodeConfig = serde_json::from_value(setting).unwrap();
        let problems = config.validate().unwrap_err().problems;
        assert!(problems.contains(part), "{problems}");
    }
}
