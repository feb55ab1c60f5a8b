# syntax=docker/dockerfile:1
# One image for every service; which one a container is says its command: services.<name> [argument].

FROM python:3.11-slim-bookworm AS build
SHELL ["/bin/sh", "-euc"]
WORKDIR /src
COPY requirements/build.lock requirements/services.lock requirements/
RUN python -m venv /opt/build \
    && /opt/build/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
       --require-hashes -r requirements/build.lock
RUN python -m venv /opt/doorcard \
    && /opt/doorcard/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
       --require-hashes -r requirements/services.lock
COPY pyproject.toml README.md ./
COPY protos protos
RUN mkdir gen \
    && find protos -name '*.proto' -exec /opt/build/bin/python -m grpc_tools.protoc -I protos \
       --python_out=gen --grpc_python_out=gen {} + \
    && find gen/doorcard -type d -exec touch {}/__init__.py \;
COPY services services
RUN /opt/build/bin/python -m hatchling build --target wheel --directory /dist \
    && /opt/doorcard/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
       --no-deps /dist/doorcard-*.whl \
    && /opt/doorcard/bin/python -m compileall -q /opt/doorcard/lib

FROM python:3.11-slim-bookworm AS service
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Doorcard" \
      org.opencontainers.image.description="The back end of an online Seven Card Stud room" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN groupadd --system --gid 10001 doorcard \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent doorcard
COPY --from=build /opt/doorcard /opt/doorcard
# The root file system is read-only: /tmp is a tmpfs, and all that is written.
ENV PATH=/opt/doorcard/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1 \
    DOORCARD_TABLES_FOLDER=/tmp/doorcard-tables
USER 10001:10001
WORKDIR /tmp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/opt/doorcard/bin/python", "-m", "services.runtime.health"]
ENTRYPOINT ["/opt/doorcard/bin/python", "-m"]
CMD ["services.table"]
