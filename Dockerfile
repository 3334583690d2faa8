# The sidecar image: the official Envoy, and app-health-agent, which contains the filter and starts Envoy.
#
#   docker build --tag app-health .                     compiles filter and agent in a container
#   docker build --tag app-health --target prebuilt .   uses target/release/app-health-agent from `./justw release`
#
# Both base images can be replaced. ENVOY_IMAGE needs `envoy` on its PATH and glibc 2.34, but no shell;
# Envoy's distroless images work. BUILD_IMAGE needs rustup, a C compiler, and a glibc that is not newer
# than Envoy's.
# ENVOY_VERSION is the version of Envoy in ENVOY_IMAGE. If it is empty, the agent asks Envoy at each
# start, which delays it.
ARG ENVOY_VERSION=1.40.0
ARG ENVOY_IMAGE=envoyproxy/envoy:v${ENVOY_VERSION}
ARG BUILD_IMAGE=rust:1.95-bookworm

# An empty directory, created without a shell.
FROM scratch AS empty
WORKDIR /empty

# Everything except the agent.
FROM ${ENVOY_IMAGE} AS sidecar
# A new volume that is mounted here gets this owner.
COPY --from=empty --chown=1337:1337 /empty /var/run/app-health
# A subdirectory, because every user may write to the mount itself (Kubernetes' emptyDir), and only the
# owner may access the state.
ENV APP_HEALTH_STATE_DIR=/var/run/app-health/state
ARG ENVOY_VERSION
ENV APP_HEALTH_ENVOY_VERSION=${ENVOY_VERSION}
LABEL org.opencontainers.image.title="app-health" \
    org.opencontainers.image.description="Envoy with app-health-agent, which contains the filter that answers kubelet's probes" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.vendor="app-health developers"
USER 1337:1337
EXPOSE 15020 15021 15090
ENTRYPOINT ["app-health-agent"]
CMD ["run"]

# Comes before the stage that compiles, so that builders which run all stages in order stop here.
FROM sidecar AS prebuilt
COPY target/release/app-health-agent /usr/local/bin/app-health-agent

FROM ${BUILD_IMAGE} AS build
# The commit for `--version`, because .dockerignore leaves the history out.
ARG COMMIT=unknown
ENV APP_HEALTH_BUILD_COMMIT=${COMMIT}
WORKDIR /app-health
COPY . .
# The agent's build embeds both forms of the filter.
RUN cargo rustc --locked --package filter --target wasm32-unknown-unknown --profile wasm --crate-type cdylib
RUN cargo build --locked --release --package filter-native
RUN target="$(uname -m)-unknown-linux-musl" && rustup target add "$target" \
    && cargo build --locked --release --package agent --no-default-features --target "$target"

FROM sidecar
COPY --from=build /app-health/target/*-musl/release/app-health-agent /usr/local/bin/app-health-agent
