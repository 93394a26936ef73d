//! What CPython gives for the same input.
