//! Queries and resets per second, against the same in Python's `sqlite3`.
//!
//! Both sides run in one go, on the same database and queries, on one thread; what is printed is how many of each they do, and the
//! ratio. Python resets by a fresh connection in memory, into which the image of the database is loaded, and answers with
//! `fetchall`; spar resets the environment, and answers with a table of cells.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use spar_core::{Action, Seed};
use spar_envs::{Resources, open_environment};
use spar_sql::{Database, QueryLimits};
use spar_tasks::{SuiteOptions, open_suite};

const LASTING: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;

const SCRIPT: &str = "
CREATE TABLE makers(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE items(id INTEGER PRIMARY KEY, name TEXT, price INTEGER, maker_id INTEGER REFERENCES makers(id));
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20) INSERT INTO makers SELECT i, 'maker ' || i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500)
  INSERT INTO items SELECT i, 'item ' || i, (i * 37) % 101, 1 + i % 20 FROM n;
";

const QUERIES: [(&str, &str); 3] = [
    ("a count", "SELECT count(*) FROM items WHERE price > 50"),
    ("a lookup", "SELECT name, price FROM items WHERE id = 77"),
    (
        "a join",
        "SELECT makers.name, count(*) FROM items JOIN makers ON items.maker_id = makers.id GROUP BY makers.id",
    ),
];

const PYTHON: &str = r#"
import sqlite3, sys, time
path, seconds, queries = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
image = open(path, 'rb').read()

def rate(run):
    until, count, began = time.perf_counter() + seconds, 0, time.perf_counter()
    while time.perf_counter() < until:
        for _ in range(20):
            run()
        count += 20
    return count / (time.perf_counter() - began)

def fresh():
    connection = sqlite3.connect(':memory:')
    connection.deserialize(image)
    return connection

connection = fresh()
for query in queries:
    print(rate(lambda: connection.execute(query).fetchall()))

def reset():
    connection = fresh()
    connection.execute('SELECT count(*) FROM sqlite_master').fetchall()
    connection.close()

print(rate(reset))
"#;

fn main() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("shop.sqlite");
    write(&path);
    let database = Database::open(&path).expect("it was written");
    let limits = QueryLimits::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it starts");
    for round in 1..=ROUNDS {
        println!("round {round}");
        let theirs = python(&path);
        for ((name, query), python) in QUERIES.iter().zip(&theirs) {
            let ours = rate(|| {
                let found = database.query(query, &limits).expect("it runs");
                assert!(!found.rows.is_empty());
            });
            report(name, ours, *python);
        }
        let suite = open_suite("sql", &SuiteOptions::default()).expect("it ships");
        let task = suite.task("train", 0).expect("it is there");
        let mut env = open_environment(&task, &Resources::default()).expect("it opens");
        let ours = runtime.block_on(async {
            let (mut count, began) = (0_u64, Instant::now());
            while began.elapsed() < LASTING {
                for _ in 0..100 {
                    env.reset(Seed::from_u64(count)).await.expect("it is reset");
                }
                count += 100;
            }
            count as f64 / began.elapsed().as_secs_f64()
        });
        report("a reset", ours, theirs[QUERIES.len()]);
        let ours = runtime.block_on(async {
            let (mut count, began) = (0_u64, Instant::now());
            while began.elapsed() < LASTING {
                for _ in 0..100 {
                    assert!(env.fork().await.expect("it forks").is_some());
                }
                count += 100;
            }
            count as f64 / began.elapsed().as_secs_f64()
        });
        println!("a fork: {:.2} us", 1e6 / ours);
        let ours = runtime.block_on(async {
            let (mut count, began) = (0_u64, Instant::now());
            while began.elapsed() < LASTING {
                env.reset(Seed::from_u64(count)).await.expect("it is reset");
                while let Some(action) = env.oracle_action() {
                    env.step(&action).await.expect("it steps");
                }
                let verdict = env.verify().await.expect("it is judged");
                assert!(verdict.is_some_and(|verdict| verdict.success));
                count += 1;
            }
            count as f64 / began.elapsed().as_secs_f64()
        });
        println!("an episode of the oracle, judged: {ours:.0} per second");
        let step = runtime.block_on(async {
            env.reset(Seed::from_u64(0)).await.expect("it is reset");
            let action = Action::text("schema");
            let (mut count, began) = (0_u64, Instant::now());
            while began.elapsed() < LASTING {
                env.step(&action).await.expect("it steps");
                count += 1;
            }
            count as f64 / began.elapsed().as_secs_f64()
        });
        println!("a look at the tables: {:.2} us", 1e6 / step);
    }
}

/// Has Python write the database, since this program's are only read.
fn write(path: &Path) {
    let program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.close()";
    let ran = Command::new("python3").args(["-c", program]).arg(path).arg(SCRIPT).status();
    assert!(ran.is_ok_and(|status| status.success()), "python3 with sqlite3 is needed");
}

fn python(path: &Path) -> Vec<f64> {
    let output = Command::new("python3")
        .args(["-c", PYTHON])
        .arg(path)
        .arg(LASTING.as_secs_f64().to_string())
        .args(QUERIES.map(|(_, query)| query))
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| line.parse().expect("it is a number")).collect()
}

fn rate(mut run: impl FnMut()) -> f64 {
    let (mut count, began) = (0_u64, Instant::now());
    while began.elapsed() < LASTING {
        for _ in 0..20 {
            run();
        }
        count += 20;
    }
    count as f64 / began.elapsed().as_secs_f64()
}

fn report(name: &str, ours: f64, theirs: f64) {
    println!("{name}: spar {ours:.0} per second, Python {theirs:.0}, ratio {:.1}", ours / theirs);
}
