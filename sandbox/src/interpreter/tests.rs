use std::sync::Arc;
use std::time::Duration;

use super::{CellEnd, Interpreter, InterpreterOptions, Language};
use crate::backends::fake::FakeBackend;
use crate::{Image, Sandbox, SandboxBackend, SandboxSpec};

async fn sandbox(backend: &dyn SandboxBackend) -> Arc<dyn Sandbox> {
    Arc::from(backend.create(&SandboxSpec::new(Image::Default)).await.unwrap())
}

/// In memory, where shell commands stand for code.
#[tokio::test(start_paused = true)]
async fn whatever_a_cell_does_is_told_within_its_limits() {
    let sandbox = sandbox(&FakeBackend::new()).await;
    let options = InterpreterOptions {
        output_limit_bytes: 64,
        code_limit_bytes: 100,
        ..InterpreterOptions::default()
    };
    let mut cells = Interpreter::open(&sandbox, Language::Python, &options).await.unwrap();
    for (code, text, end) in [
        ("echo a", "a", CellEnd::Done),
        ("true", "[no output]", CellEnd::Done),
        ("echo a; complain b", "a\nb", CellEnd::Failed),
        ("sleep 100", "[stopped after 10 s]", CellEnd::TimedOut),
    ] {
        let cell = cells.run(code).await.unwrap();
        assert_eq!(cell.end, end, "{code}");
        assert!(cell.text.starts_with(text), "{code}: {}", cell.text);
    }
    let cell = cells.run_within("sleep 100", Duration::from_secs(3)).await.unwrap();
    assert!(cell.text.starts_with("[stopped after 3 s]"), "{}", cell.text);
    let long = cells.run("repeat 1000").await.unwrap();
    assert!(long.text.contains("bytes left out") && long.text.len() < 200, "{}", long.text);
    let refused = cells.run(&"x".repeat(101)).await.unwrap();
    assert_eq!((refused.end, refused.restarted), (CellEnd::Refused, false));
    assert!(refused.text.contains("101 bytes"), "{}", refused.text);
    assert_eq!(cells.num_cells(), 7);
    cells.close().await.unwrap();
}

#[cfg(feature = "local")]
#[tokio::test]
#[ignore = "needs namespaces"]
async fn interpreters_in_namespaces_keep_variables_and_come_back() {
    let sandbox = sandbox(&*crate::registry::open("local").unwrap()).await;
    let options =
        InterpreterOptions { cell: Duration::from_secs(3), ..InterpreterOptions::default() };
    let mut python = Interpreter::open(&sandbox, Language::Python, &options).await.unwrap();
    for (code, part, end, restarted) in [
        ("x = 5\nprint('a')\nx + 1", "a\n6", CellEnd::Done, false),
        ("x", "5", CellEnd::Done, false),
        ("def f():\n    return y\nf()", "name 'y' is not defined", CellEnd::Failed, false),
        ("print(input())", "EOFError", CellEnd::Failed, false),
        ("for _ in range(1 << 6): print('a' * (1 << 20))", "left out", CellEnd::Done, false),
        ("print('\\x1eE0 0\\x1e')", "E0 0", CellEnd::Done, false),
        ("while True: pass", "restarted", CellEnd::TimedOut, true),
        ("x", "NameError", CellEnd::Failed, false),
        ("import os; os._exit(0)", "restarted", CellEnd::Failed, true),
        ("raise SystemExit(0)", "restarted", CellEnd::Done, true),
        ("import os; os.close(1); os.close(2)", "restarted", CellEnd::Failed, true),
        ("import os; os.kill(os.getpid(), 9)", "crashed", CellEnd::Crashed, true),
        ("1", "1", CellEnd::Done, false),
    ] {
        let cell = python.run(code).await.unwrap();
        assert!(cell.text.contains(part), "{code}: {}", cell.text);
        assert_eq!((cell.end, cell.restarted), (end, restarted), "{code}: {}", cell.text);
    }
    python.close().await.unwrap();
    sandbox.close().await.unwrap();
}
