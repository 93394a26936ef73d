# The same as `docker/build-images.sh base`, for machines that reach a registry:
#   docker build -t spar-base -f docker/base.Dockerfile docker
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git python3 python3-pip python3-pytest python3-venv \
    && rm -rf /var/lib/apt/lists/*
ENV LANG=C.UTF-8
CMD ["bash"]
