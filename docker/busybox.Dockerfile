# The same as `docker/build-images.sh busybox`, for machines that reach a registry:
#   docker build -t spar-busybox -f docker/busybox.Dockerfile docker
FROM busybox:stable-musl
RUN echo 'user:x:1000:1000:user:/home/user:/bin/sh' >>/etc/passwd \
    && echo 'user:x:1000:' >>/etc/group \
    && mkdir -p /home/user
CMD ["sh"]
