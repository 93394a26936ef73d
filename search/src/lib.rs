//! Questions over a corpus.
