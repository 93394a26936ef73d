//! A corpus behind Search-R1's interface, asked by the client that episodes have and by others.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use spar_search::{Document, RetrievalClient, RetrievalConfig, SearchIndex};
use spar_serve::{RetrievalServer, RetrievalServerConfig};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::send;

fn index() -> SearchIndex {
    let documents = [
        "\"Graz\"\nA town on the Mur.",
        "\"Mur\"\nA river, on which Graz lies.",
        "\"Wien\"\nA city.",
    ];
    let document =
        |(id, contents): (usize, &&str)| Document::from_contents(id.to_string(), contents);
    SearchIndex::in_memory(documents.iter().enumerate().map(document).collect()).unwrap()
}

async fn start(
    config: RetrievalServerConfig,
) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<usize>) {
    start_with(index(), config).await
}

async fn start_with(
    index: SearchIndex,
    config: RetrievalServerConfig,
) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<usize>) {
    let server = RetrievalServer::bind("127.0.0.1:0", index, config).await.unwrap();
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(server.serve(async move {
        let _ = stopped.await;
    }));
    (address, stop, served)
}

#[tokio::test]
async fn client_and_server_agree() {
    let (address, stop, served) = start(RetrievalServerConfig::default()).await;
    let client =
        RetrievalClient::new(&format!("http://{address}"), RetrievalConfig::default()).unwrap();
    let index = index();
    for query in ["graz", "river city", "a", "", "\u{1f600} \" \\ \u{0}"] {
        for k in [1, 2, 100] {
            let expected = index.search(query, k).unwrap();
            assert_eq!(client.search(query, k).await.unwrap(), expected, "{query}");
        }
    }
    stop.send(()).unwrap();
    assert_eq!(served.await.unwrap(), 0);
    let config = RetrievalConfig {
        attempts: 2,
        back_off: Duration::from_millis(1),
        ..RetrievalConfig::default()
    };
    let client = RetrievalClient::new(&format!("http://{address}"), config).unwrap();
    assert!(client.search("graz", 1).await.is_err(), "nobody is there any more");
}

#[tokio::test]
async fn the_wire_is_search_r1s() {
    let (address, _stop, _) = start(RetrievalServerConfig::default()).await;
    let ask = |body: serde_json::Value| async move {
        let headers = "content-type: application/json\r\n";
        send(address, "POST", "/retrieve", headers, body.to_string().as_bytes()).await
    };
    let told = ask(json!({ "queries": ["mur river", "zebra"], "topk": 1, "return_scores": true }))
        .await
        .ok();
    let document = &told["result"][0][0]["document"];
    assert_eq!(document["contents"], "\"Mur\"\nA river, on which Graz lies.");
    assert_eq!((&document["id"], &document["title"]), (&json!("1"), &json!("Mur")));
    assert!(told["result"][0][0]["score"].as_f64().unwrap() > 0.0);
    assert_eq!((told["result"][0].as_array().unwrap().len(), &told["result"][1]), (1, &json!([])));
    // Documents by themselves, and the server's own number of them.
    let bare = ask(json!({ "queries": ["a"] })).await.ok();
    assert_eq!(bare["result"][0].as_array().unwrap().len(), 3);
    assert!(bare["result"][0][0]["contents"].is_string());
    let health = send(address, "GET", "/health", "", b"").await.ok();
    assert_eq!(health["documents"], 3);
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused() {
    let config = RetrievalServerConfig {
        max_queries: 2,
        max_body_bytes: 20_000,
        ..RetrievalServerConfig::default()
    };
    let (address, _stop, _) = start(config).await;
    let refuse = |body: String| async move {
        send(address, "POST", "/retrieve", "", body.as_bytes()).await.error()
    };
    let (status, message, _) = refuse("{".to_owned()).await;
    assert!(status == 400 && message.contains("EOF"), "{message}");
    assert_eq!(refuse(json!({ "queries": "a" }).to_string()).await.0, 400);
    assert_eq!(refuse(json!({ "queries": ["a", "b", "c"] }).to_string()).await.2, "queries");
    assert_eq!(refuse(json!({ "queries": ["a"], "topk": 1001 }).to_string()).await.2, "topk");
    assert_eq!(refuse(json!({ "queries": ["a"], "topk": -1 }).to_string()).await.0, 400);
    let long = json!({ "queries": ["a", "b ".repeat(4000)] }).to_string();
    let (status, message, field) = refuse(long).await;
    assert!(
        status == 400 && field == "queries[1]" && message.contains("4096 are allowed"),
        "{message}"
    );
    assert_eq!(refuse(" ".repeat(30_000)).await.0, 413);
    assert_eq!(send(address, "GET", "/retrieve", "", b"").await.status, 405);
    assert_eq!(send(address, "POST", "/search", "", b"{}").await.status, 404);
}

#[tokio::test]
async fn an_answer_without_end_is_refused() {
    let long = Document::from_contents("0", &format!("Graz\n{}", "x".repeat(4 << 20)));
    let index = SearchIndex::in_memory(vec![long]).unwrap();
    let (address, _stop, _) = start_with(index, RetrievalServerConfig::default()).await;
    let ask = |count: usize| async move {
        let body = json!({ "queries": vec!["graz"; count], "topk": 1 }).to_string();
        send(address, "POST", "/retrieve", "", body.as_bytes()).await
    };
    let (status, message, field) = ask(9).await.error();
    assert!(status == 400 && field == "topk", "{message}");
    assert!(message.contains("more than 67108864 bytes"), "{message}");
    assert_eq!(ask(1).await.ok()["result"][0].as_array().unwrap().len(), 1);
}
