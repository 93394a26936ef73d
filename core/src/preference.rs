//! Which answer of a pair a sample is.

/// A sample's place in a preference: two answers to one prompt, of which one was chosen.
///
/// An answer can be several samples, as where a chat template writes earlier messages differently once later ones
/// follow; the log-probability of the answer is then the sum over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Preference {
    /// Tells the pair apart from the others that are trained with it.
    pub pair: u64,
    /// Whether it is the answer that was chosen; else the one that was rejected.
    pub is_chosen: bool,
    /// Samples that the answer consists of, this one among them; 1 or more.
    pub parts: u32,
}
