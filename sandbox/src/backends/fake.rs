//! A scripted backend for tests: no process, no isolation, files in memory.
