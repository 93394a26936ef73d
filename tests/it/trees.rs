//! Trees of trajectories, trained as they are.

#[expect(dead_code, reason = "the example has a main of its own")]
#[path = "../../examples/tree_training.rs"]
mod tree_training;

#[tokio::test]
async fn a_tree_has_the_gradient_of_its_paths_and_reads_them_once() {
    for trunks in [1, 3] {
        let found = tree_training::compare(2, trunks, 6, 16, 1).await.unwrap();
        assert!(found.difference < 1e-5, "{}", found.difference);
        assert!(found.tokens[0] < found.tokens[1], "{:?}", found.tokens);
    }
}
