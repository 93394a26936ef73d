//! Several graders as one.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use spar_core::{RewardPart, Trajectory, Verdict};

use super::grader::lacks_model;
use super::{
    GradedEpisode, Grader, GraderConfig, GradingModel, GradingModels, GradingPlace, open_grader,
};
use crate::{GraderError, ReferenceAnswer, Task, TerminalVerifier, VerifierSandbox};

/// Several graders as one: named parts with weights, one of which decides what success is.
///
/// The reward is the sum over graders and their parts of weight times value. A grader that was given a name of its own
/// calls its part so, or `name.part` where it tells [several](Grader::has_named_parts) apart; the others keep the names of their parts. What each found, its weight aside, stands
/// in the artifacts under its name.
#[derive(Debug)]
pub struct Graders {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    config: GraderConfig,
    decides: bool,
    grader: Box<dyn Grader>,
}

impl Graders {
    /// The graders that a task has where a recipe adds some: those that it names, or else its environment, and behind them
    /// what is added. What is added decides success where it says so.
    pub fn merged(of_task: &[GraderConfig], added: &[GraderConfig]) -> Vec<GraderConfig> {
        if added.is_empty() {
            return of_task.to_vec();
        }
        let mut merged = match of_task {
            [] => vec![GraderConfig::new("environment")],
            named => named.to_vec(),
        };
        if let [only] = &mut merged[..] {
            only.decides = true;
        }
        if added.iter().any(|grader| grader.decides) {
            merged.iter_mut().for_each(|grader| grader.decides = false);
        }
        merged.extend_from_slice(added);
        merged
    }

    /// Opens the graders that are named.
    ///
    /// # Errors
    ///
    /// [`GraderError::Problems`] tells all that is wrong with any of them or with how they are combined.
    pub fn open(configs: &[GraderConfig]) -> Result<Self, GraderError> {
        let (mut members, mut problems) = (Vec::new(), Vec::new());
        for (number, config) in configs.iter().enumerate() {
            let label = config.label();
            if configs[..number].iter().any(|other| other.label() == label) {
                problems.push(format!("two graders are called `{label}`: give them a `name` each"));
            }
            if !(config.weight.is_finite() && config.weight >= 0.0) {
                let weight = config.weight;
                problems.push(format!("weight of `{label}` is {weight}, must be at least 0"));
            }
            match open_grader(config) {
                Ok(grader) => {
                    let decides = config.decides || configs.len() == 1;
                    members.push(Member { config: config.clone(), decides, grader });
                }
                Err(GraderError::Row(error)) => problems.extend(error.problems()),
                Err(error) => problems.push(error.to_string()),
            }
        }
        let deciding = configs.iter().filter(|config| config.decides).count();
        if configs.len() > 1 && deciding != 1 {
            problems.push(match deciding {
                0 => {
                    "none of several graders decides what success is: say `decides = true` for one"
                        .to_owned()
                }
                _ => format!("{deciding} graders decide what success is, one has to"),
            });
        }
        problems.extend(order_problems(&members));
        if problems.is_empty() {
            Ok(Self { members })
        } else {
            Err(GraderError::Problems { problems })
        }
    }

    /// The models that they ask, each behind what the grader is called that does.
    pub fn models(&self) -> impl Iterator<Item = (&str, GradingModel)> {
        let members = self.members.iter();
        members.filter_map(|Member { config, grader, .. }| {
            Some((config.label(), grader.needs().model?))
        })
    }

    /// All that they would lack to judge `task`, which says what is right or not, and is played in a sandbox or not;
    /// `available` tells of a model whether it can score given tokens, where it is there at all.
    pub fn lacks(
        &self,
        task: &Task,
        has_reference: bool,
        has_sandbox: bool,
        available: impl Fn(GradingModel) -> Option<bool>,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        for Member { config, grader, .. } in &self.members {
            let (label, needs) = (config.label(), grader.needs());
            if let Some(model) = needs.model.filter(|model| available(*model).is_none()) {
                problems.push(lacks_model(label, model));
            }
            let is_mute = |model: &GradingModel| available(*model) == Some(false);
            if let Some(model) = needs.model.filter(|model| needs.can_score && is_mute(model)) {
                problems.push(format!(
                    "`{label}` needs log-probabilities of given tokens, which the {} does not tell; a checkpoint in this \
                     process does",
                    model.name()
                ));
            }
            if needs.reference && !has_reference {
                problems.push(format!(
                    "`{label}` needs an answer that is right, and the task has none"
                ));
            }
            if needs.fresh_sandbox && !has_sandbox {
                problems.push(format!(
                    "`{label}` needs a sandbox for programs, and the environment has none"
                ));
            }
            if grader.script().is_some() && !has_sandbox {
                problems
                    .push(format!("`{label}` needs a sandbox, and the environment plays in none"));
            }
        }
        if has_sandbox {
            problems.extend(self.behind_fresh_verifier(task));
        }
        problems
    }

    /// Scripts behind `environment` where its verifier has a fresh sandbox, which they would find in place of the
    /// episode's own.
    fn behind_fresh_verifier(&self, task: &Task) -> Vec<String> {
        let sandbox = task.parameters.pointer("/verifier/sandbox");
        let is_fresh = sandbox.is_some_and(|sandbox| {
            VerifierSandbox::deserialize(sandbox).is_ok_and(|it| it == VerifierSandbox::Fresh)
        });
        let members = self.members.iter();
        let behind = members.skip_while(|member| !is_fresh || member.config.kind != "environment");
        behind
            .filter(|member| member.grader.script().is_some())
            .map(|member| {
                let label = member.config.label();
                format!(
                    "`environment` closes the episode's sandbox, since the task's verifier has `sandbox = \"fresh\"`, and                      `{label}` behind it needs that: name it before `environment` in the task's graders"
                )
            })
            .collect()
    }

    /// Their versions, by what they are called.
    pub fn versions(&self) -> BTreeMap<String, u32> {
        let version = |member: &Member| (member.config.label().to_owned(), member.grader.version());
        self.members.iter().map(version).collect()
    }

    /// Whether one of them asks this model.
    pub fn needs_model(&self, model: GradingModel) -> bool {
        self.members.iter().any(|member| member.grader.needs().model == Some(model))
    }

    /// Whether the task has to say what is right.
    pub fn needs_reference(&self) -> bool {
        self.members.iter().any(|member| member.grader.needs().reference)
    }

    /// Whether one of them runs programs in fresh sandboxes.
    pub fn need_fresh_sandboxes(&self) -> bool {
        self.members.iter().any(|member| member.grader.needs().fresh_sandbox)
    }

    /// The scripts that they run in an episode's sandbox.
    pub fn scripts(&self) -> impl Iterator<Item = &TerminalVerifier> {
        self.members.iter().filter_map(|member| member.grader.script())
    }

    /// Judges an episode by all of them, in their order.
    ///
    /// # Errors
    ///
    /// [`GraderError`] when one of them could not judge.
    pub async fn grade(
        &self,
        task: &Task,
        trajectory: &Trajectory,
        reference: Option<&ReferenceAnswer>,
        models: &GradingModels,
        place: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let mut earlier: Vec<(String, Verdict)> = Vec::with_capacity(self.members.len());
        for Member { config, grader, .. } in &self.members {
            let episode = GradedEpisode {
                task,
                trajectory,
                reference,
                earlier: &earlier,
                models,
                seed: trajectory.seed.derive("grader", config.label()),
            };
            let verdict = grader.grade(&episode, &mut *place).await?;
            earlier.push((config.label().to_owned(), verdict));
        }
        Ok(self.combined(earlier))
    }

    /// Judges an answer by itself, by all of them; `None` where one of them needs more than the answer.
    pub fn judge_answer(
        &self,
        task: &Task,
        answer: &str,
        reference: &ReferenceAnswer,
    ) -> Option<Verdict> {
        let judge = |member: &Member| {
            let verdict = member.grader.judge_answer(task, answer, reference)?;
            Some((member.config.label().to_owned(), verdict))
        };
        Some(self.combined(self.members.iter().map(judge).collect::<Option<_>>()?))
    }

    fn combined(&self, verdicts: Vec<(String, Verdict)>) -> Verdict {
        let mut all = Verdict::default();
        let mut details = Vec::new();
        for (Member { config, decides, grader }, (label, verdict)) in
            self.members.iter().zip(verdicts)
        {
            let found = serde_json::json!({ "parts": verdict.parts, "success": verdict.success });
            for part in verdict.parts.into_iter().filter(|_| config.weight > 0.0) {
                let name = match &config.name {
                    None => part.name,
                    Some(name) if !grader.has_named_parts() => name.clone(),
                    Some(name) => format!("{name}.{}", part.name),
                };
                all.parts.push(RewardPart { name, value: config.weight * part.value });
            }
            if *decides {
                all.success = verdict.success;
            }
            all.masked |= verdict.masked;
            if !verdict.details.is_empty() {
                details.push(format!("{label}: {}", verdict.details));
            }
            match verdict.graders.is_empty() {
                true => all.graders.push(grader.name().to_owned()),
                false => all.graders.extend(verdict.graders),
            }
            let mut artifacts = verdict.artifacts;
            if let serde_json::Value::Object(found) = found {
                artifacts.extend(found);
            }
            all.artifacts.insert(label, artifacts.into_iter().collect());
        }
        all.details = details.join("; ");
        all.duration = Duration::ZERO;
        all
    }
}

/// A fresh sandbox takes the place of the episode's own, so that nothing can run there any more.
fn order_problems(members: &[Member]) -> Vec<String> {
    let place = |member: &Member| member.grader.script().map(|script| script.sandbox);
    let places: Vec<_> = members.iter().map(place).collect();
    let fresh = places.iter().position(|place| *place == Some(VerifierSandbox::Fresh));
    let Some(fresh) = fresh else { return Vec::new() };
    let label = members[fresh].config.label();
    let is_behind =
        |number: usize| places[number].is_some() || members[number].config.kind == "environment";
    let behind = (fresh + 1..members.len()).filter(|number| is_behind(*number));
    behind
        .map(|number| {
            let other = members[number].config.label();
            format!("`{label}` closes the episode's sandbox, which `{other}` behind it needs: name it last")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::test_episodes::{NoPlace, episode, task};
    use super::*;

    fn configs(text: &str) -> Vec<GraderConfig> {
        serde_json::from_str(text).unwrap()
    }

    fn problems(text: &str) -> String {
        match Graders::open(&configs(text)) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn graders_have_weights_and_one_decides() {
        let graders = configs(
            r#"[{ "kind": "environment", "decides": true },
                { "kind": "exact", "weight": 0.5 },
                { "kind": "exact", "name": "loose", "weight": 2, "ignore_case": true },
                { "kind": "exact", "name": "recorded", "weight": 0, "ignore_case": true }]"#,
        );
        let graders = Graders::open(&graders).unwrap();
        let (task, right) = (task(), ReferenceAnswer::Text("Yes".to_owned()));
        let grade = async |answer: &str| {
            let (episode, models) = (episode(&[answer]), GradingModels::default());
            graders.grade(&task, &episode, Some(&right), &models, &mut NoPlace).await.unwrap()
        };
        let both = grade("Yes").await;
        assert_eq!((both.reward(), both.success), (2.5, false));
        let names: Vec<_> = both.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["success", "loose"]);
        assert_eq!(both.graders, ["environment", "exact", "exact", "exact"]);
        assert_eq!(both.artifacts["recorded"]["success"], true);
        assert!(both.details.contains("loose: right: Yes"), "{}", both.details);
        assert_eq!(grade("yes").await.reward(), 2.0);
    }

    #[test]
    fn names_of_parts_do_not_depend_on_what_is_found() {
        let graders = configs(
            r#"[{ "kind": "judge", "name": "style", "decides": true, "mode": "criteria",
                  "criteria": [{ "name": "a", "text": "a?" }, { "name": "b", "text": "b?" }] },
                { "kind": "judge", "name": "whole" }]"#,
        );
        let graders = Graders::open(&graders).unwrap();
        let parts = |names: &[&str]| {
            let part = |name: &&str| RewardPart { name: (*name).to_owned(), value: 0.5 };
            Verdict { parts: names.iter().map(part).collect(), ..Verdict::default() }
        };
        for named in [&["judge.a"][..], &["judge.a", "judge.b"]] {
            let found =
                [("style".to_owned(), parts(named)), ("whole".to_owned(), parts(&["judge"]))];
            let all = graders.combined(found.into());
            let names: Vec<_> = all.parts.iter().map(|part| part.name.as_str()).collect();
            let (last, of_style) = names.split_last().unwrap();
            assert_eq!(*last, "whole");
            let expected: Vec<_> = named.iter().map(|name| format!("style.{name}")).collect();
            assert_eq!(of_style, expected);
        }
    }

    #[test]
    fn scripts_behind_a_verifier_in_a_fresh_sandbox_are_refused() {
        let lacks = |sandbox: &str, graders: &str| {
            let mut task = task();
            task.parameters["verifier"] = serde_json::json!({ "sandbox": sandbox });
            Graders::open(&configs(graders)).unwrap().lacks(&task, true, true, |_| None)
        };
        let behind = r#"[{ "kind": "environment", "decides": true }, { "kind": "script" }]"#;
        let before = r#"[{ "kind": "script" }, { "kind": "environment", "decides": true }]"#;
        let told = lacks("fresh", behind);
        assert!(told.len() == 1 && told[0].contains("`script` behind it"), "{told:?}");
        let fresh = r#"[{ "kind": "environment", "decides": true },
            { "kind": "fresh_sandbox", "carry": ["a"] }]"#;
        assert!(lacks("fresh", fresh)[0].contains("`fresh_sandbox` behind it"));
        for (sandbox, graders) in [("same", behind), ("same", fresh), ("fresh", before)] {
            assert_eq!(lacks(sandbox, graders), Vec::<String>::new(), "{sandbox} {graders}");
        }
    }

    #[test]
    fn all_that_is_wrong_with_graders_is_told_at_once() {
        let told = problems(
            r#"[{ "kind": "exact" }, { "kind": "exact", "weight": -1 }, { "kind": "perfect" },
                { "kind": "script", "carry": ["a"] }, { "kind": "judge", "asks": 0 },
                { "kind": "fresh_sandbox", "carry": ["a"] }, { "kind": "script", "name": "late" }]"#,
        );
        for part in [
            "two graders are called `exact`",
            "weight of `exact` is -1",
            "find grader `perfect`",
            "no option `carry`",
            "`asks` is 0",
            "none of several graders decides",
            "`fresh_sandbox` closes the episode's sandbox, which `late` behind it needs",
        ] {
            assert!(told.contains(part), "{part} is not in {told}");
        }
        let two =
            r#"[{ "kind": "exact", "decides": true }, { "kind": "environment", "decides": true }]"#;
        assert!(problems(two).contains("2 graders decide"));
        assert_eq!(problems(r#"[{ "kind": "exact" }]"#), "");
    }

    #[test]
    fn what_a_recipe_adds_stands_behind_what_the_task_names() {
        let merged = |task: &str, added: &str| {
            let merged = Graders::merged(&configs(task), &configs(added));
            Graders::open(&merged).unwrap();
            let told =
                |it: &GraderConfig| format!("{}{}", it.label(), if it.decides { "!" } else { "" });
            merged.iter().map(told).collect::<Vec<_>>().join(" ")
        };
        let judge = r#"[{ "kind": "judge" }]"#;
        assert_eq!(merged("[]", judge), "environment! judge");
        assert_eq!(merged(r#"[{ "kind": "exact" }]"#, judge), "exact! judge");
        let decides = r#"[{ "kind": "judge", "decides": true }]"#;
        assert_eq!(merged(r#"[{ "kind": "exact" }]"#, decides), "exact judge!");
        assert_eq!(merged(r#"[{ "kind": "exact" }]"#, "[]"), "exact");
    }

    #[test]
    fn what_graders_lack_is_told_with_the_way_out() {
        let graders =
            r#"[{ "kind": "judge" }, { "kind": "script" }, { "kind": "exact", "decides": true }]"#;
        let graders = Graders::open(&configs(graders)).unwrap();
        let lacks = graders.lacks(&task(), false, false, |_| None);
        assert_eq!(lacks.len(), 3, "{lacks:?}");
        assert!(lacks[0].contains("--judge URL") && lacks[1].contains("needs a sandbox"));
        assert!(graders.needs_reference() && lacks[2].contains("an answer that is right"));
    }
}
