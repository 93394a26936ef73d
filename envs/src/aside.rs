//! Work on a task of its own.

use tokio::task::JoinHandle;

/// Does `work` on a task of its own, so that sandboxes which compute in this process (WebAssembly)
/// do not hold up the episodes that are polled beside this one. Dropping the future ends it.
pub(crate) async fn aside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    struct Ends<T>(JoinHandle<T>);
    impl<T> Drop for Ends<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let mut task = Ends(tokio::spawn(work));
    match (&mut task.0).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down ends it, and then nobody polls this.
            Err(_) => std::future::pending().await,
        },
    }
}
