//! What commands have to do.

use std::time::{Duration, Instant};

use super::context::{Context, Finding, ensure, sh};
use super::{Trial, trials};
use crate::{ExecEnd, ExecRequest, Stream};

pub(super) const TRIALS: &[Trial] = trials![
    "a command's output and its exit with 0 come back" => echo,
    "an exit code is an observation" => exit_code,
    "standard error is told apart from standard output" => complain,
    "a program that does not exist exits with 127" => missing_program,
    "standard input reaches the command and ends" => stdin,
    "a command without input reads nothing" => no_stdin,
    "variables of spec and request are set, the request's first" => environment,
    "nothing of the host's environment is passed on" => no_host_environment,
    "the working directory is that of the request, else of the spec" => workdir,
    "output is capped, and what is left out is counted exactly" => capped,
    "much output is taken in bounded memory" => much_output,
    "bytes that are no text come as they are" => garbage,
    "output is handed over whole, in order, while the command runs" => streaming,
    "a deadline ends a command that never would" => deadline,
    "a dropped exec leaves the sandbox usable" => dropped,
    "a command that ends by a signal or a trap says so" => crash,
    "several commands run at one time" => concurrent,
];

async fn echo(context: &Context<'_>) -> Result<(), Finding> {
    let result = context.once(&context.options.programs.echo, |_, _| {}).await?;
    ensure!(result.end.is_success(), "it {}", result.end);
    ensure!(result.stdout.text() == "hello\n", "it wrote {:?}", result.stdout.text());
    ensure!(result.stderr.total_bytes() == 0, "it complained: {}", result.stderr.text());
    Ok(())
}

async fn exit_code(context: &Context<'_>) -> Result<(), Finding> {
    let result = context.once(&context.options.programs.fail, |_, _| {}).await?;
    ensure!(result.end == ExecEnd::Exited { code: 3 }, "it {}", result.end);
    Ok(())
}

async fn complain(context: &Context<'_>) -> Result<(), Finding> {
    let result = context.once(&context.options.programs.complain, |_, _| {}).await?;
    ensure!(result.stderr.text() == "oops\n", "standard error: {:?}", result.stderr.text());
    ensure!(result.stdout.total_bytes() == 0, "standard output: {:?}", result.stdout.text());
    Ok(())
}

async fn missing_program(context: &Context<'_>) -> Result<(), Finding> {
    let end = context.once(&context.options.programs.missing, |_, _| {}).await?.end;
    ensure!(end == ExecEnd::Exited { code: 127 }, "it {end}");
    Ok(())
}

async fn stdin(context: &Context<'_>) -> Result<(), Finding> {
    // More than any pipe holds.
    let input: Vec<u8> = (0..300_000u32).map(|num| (num % 251) as u8).collect();
    let given = input.clone();
    let result =
        context.once(&context.options.programs.cat, |_, request| request.stdin = given).await?;
    ensure!(result.end.is_success(), "it {}: {}", result.end, result.stderr.text());
    ensure!(*result.stdout.bytes() == *input, "{} bytes came back", result.stdout.total_bytes());
    Ok(())
}

async fn no_stdin(context: &Context<'_>) -> Result<(), Finding> {
    let result = context.once(&context.options.programs.cat, |_, _| {}).await?;
    ensure!(result.end.is_success(), "it {}", result.end);
    ensure!(result.stdout.total_bytes() == 0, "it read {:?}", result.stdout.text());
    Ok(())
}

async fn environment(context: &Context<'_>) -> Result<(), Finding> {
    let result = context
        .once(&context.options.programs.environment, |spec, request| {
            let pairs = [("A_SPEC", "of spec"), ("BOTH", "of spec")];
            spec.env = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let pairs = [("A_REQUEST", "of request"), ("BOTH", "of request")];
            request.env = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        })
        .await?;
    let text = result.stdout.text();
    for line in ["A_SPEC=of spec", "A_REQUEST=of request", "BOTH=of request"] {
        ensure!(text.lines().any(|found| found == line), "`{line}` is missing in:\n{text}");
    }
    Ok(())
}

async fn no_host_environment(context: &Context<'_>) -> Result<(), Finding> {
    let result = context.once(&context.options.programs.environment, |_, _| {}).await?;
    let text = result.stdout.text();
    // These every system has, with the same values everywhere.
    let usual =
        ["PATH", "HOME", "PWD", "SHLVL", "TERM", "USER", "LOGNAME", "SHELL", "_", "HOSTNAME"];
    for (name, value) in std::env::vars() {
        let line = format!("{name}={value}");
        let is_leaked = text.lines().any(|found| found == line);
        ensure!(!is_leaked || usual.contains(&name.as_str()), "`{name}` is the host's");
    }
    Ok(())
}

async fn workdir(context: &Context<'_>) -> Result<(), Finding> {
    let program = &context.options.programs.workdir;
    let result =
        context.once(program, |spec, _| spec.workdir = Some("/tmp/made/here".into())).await?;
    ensure!(result.stdout.text() == "/tmp/made/here\n", "of the spec: {:?}", result.stdout.text());
    let result = context
        .once(program, |spec, request| {
            spec.workdir = Some("/tmp/made".into());
            request.workdir = Some("/tmp".into());
        })
        .await?;
    ensure!(result.stdout.text() == "/tmp\n", "of the request: {:?}", result.stdout.text());
    Ok(())
}

async fn capped(context: &Context<'_>) -> Result<(), Finding> {
    let result = context
        .once(&context.options.programs.zeros, |_, request| {
            request.command.push("3000000".to_owned());
            request.output_limit_bytes = 1000;
        })
        .await?;
    let (total, elided) = (result.stdout.total_bytes(), result.stdout.elided_bytes());
    ensure!((total, elided) == (3_000_000, 2_999_000), "{total} in all, {elided} left out");
    Ok(())
}

async fn much_output(context: &Context<'_>) -> Result<(), Finding> {
    let many = context.options.many_bytes;
    let before = peak_memory_bytes();
    let result = context
        .once(&context.options.programs.zeros, |_, request| request.command.push(many.to_string()))
        .await?;
    let (end, total) = (result.end, result.stdout.total_bytes());
    ensure!(end.is_success() && total == many, "it {end} after {total} bytes");
    let grown = peak_memory_bytes().saturating_sub(before);
    ensure!(grown < 256 << 20, "this process grew by {} MiB", grown >> 20);
    Ok(())
}

/// The most memory this process ever had; 0 where that is not told.
fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse().ok());
    kilobytes.unwrap_or(0) << 10
}

async fn garbage(context: &Context<'_>) -> Result<(), Finding> {
    let result = context.once(&context.options.programs.garbage, |_, _| {}).await?;
    let bytes = result.stdout.bytes();
    ensure!(*bytes == [0, 255, 30, 128, 10], "{bytes:?} came back");
    Ok(())
}

async fn streaming(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let request = ExecRequest::sh("for i in 1 2 3; do echo $i; echo e$i >&2; sleep 1; done");
    let (mut stdout, mut stderr, mut first) = (Vec::new(), Vec::new(), None);
    let began = Instant::now();
    let result = sandbox
        .exec_streaming(&request, &mut |stream: Stream, bytes: &[u8]| {
            first.get_or_insert_with(|| began.elapsed());
            match stream {
                Stream::Stdout => stdout.extend_from_slice(bytes),
                Stream::Stderr => stderr.extend_from_slice(bytes),
            }
        })
        .await?;
    sandbox.close().await?;
    ensure!(stdout == b"1\n2\n3\n", "{:?}", String::from_utf8_lossy(&stdout));
    ensure!(stderr == b"e1\ne2\ne3\n", "{:?}", String::from_utf8_lossy(&stderr));
    let is_early = first.is_some_and(|first| first + Duration::from_secs(1) < result.wall);
    ensure!(is_early, "the first came after {first:?} of {:?}", result.wall);
    Ok(())
}

async fn deadline(context: &Context<'_>) -> Result<(), Finding> {
    let began = Instant::now();
    let result = context
        .once(&context.options.programs.forever, |_, request| {
            request.timeout = Some(Duration::from_secs(1));
        })
        .await?;
    ensure!(result.end == ExecEnd::TimedOut, "it {}", result.end);
    ensure!(began.elapsed().as_secs() < 60, "it took {:?}", began.elapsed());
    Ok(())
}

async fn dropped(context: &Context<'_>) -> Result<(), Finding> {
    let (program, spec) = context.program(&context.options.programs.forever)?;
    let sandbox = context.backend.create(&spec).await?;
    let request = program.request();
    let _ = tokio::time::timeout(Duration::from_millis(500), sandbox.exec(&request)).await;
    let again = request.with_timeout(Duration::from_millis(500));
    let result = sandbox.exec(&again).await?;
    sandbox.close().await?;
    ensure!(result.end == ExecEnd::TimedOut, "the next {}", result.end);
    Ok(())
}

async fn crash(context: &Context<'_>) -> Result<(), Finding> {
    let result = context.once(&context.options.programs.crash, |_, _| {}).await?;
    let is_told = matches!(result.end, ExecEnd::Signalled { .. } | ExecEnd::Trapped);
    ensure!(is_told, "it {}", result.end);
    Ok(())
}

async fn concurrent(context: &Context<'_>) -> Result<(), Finding> {
    let (program, spec) = context.program(&context.options.programs.cat)?;
    let sandbox = context.backend.create(&spec).await?;
    let runs = (0..8).map(|num| {
        let request = program.request().with_stdin(format!("input {num}").repeat(1000));
        let sandbox = &sandbox;
        async move { (num, sandbox.exec(&request).await) }
    });
    let results = futures::future::join_all(runs).await;
    if context.can().posix {
        let both = futures::future::join(
            sh(&*sandbox, "i=0; until [ -e /tmp/meet ]; do sleep 1; done; echo met"),
            sh(&*sandbox, "sleep 1; : >/tmp/meet"),
        );
        let (met, _) = both.await;
        ensure!(met? == "met\n", "two commands did not meet");
    }
    sandbox.close().await?;
    for (num, result) in results {
        let text = result?.stdout.text();
        ensure!(text == format!("input {num}").repeat(1000), "command {num} wrote {text:?}");
    }
    Ok(())
}
