use super::*;
use crate::grade::{EvalType, Expected};
use crate::log::Origin;

fn least() -> Instance {
    Instance {
        id: "a__b-1".to_owned(),
        format: "own".to_owned(),
        issue: Issue { problem: "It fails.".to_owned(), ..Issue::default() },
        source: SandboxSource { image: Some("x/y:z".to_owned()), ..SandboxSource::default() },
        verification: Some(Verification::RewardFile {
            script: "true\n".to_owned(),
            files: vec!["/logs/reward.txt".to_owned()],
        }),
        ..Instance::default()
    }
}

#[test]
fn the_least_instance_is_fine_and_round_trips() {
    let instance = least();
    assert_eq!(instance.problems(), Vec::<String>::new());
    let text = serde_json::to_string(&instance).unwrap();
    assert_eq!(serde_json::from_str::<Instance>(&text).unwrap(), instance);
    assert!(serde_json::from_str::<Instance>(&text.replace("\"format\"", "\"fromat\"")).is_err());
}

#[test]
fn all_problems_are_told_at_once() {
    let mut bad = least();
    bad.id = "a b".to_owned();
    bad.repo = Some("a/b/c".to_owned());
    bad.base_commit = Some("main".to_owned());
    bad.workdir = Some("task".to_owned());
    bad.env.insert("A=B".to_owned(), "c".to_owned());
    bad.limits = Limits { cpus: Some(f64::NAN), memory_mb: Some(0), ..Limits::default() };
    bad.network = NetworkPolicy::Allowlist(vec!["a b".to_owned()]);
    bad.source = SandboxSource::default();
    bad.restored = vec!["/etc/passwd".to_owned()];
    bad.withheld = vec!["/a/../b".to_owned(), "../x".to_owned()];
    let file = || HiddenFile::text("x");
    let files =
        [("../x".to_owned(), file()), ("/x".to_owned(), file()), ("fine/x".to_owned(), file())]
            .into();
    bad.hidden = vec![HiddenFiles { into: "tests".to_owned(), files }];
    bad.verification = Some(Verification::TestLog {
        script: " ".to_owned(),
        parser: ParserName { origin: Origin::SweBench, name: "p".to_owned() },
        expected: Expected::default(),
        eval_type: EvalType::PassAndFail,
    });
    bad.gold = Some(Gold::Files([("../y".to_owned(), None)].into()));
    bad.stages = vec![Stage::default()];
    bad.artifacts = ["", "/./", "a\0b", "/a/../b"]
        .map(|source| Artifact { source: source.to_owned(), ..Artifact::default() })
        .into();
    let workdir = Some("oracle".to_owned());
    bad.verifier_sandbox = Some(VerifierSandbox { workdir, ..VerifierSandbox::default() });
    let problems = bad.problems();
    let all = problems.join("\n");
    for part in [
        "the id `a b`",
        "the repository `a/b/c`",
        "the base commit `main`",
        "workdir: `task`",
        "variable `A=B`",
        "`cpus` is NaN",
        "`memory_mb` is 0",
        "network: `a b`",
        "source: neither",
        "test file: `/etc/passwd`",
        "test file: `/a/../b`",
        "test file: `../x`",
        "hidden files: `tests`",
        "hidden file: `../x`",
        "hidden file: `/x`",
        "script of the verification is empty",
        "any result would do",
        "solution: `../y`",
        "the artifact `` is no path",
        "the artifact `/./` is no path",
        "b` is no path",
        "the artifact `/a/../b` has `..`",
        "verifier_sandbox: workdir: `oracle`",
        "stage ``: the id ``",
        "stage ``: its instruction is empty",
    ] {
        assert!(all.contains(part), "{part} in\n{all}");
    }
    assert_eq!(problems.len(), 25, "{all}");
}

#[test]
fn an_instance_that_cannot_be_judged_says_why() {
    let mut instance = least();
    instance.verification = None;
    assert_eq!(instance.problems(), ["nothing tells how the result is judged"]);
    instance.unsupported.push("the script: the row has none".to_owned());
    assert_eq!((instance.problems(), instance.is_gradable()), (vec![], false));
}

#[test]
fn values_stand_for_variables_of_the_host() {
    for (value, expected) in [
        ("${A}", Some(("A", None))),
        ("${A:-b c}", Some(("A", Some("b c")))),
        ("${A:-}", Some(("A", Some("")))),
        ("a", None),
        ("x${A}", None),
        ("${A:b}", None),
        ("${}", None),
    ] {
        let expected = expected.map(|(name, default): (&str, Option<&str>)| {
            (name.to_owned(), default.map(str::to_owned))
        });
        assert_eq!(host_variable(value), expected, "{value}");
    }
    let env = [("K".to_owned(), "${A}".to_owned()), ("L".to_owned(), "x".to_owned())].into();
    assert_eq!(host_variables(&env), [("A".to_owned(), None)].into());
}
