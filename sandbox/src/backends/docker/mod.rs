//! Containers through the API of Docker or Podman.
