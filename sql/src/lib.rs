//! Questions over databases.
