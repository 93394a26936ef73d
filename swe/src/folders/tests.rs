use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::instance::{
    Content, Gold, Instance, McpTransport, NetworkPolicy, RewardStrategy, Verification,
};
use crate::log::Origin;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Reads a folder; an error without the folder's own path.
fn read(folder: &Path) -> Result<Instance, String> {
    let format = FolderFormat::of(folder).ok_or("no format")?;
    format
        .read(folder)
        .map_err(|error| error.to_string().replace(&folder.display().to_string(), "TASK"))
}

fn harbor(root: &Path, toml: &str) -> std::path::PathBuf {
    let task = root.join("task");
    write(&task, "task.toml", toml);
    write(&task, "instruction.md", "<!-- canary x -->\n\nDo it.\n");
    write(&task, "environment/Dockerfile", "FROM scratch\n");
    write(&task, "tests/test.sh", "echo 1 > /logs/verifier/reward.txt\n");
    write(&task, "solution/solve.sh", "true\n");
    task
}

#[test]
fn a_folder_of_harbor_is_read_with_all_of_its_fields() {
    let folder = tempfile::tempdir().unwrap();
    let task = harbor(
        folder.path(),
        r#"
        schema_version = "1.4"
        artifacts = ["/app/out", { source = "/x", destination = "y", exclude = ["*.o"] }]
        [task]
        name = "own/task"
        authors = [{ name = "a", email = "a@b" }]
        [metadata]
        difficulty = "hard"
        category = "c"
        tags = ["t"]
        [agent]
        timeout_sec = 900.5
        user = "agent"
        network_mode = "allowlist"
        allowed_hosts = ["Example.com", "10.0.0.0/8"]
        [verifier]
        timeout_sec = 120
        env = { KEY = "${KEY}" }
        user = 0
        collect = [{ command = "dump", timeout_sec = 5 }]
        network_mode = "no-network"
        [environment]
        build_timeout_sec = 60
        cpus = 2.5
        memory = "2G"
        storage_mb = 1024
        workdir = "/app"
        env = { A = "b" }
        skills_dir = "/skills"
        gpus = 1
        healthcheck = { command = "true", retries = 5 }
        mcp_servers = [{ name = "m", transport = "http", url = "http://main:1" }, { name = "n", transport = "stdio", command = "c", args = ["d"] }]
        [solution]
        env = { S = "t" }
    "#,
    );
    let found = read(&task).unwrap();
    assert_eq!(
        (found.format.as_str(), found.id.as_str(), found.issue.problem.as_str()),
        ("harbor", "task", "Do it.\n")
    );
    let limits = found.limits;
    assert_eq!(
        (limits.agent_secs, limits.test_secs, limits.build_secs),
        (Some(901), Some(120), Some(60))
    );
    assert_eq!(
        (limits.cpus, limits.memory_mb, limits.storage_mb),
        (Some(2.5), Some(2048), Some(1024))
    );
    assert_eq!(
        found.network,
        NetworkPolicy::Allowlist(vec!["example.com".to_owned(), "10.0.0.0/8".to_owned()])
    );
    assert_eq!(found.verifier_network, Some(NetworkPolicy::None));
    assert_eq!(
        (found.agent_user.as_deref(), found.verifier_user.as_deref()),
        (Some("agent"), Some("0"))
    );
    assert_eq!(
        (found.difficulty.as_deref(), &found.tags[..]),
        (Some("hard"), &["t".to_owned(), "c".to_owned()][..])
    );
    assert_eq!(
        (found.artifacts.len(), found.collect.len(), found.health.unwrap().retries),
        (2, 1, 5)
    );
    assert_eq!(
        (&found.env["A"][..], &found.verifier_env["KEY"][..], &found.gold_env["S"][..]),
        ("b", "${KEY}", "t")
    );
    assert!(matches!(found.mcp_servers[0].transport, McpTransport::StreamableHttp { .. }));
    assert!(matches!(found.gold, Some(Gold::Script { .. })));
    assert!(found.verifier_sandbox.is_none());
    assert_eq!(found.hidden[0].into, "/tests");
    assert!(matches!(found.hidden[0].files["test.sh"].content, Content::Host(_)));
    let Some(Verification::RewardFile { files, .. }) = &found.verification else {
        panic!("no reward")
    };
    assert_eq!(files[0], "/logs/verifier/reward.json");
    assert_eq!(
        found.unsupported,
        [
            "`environment.gpus`: sandboxes have no accelerators",
            "`environment.skills_dir`: agents have no folder of skills",
        ]
    );
}

#[test]
fn older_fields_of_harbor_are_honoured() {
    let folder = tempfile::tempdir().unwrap();
    let task = harbor(folder.path(), "version = \"1.0\"\n[environment]\nallow_internet = false\n");
    assert_eq!(read(&task).unwrap().network, NetworkPolicy::None);
    let task = harbor(
        folder.path(),
        "version = \"1.0\"\n[environment]\nallow_internet = false\nnetwork_mode = \"public\"\n",
    );
    assert_eq!(read(&task).unwrap().network, NetworkPolicy::Full);
    let task = harbor(folder.path(), "version = \"1.0\"\n");
    let found = read(&task).unwrap();
    assert_eq!((found.network, found.limits.test_secs), (NetworkPolicy::Full, Some(600)));
}

#[test]
fn a_verifier_may_have_a_sandbox_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let task =
        harbor(folder.path(), "version = \"1.0\"\n[verifier]\nenvironment_mode = \"separate\"\n");
    let found = read(&task).unwrap();
    let (own, network) = (found.verifier_sandbox.unwrap(), found.verifier_network);
    assert_eq!((own.source, found.hidden.len()), (None, 1));
    assert_eq!(network, Some(NetworkPolicy::Full));
    write(&task, "tests/Dockerfile", "FROM tests\n");
    let found = read(&task).unwrap();
    let source = found.verifier_sandbox.unwrap().source.unwrap();
    assert_eq!(source.dockerfile.unwrap().text, "FROM tests\n");
    assert!(found.hidden.is_empty());
    let task = harbor(
        folder.path(),
        r#"
        version = "1.0"
        [environment]
        memory_mb = 512
        env = { OF_AGENT = "1" }
        [verifier.environment]
        docker_image = "x/y"
        cpus = 2
        workdir = "/judge"
        network_mode = "no-network"
        env = { OF_JUDGE = "1" }
        [verifier.env]
        MORE = "1"
    "#,
    );
    let found = read(&task).unwrap();
    let own = found.verifier_sandbox.unwrap();
    assert_eq!(own.source.unwrap().image.as_deref(), Some("x/y"));
    assert_eq!((own.limits.cpus, own.limits.memory_mb), (Some(2.0), None));
    assert_eq!((own.workdir.as_deref(), own.env.len()), (Some("/judge"), 1));
    assert_eq!(own.env["OF_JUDGE"], "1");
    assert_eq!(found.verifier_network, Some(NetworkPolicy::None));
    assert_eq!((found.verifier_env.len(), found.env.len()), (1, 1));
}

#[test]
fn what_is_said_of_the_agent_alone_does_not_hold_for_the_verifier() {
    let folder = tempfile::tempdir().unwrap();
    let with = |more: &str| {
        let text = format!("version = \"1.0\"\n[agent]\nnetwork_mode = \"no-network\"\n{more}");
        let found = read(&harbor(folder.path(), &text)).unwrap();
        (found.network, found.verifier_network)
    };
    assert_eq!(with(""), (NetworkPolicy::None, Some(NetworkPolicy::Full)));
    let both = "[verifier]\nnetwork_mode = \"no-network\"\n";
    assert_eq!(with(both), (NetworkPolicy::None, Some(NetworkPolicy::None)));
}

#[test]
fn a_step_has_a_verifier_a_user_and_artifacts_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let task = harbor(
        folder.path(),
        r#"
        version = "1.0"
        artifacts = ["/all"]
        [environment]
        network_mode = "no-network"
        [verifier]
        environment_mode = "separate"
        collect = [{ command = "first" }]
        [[steps]]
        name = "one"
        artifacts = [{ source = "/one", exclude = ["*.pyc"] }]
        agent = { user = "worker", network_mode = "public" }
        healthcheck = { command = "true" }
        [steps.verifier]
        user = "judge"
        network_mode = "public"
        collect = [{ command = "second", timeout_sec = 3 }]
        environment = { docker_image = "x/y" }
        [[steps]]
        name = "two"
        [steps.verifier]
        environment_mode = "shared"
    "#,
    );
    for step in ["one", "two"] {
        write(&task, &format!("steps/{step}/instruction.md"), step);
    }
    let found = read(&task).unwrap();
    assert_eq!(found.unsupported, Vec::<String>::new());
    assert!(found.problems().is_empty(), "{:?}", found.problems());
    let (one, two) = (found.stages[0].within(&found), found.stages[1].within(&found));
    let own = one.verifier_sandbox.unwrap();
    assert_eq!((own.source.unwrap().image.as_deref(), one.hidden.len()), (Some("x/y"), 0));
    assert_eq!((two.verifier_sandbox.is_none(), two.hidden.len()), (true, 1));
    assert_eq!(
        (one.agent_user.as_deref(), one.verifier_user.as_deref(), two.agent_user),
        (Some("worker"), Some("judge"), None)
    );
    assert_eq!(
        (one.network, one.verifier_network, two.network, two.verifier_network),
        (NetworkPolicy::Full, Some(NetworkPolicy::Full), NetworkPolicy::None, None)
    );
    let sources: Vec<_> = one.artifacts.iter().map(|artifact| artifact.source.as_str()).collect();
    assert_eq!((sources, two.artifacts.len()), (vec!["/all", "/one"], 1));
    let hooks: Vec<_> = one.collect.iter().map(|hook| hook.command.as_str()).collect();
    assert_eq!((hooks, two.collect.len()), (vec!["first", "second"], 1));
}

#[test]
fn steps_are_stages() {
    let folder = tempfile::tempdir().unwrap();
    let task = harbor(
        folder.path(),
        r#"
        schema_version = "1.1"
        multi_step_reward_strategy = "final"
        [environment]
        workdir = "/app"
        [agent]
        timeout_sec = 10
        [[steps]]
        name = "one"
        min_reward = 0.5
        [steps.agent]
        timeout_sec = 20
        [verifier]
        user = "judge"
        timeout_sec = 70
        [[steps]]
        name = "two"
        min_reward = { a = 1.0 }
        [steps.verifier.env]
        B = "c"
    "#,
    );
    for step in ["one", "two"] {
        write(&task, &format!("steps/{step}/instruction.md"), step);
        write(&task, &format!("steps/{step}/tests/more.py"), "x");
    }
    write(&task, "steps/one/workdir/setup.sh", "true");
    write(&task, "steps/one/solution/solve.sh", "true");
    let found = read(&task).unwrap();
    assert_eq!(
        (found.stages.len(), found.stage_reward, found.is_gradable()),
        (2, Some(RewardStrategy::Final), true)
    );
    let (one, two) = (&found.stages[0], &found.stages[1]);
    assert_eq!((one.agent_secs, two.agent_secs), (Some(20), Some(10)));
    assert_eq!((one.min_reward["reward"], two.min_reward["a"]), (0.5, 1.0));
    assert_eq!(one.hidden[0].files.keys().collect::<Vec<_>>(), ["more.py", "test.sh"]);
    assert_eq!((one.setup.len(), one.gold.is_some(), two.gold.is_some()), (1, true, false));
    assert_eq!(two.verifier_env["B"], "c");
    assert_eq!(one.setup, ["cd '/app' && bash setup.sh && rm -f setup.sh"]);
    assert_eq!((one.files[0].into.as_str(), found.unsupported.len()), ("/app", 0));
    assert_eq!((found.verifier_user.as_deref(), found.limits.test_secs), (Some("judge"), Some(70)));
    let (own, last) = (one.within(&found), two.within(&found));
    assert_eq!((own.issue.problem.as_str(), own.limits.agent_secs), ("one", Some(20)));
    assert_eq!((own.limits.test_secs, last.gold, last.hidden.len()), (Some(600), None, 1));
}

#[test]
fn compose_is_honoured_for_the_service_of_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let task = harbor(folder.path(), "version = \"1.0\"\n");
    write(
        &task,
        "environment/docker-compose.yaml",
        r#"
services:
  main:
    build: { context: "${CONTEXT_DIR}" }
    image: ${MAIN_IMAGE_NAME}
    command: ["sh", "-c", "sleep infinity"]
    environment: ["TEST_DIR=${TEST_DIR}", "A=b", "HOST"]
    working_dir: /work
    deploy: { resources: { limits: { cpus: "1.5", memory: 512M } } }
    volumes: ["./data:/data"]
    privileged: true
  db:
    image: postgres
"#,
    );
    let found = read(&task).unwrap();
    let compose = found.source.compose.unwrap();
    assert_eq!(
        compose.env,
        [("A".to_owned(), "b".to_owned()), ("HOST".to_owned(), "${HOST}".to_owned())].into()
    );
    assert!(compose.command.is_empty());
    assert_eq!(
        (found.workdir.as_deref(), found.limits.cpus, found.limits.memory_mb),
        (Some("/work"), Some(1.5), Some(512))
    );
    assert_eq!(
        found.unsupported,
        [
            "`docker-compose.yaml`: the service `db` beside `main` is not started",
            "`volumes`: `./data:/data` is not mounted",
            "`services.main.privileged`: not known of this format",
        ]
    );
}

#[test]
fn errors_of_folders_name_the_file_and_the_field() {
    let folder = tempfile::tempdir().unwrap();
    for (toml, expected) in [
        ("version = 1.0\n[agent]\n", "`schema_version`: expected a text, found the number 1.0"),
        (
            "version = \"1\"\n[environment]\ncpus = nan\n",
            "`environment.cpus`: expected a finite number, found NaN",
        ),
        (
            "version = \"1\"\n[environment]\nos = \"beos\"\n",
            "`environment.os`: expected one of `linux`, `windows`, found `beos`",
        ),
        (
            "version = \"1\"\n[environment]\nmemory = \"2T\"\n",
            "`environment.memory`: expected a size as `512M` or `2G`, found `2T`",
        ),
        (
            "version = \"1\"\n[environment]\nmemory = \"2G\"\nmemory_mb = 1\n",
            "`environment.memory_mb`: expected the same size under both names, found 2048 and 1 MiB",
        ),
        (
            "version = \"1\"\n[agent]\nallowed_hosts = []\n",
            "`agent.allowed_hosts`: it goes with `network_mode = \"allowlist\"` alone",
        ),
        (
            "version = \"1\"\n[agent]\nnetwork_mode = \"off\"\n",
            "`agent.network_mode`: expected one of `no-network`, `public`, `allowlist`, found `off`",
        ),
        (
            "version = \"1\"\n[task]\nname = \"x\"\n",
            "`task.name`: expected `ORG/NAME` of letters, digits, `.`, `_` and `-`, found `x`",
        ),
        (
            "version = \"1\"\n[verifier]\nenvironment_mode = \"shared\"\nenvironment = {}\n",
            "`verifier.environment_mode`: `shared` and an environment of its own contradict each other: leave out one of them",
        ),
        (
            "version = \"1\"\n[[steps]]\nname = \"CON\"\n",
            "`steps[0].name`: `CON` is the name of a device on some systems",
        ),
        (
            "version = \"1\"\n[[steps]]\nname = \"a\"\n[[steps]]\nname = \"A\"\n",
            "`steps`: expected names that differ in more than their case, found `A` twice",
        ),
        (
            "version = \"1\"\nartifacts = [{ source = \"a\", destination = \"/b\" }]\n",
            "`artifacts[0].destination`: expected a relative path",
        ),
        (
            "version = \"1\"\n[environment]\nmcp_servers = [{ name = \"a\" }]\n",
            "`environment.mcp_servers[0].url`: the transport `sse` needs it",
        ),
    ] {
        let task = harbor(folder.path(), toml);
        assert_eq!(read(&task).unwrap_err(), format!("`TASK/task.toml`: {expected}"), "{toml}");
    }
    let task = harbor(folder.path(), "version = \"1\"\n[agent\n");
    assert!(read(&task).unwrap_err().starts_with("`TASK/task.toml`: not readable as TOML: "));
    let task = harbor(folder.path(), "version = \"1\"\n");
    std::fs::remove_file(task.join("tests/test.sh")).unwrap();
    assert_eq!(
        read(&task).unwrap_err(),
        "`TASK/tests/test.sh`: expected the script that judges, and there is none"
    );
    let task = harbor(folder.path(), "version = \"1\"\n");
    std::fs::remove_file(task.join("instruction.md")).unwrap();
    assert_eq!(read(&task).unwrap_err(), "read `TASK/instruction.md`");
}

#[cfg(unix)]
#[test]
fn links_stay_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let task = harbor(folder.path(), "version = \"1\"\n");
    std::os::unix::fs::symlink("../instruction.md", task.join("tests/link")).unwrap();
    assert!(read(&task).unwrap().hidden[0].files.contains_key("link"));
    std::os::unix::fs::symlink("/etc/passwd", task.join("tests/out")).unwrap();
    assert!(read(&task).unwrap_err().contains("leads out of the task"));
    std::fs::remove_file(task.join("tests/out")).unwrap();
    std::os::unix::fs::symlink("..", task.join("tests/round")).unwrap();
    assert!(read(&task).unwrap_err().contains("without end"));
}

const TERMINAL: &str = "instruction: |-\n  Do it.\n  Well.\nauthor_name: a\nauthor_email: b\ndifficulty: easy\ncategory: c\ntags: [t]\n\
    parser_name: pytest\nmax_agent_timeout_sec: 600.0\nmax_test_timeout_sec: 100\nrun_tests_in_same_shell: false\n";

fn terminal(root: &Path, yaml: &str) -> std::path::PathBuf {
    let task = root.join("task");
    write(&task, "task.yaml", yaml);
    write(&task, "Dockerfile", "FROM scratch\n");
    write(&task, "run-tests.sh", "pytest $TEST_DIR/test_outputs.py -rA\n");
    write(&task, "tests/test_outputs.py", "def test_a(): pass\n");
    write(&task, "solution.sh", "true\n");
    write(
        &task,
        "docker-compose.yaml",
        "services:\n  client:\n    build: { dockerfile: Dockerfile }\n    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}\n    \
        container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}\n    command: [ \"sh\", \"-c\", \"sleep infinity\" ]\n    \
        environment: [ \"TEST_DIR=${T_BENCH_TEST_DIR}\" ]\n    volumes: [ \"${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}\" ]\n",
    );
    task
}

#[test]
fn a_folder_of_terminal_bench_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let task = terminal(folder.path(), TERMINAL);
    let found = read(&task).unwrap();
    assert_eq!(found.unsupported, Vec::<String>::new());
    assert_eq!(
        (found.format.as_str(), found.issue.problem.as_str()),
        ("terminal-bench", "Do it.\nWell.")
    );
    assert_eq!((found.limits.agent_secs, found.limits.test_secs), (Some(600), Some(100)));
    assert_eq!(
        (found.network.clone(), &found.env["TEST_DIR"][..]),
        (NetworkPolicy::Full, "/tests")
    );
    assert_eq!(
        found.hidden[0].files.keys().collect::<Vec<_>>(),
        ["run-tests.sh", "test_outputs.py"]
    );
    let Some(Verification::AllTestsPass { parser, .. }) = &found.verification else {
        panic!("no tests")
    };
    assert_eq!((parser.origin, parser.name.as_str()), (Origin::TerminalBench, "pytest"));
    let task = terminal(
        folder.path(),
        "instruction: two\ndescriptions:\n- {key: one, description: a}\n- {key: two, description: b}\n",
    );
    let found = read(&task).unwrap();
    assert_eq!(
        (found.issue.problem.as_str(), found.limits.agent_secs, found.limits.test_secs),
        ("b", Some(360), Some(60))
    );
    let task =
        terminal(folder.path(), "instruction: a\nrun_tests_in_same_shell: yes\nsurprise: 1\n");
    assert_eq!(read(&task).unwrap().unsupported.len(), 2);
    let task = terminal(folder.path(), "instruction: a\nparser_name: x\n");
    assert_eq!(
        read(&task).unwrap_err(),
        "`TASK/task.yaml`: `parser_name`: expected one of `pytest`, `swebench`, `mlebench`, `swelancer`, `sweperf`, found `x`"
    );
}

#[test]
fn typed_solutions_are_scripts_where_they_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let task = terminal(folder.path(), TERMINAL);
    std::fs::remove_file(task.join("solution.sh")).unwrap();
    write(
        &task,
        "solution.yaml",
        "- command: echo a\n  block: true\n- command: echo b\n  block: true\n  append_enter: true\n",
    );
    let Some(Gold::Script { files, .. }) = read(&task).unwrap().gold else { panic!("no script") };
    assert_eq!(files[0].files["solution.sh"].content, Content::Text("echo a\necho b\n".to_owned()));
    write(&task, "solution.yaml", "- command: vim x\n  block: false\n");
    let found = read(&task).unwrap();
    assert!(
        found.gold.is_none() && found.unsupported[0].starts_with("`solution.yaml`"),
        "{:?}",
        found.unsupported
    );
}

fn sweb(root: &Path, id: &str) {
    let task = format!("tasks/{id}");
    let diff = "diff --git a/a b/a\r\n".replace("\r\n", "\n")
        + "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\r\n+b\r\n";
    write(
        root,
        &format!("{task}/task.yaml"),
        &format!(
            "instance_id: {id}\nrepo: own/tool\nversion: '1'\nbase_commit: 0123456789abcdef0123456789abcdef01234567\nsplit: test\n\
         datasets: [own/set]\nimage: x/y:z\nlog_parser: parse_log_pytest\neval_type: pass_and_fail\n"
        ),
    );
    write(root, &format!("{task}/tests.json"), "{\"FAIL_TO_PASS\": [\"a\"], \"PASS_TO_PASS\": []}");
    write(root, &format!("{task}/problem_statement.md"), "It fails.");
    write(root, &format!("{task}/gold.patch"), &diff);
    write(root, &format!("{task}/test.patch"), &diff);
    write(root, &format!("{task}/eval.sh"), "#!/bin/bash\ntrue\n");
    write(root, &format!("{task}/Dockerfile"), "FROM scratch\n");
    write(root, &format!("{task}/test_assets/test/i.png"), "x");
}

#[test]
fn a_folder_of_swe_bench_tasks_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "sweb.yaml", "datasets: [own/set]\nsplits: [test]\n");
    sweb(root, "own__tool-1");
    sweb(root, "own__tool-2");
    let suite = FolderSuite::open(root).unwrap();
    assert_eq!((suite.len(), suite.is_empty()), (2, false));
    for found in suite.instances() {
        let found = found.unwrap();
        assert_eq!(
            (found.format.as_str(), &found.tags[..]),
            ("swe-bench-folder", &["test".to_owned()][..])
        );
        assert_eq!(found.unsupported, Vec::<String>::new());
        let Some(Gold::Patch(patch)) = found.gold else { panic!("no patch") };
        assert!(patch.ends_with("+b\r\n"));
        assert_eq!((found.hidden[0].into.as_str(), found.hidden[0].files.len()), ("/testbed", 1));
        assert!(found.source.dockerfile.is_some());
    }
    write(root, "tasks/own__tool-2/task.yaml", "instance_id: other\n");
    let errors: Vec<String> = FolderSuite::open(root)
        .unwrap()
        .instances()
        .filter_map(Result::err)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.len() == 1 && errors[0].ends_with("task.yaml`: `instance_id`: expected the name of its folder, `own__tool-2`, found `other`"), "{errors:?}");
    let empty = tempfile::tempdir().unwrap();
    assert!(
        FolderSuite::open(empty.path())
            .unwrap_err()
            .to_string()
            .contains("there is no task folder here")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever stands in its files, a folder is read or refused.
    #[test]
    fn files_of_any_content_do_no_harm(toml in prop::collection::vec(prop::sample::select(vec![
        "version = \"1\"\n", "[environment]\n", "[agent]\n", "[verifier]\n", "[[steps]]\n", "name = \"a\"\n", "cpus = -1\n",
        "timeout_sec = inf\n", "artifacts = [\"..\"]\n", "[metadata]\n", "tags = 3\n", "memory = 1\n", "memory_mb = -5\n", "env = {}\n",
        "mcp_servers = [1]\n", "[task]\n", "docker_image = \"x y\"\n", "x = 1979-05-27\n", "healthcheck = {command = \"a\", retries = -3}\n",
    ]), 0..8), yaml in "[a-z:\\[\\]{}&*! \n-]{0,60}") {
        let folder = tempfile::tempdir().unwrap();
        let task = harbor(folder.path(), &toml.concat());
        let _ = read(&task);
        write(&task, "environment/docker-compose.yaml", &yaml);
        let _ = read(&task);
        let other = tempfile::tempdir().unwrap();
        let _ = read(&terminal(other.path(), &yaml));
    }
}
