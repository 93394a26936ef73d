//! The toolset over a checkout that is written here.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use spar_core::{Action, Seed};
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_sandbox::{Image, registry};
use spar_tasks::TerminalTask;

use crate::terminal::Terminal;
use crate::toolsets::ToolsetChoice;
use crate::{Environment, Resources, Sandboxes};

/// A checkout with an editor that prints what it is given, and a bash in a few lines.
fn write(folder: &Path) {
    let put = |path: &str, text: &str| {
        let path = folder.join("src/r2egym/agenthub").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put(
        "config/edit_non_fn_calling.yaml",
        "system_prompt: s\ninstance_prompt: 'Do {problem_statement} {{x}}'\nother_args: {max_retries: 3}\n\
         command_files: [./x/file_editor.py, ./x/execute_bash.py, ./x/finish.py]\n",
    );
    put("__init__.py", "CONTINUE_MSG = \"\"\"\nCall one.\n\"\"\"\n");
    put("tools/finish.py", "#!/root/.venv/bin/python\n");
    put("tools/file_editor.py", "#!/root/.venv/bin/python\nimport sys\nprint(sys.argv[1:])\n");
    put(
        "tools/execute_bash.py",
        "#!/root/.venv/bin/python\nimport argparse, subprocess, sys\np = argparse.ArgumentParser()\np.add_argument(\"--cmd\")\n\
         r = subprocess.run(p.parse_args().cmd, shell=True, capture_output=True, text=True)\n\
         print(r.stdout + r.stderr)\nsys.exit(r.returncode)\n",
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn programs_of_a_checkout_run_in_namespaces() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let options = json!({ "folder": folder.path(), "command_secs": 5, "max_steps": 6 });
    let toolset = ToolsetChoice::new("r2e", serde_json::from_value(options).unwrap()).unwrap();
    let task = spar_tasks::Task {
        id: "own/test/a".to_owned(),
        environment: "terminal".to_owned(),
        parameters: serde_json::to_value(TerminalTask::new("it", "test -f made")).unwrap(),
        instruction: String::new(),
        max_turns: 9,
        tags: Vec::new(),
        graders: Vec::new(),
    };
    let pool = SandboxPool::new(registry::open("local").unwrap(), PoolConfig::default()).unwrap();
    let mut sandboxes = Sandboxes::new(Arc::new(pool));
    sandboxes.image = Image::Reference("host".to_owned());
    let resources = Resources::with_sandboxes(sandboxes);
    let mut env = Terminal::open(&task, &resources).unwrap();
    assert!(env.use_toolset(&toolset));
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    assert!(first.text.starts_with("Do it {x}\nSteps Remaining: 6"), "{}", first.text);
    let mut act = async |text: &str| env.step(&Action::text(text)).await.unwrap();
    let step = act("I think.").await;
    assert_eq!(
        (step.observation.text.as_str(), step.valid),
        ("\nCall one.\n\nSteps Remaining: 5", false)
    );
    let call = |function: &str, name: &str, value: &str| {
        format!(
            "Words.\n<function={function}>\n<parameter={name}>\n{value}\n</parameter>\n</function>"
        )
    };
    let step = act(&call("file_editor", "command", "it's")).await;
    assert_eq!(
        step.observation.text,
        "Execution output of [file_editor]:\n[\"it's\"]\n\nSteps Remaining: 4"
    );
    let step = act(&call("execute_bash", "cmd", "touch made; seq 100; exit 3")).await;
    let text = &step.observation.text;
    assert!(
        text.starts_with(
            "Exit code: Error: Exit code 3\nExecution output of [execute_bash]:\n1\n2\n"
        ) && text.contains("\n40\n[21 lines left out]\n62\n")
            && text.ends_with("\nSteps Remaining: 3"),
        "{text}"
    );
    let step =
        act(&call("execute_bash", "cmd", "printf '\\033[31mred\\033[0m\\r'; sleep 60")).await;
    assert!(step.observation.text.contains("It was ended after 5 s."), "{}", step.observation.text);
    let step = act(&call("fly", "command", "x")).await;
    assert!(!step.valid && step.observation.text.contains("There is no function `fly`"));
    let step = act(&call("finish", "command", "submit")).await;
    assert!(step.terminated && step.observation.text.starts_with("<<< Finished >>>"));
    assert!(env.verify().await.unwrap().unwrap().success);
    env.close().await.unwrap();
}
