//! The client against the reference's server.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};
use spar_ors::{
    OrsAddress, OrsAnswer, OrsFault, OrsLimits, OrsOutput, OrsServer, OrsSession, OrsSplit,
    OrsTaskChoice,
};
use tokio::process::{Child, Command};
use tokio::time::sleep;

const LIMIT: Duration = Duration::from_secs(20);

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn done(session: &OrsSession, tool: &str, given: Value) -> OrsOutput {
    match session.call(tool, &arguments(given), LIMIT).await.unwrap() {
        OrsAnswer::Done(output) => output,
        OrsAnswer::Told(told) => panic!("{told}"),
    }
}

/// The server of the fixture, on the SDK of PyPI, once it answers.
async fn running() -> (Child, OrsServer) {
    let home = PathBuf::from(std::env::var("SPAR_ORS_SERVER").expect("SPAR_ORS_SERVER"));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/ors_server.py");
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut command = Command::new(home.join("bin/python"));
    command.arg(script).arg(port.to_string()).kill_on_drop(true);
    let child = command.spawn().unwrap();
    let url = format!("http://127.0.0.1:{port}");
    let secrets = [("key".to_owned(), "open sesame".to_owned())].into();
    let at = OrsAddress { name: "apples".to_owned(), url, secrets, ..OrsAddress::default() };
    let server = OrsServer::new(&at, OrsLimits::default()).unwrap();
    for _ in 0..200 {
        if server.environments().await.is_ok() {
            return (child, server);
        }
        sleep(Duration::from_millis(200)).await;
    }
    panic!("it did not start");
}

#[tokio::test]
#[ignore = "needs the ORS server from PyPI"]
async fn the_ors_server_of_pypi_is_played() {
    let (mut child, server) = running().await;
    assert_eq!(server.environments().await.unwrap(), ["apples"]);
    let split = |name: &str, kind: &str| OrsSplit { name: name.into(), kind: kind.into() };
    let splits = [split("train", "train"), split("extra", "validation")];
    assert_eq!(server.splits("apples").await.unwrap(), splits);
    assert_eq!(server.num_tasks("apples", "train").await.unwrap(), 2);

    let first = OrsTaskChoice::Index { split: "train".to_owned(), index: 0 };
    let session = server.begin("apples", &first).await.unwrap();
    assert_eq!(session.prompt().text, "How many apples are there?\nLook.");
    assert_eq!(session.prompt().media[0].media_type, "image/png");
    let tools = session.tools();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["answer", "count", "crash", "secret", "talk", "hint"]);
    assert_eq!(tools[0].parameters["properties"]["answer"]["type"], "integer");
    let counted =
        [done(&session, "count", json!({})).await, done(&session, "count", json!({})).await];
    let told = counted.map(|it| (it.content.text, it.reward, it.finished));
    assert_eq!(told, [("1".to_owned(), Some(0.25), false), ("2".to_owned(), None, false)]);
    assert_eq!(done(&session, "secret", json!({})).await.content.text, "open sesame");
    let long = done(&session, "talk", json!({ "length": 20_000 })).await.content.text;
    assert!(long == "é".repeat(20_000), "it comes in several events");
    for (tool, given, part) in [
        ("answer", json!({ "answr": 1 }), "Tool input validation error"),
        ("hint", json!({}), "is not a valid tool"),
        ("__init__", json!({}), "is not a valid tool"),
    ] {
        match session.call(tool, &arguments(given), LIMIT).await.unwrap() {
            OrsAnswer::Told(told) => assert!(told.contains(part), "{told}"),
            OrsAnswer::Done(output) => panic!("{output:?}"),
        }
    }
    let end = done(&session, "answer", json!({ "answer": 7 })).await;
    assert_eq!((end.reward, end.finished), (Some(1.0), true));
    session.close().await.unwrap();

    let spec = OrsTaskChoice::Spec(arguments(json!({ "apples": 3 })));
    let session = server.begin("apples", &spec).await.unwrap();
    assert_eq!(done(&session, "answer", json!({ "answer": 7 })).await.reward, Some(0.0));
    let error = session.call("crash", &Map::new(), LIMIT).await.unwrap_err();
    let OrsFault::Raised { message, .. } = error.fault else { panic!("{error}") };
    assert_eq!(message, "this tool is broken");
    session.close().await.unwrap();

    let beyond = OrsTaskChoice::Index { split: "train".to_owned(), index: 9 };
    let error = server.begin("apples", &beyond).await.unwrap_err().to_string();
    assert!(error.contains("status 400") && error.contains("Invalid index"), "{error}");
    let session = server.begin("apples", &first).await.unwrap();
    child.kill().await.unwrap();
    let error = session.call("count", &Map::new(), LIMIT).await.unwrap_err();
    assert!(matches!(error.fault, OrsFault::Broken { .. }), "{error}");
}
