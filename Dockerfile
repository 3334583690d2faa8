# The sidecar as one image: the official Envoy, and app-health-agent with the filter inside, which starts it.
#
#   docker build --tag app-health .                     compiles filter and agent in a container
#   docker build --tag app-health --target prebuilt .   takes target/release/app-health-agent, which `./justw release` builds
#
# Both images that it starts from can be others. ENVOY_IMAGE needs `envoy` on its PATH, glibc 2.34 and libgcc, and no shell; Envoy's
# distroless images lack libgcc. BUILD_IMAGE needs cargo, a C compiler, a glibc no newer than Envoy's, and Rust's target
# wasm32-unknown-unknown, or rustup, which gets what rust-toolchain.toml names.
ARG ENVOY_IMAGE=envoyproxy/envoy:v1.40.0
ARG BUILD_IMAGE=rust:1.95-bookworm

# An empty folder, made without a shell.
FROM scratch AS empty
WORKDIR /empty

# All but the agent itself.
FROM ${ENVOY_IMAGE} AS sidecar
# A new volume that is mounted here takes over the owner.
COPY --from=empty --chown=1337:1337 /empty /var/run/app-health
# One folder deeper, since the mount itself may be open to everybody, as Kubernetes' emptyDir is, and the state is for its owner alone.
ENV APP_HEALTH_STATE_DIR=/var/run/app-health/state
USER 1337:1337
EXPOSE 15020 15021 15090
ENTRYPOINT ["app-health-agent"]
CMD ["run"]

# Stands before the stage that compiles, so that builders which walk through all stages in order stop here.
FROM sidecar AS prebuilt
COPY target/release/app-health-agent /usr/local/bin/app-health-agent

FROM ${BUILD_IMAGE} AS build
WORKDIR /app-health
COPY . .
# The filter first: the agent's build takes it in.
RUN cargo build --locked --package filter --target wasm32-unknown-unknown --profile wasm
RUN cargo build --locked --release --package agent

FROM sidecar
COPY --from=build /app-health/target/release/app-health-agent /usr/local/bin/app-health-agent
