#!/bin/sh
# Starts the agent for arm64, which starts Envoy for arm64, and sends a probe to an application through them:
# probe-arm64.sh AGENT ENVOY wasm|native. It runs in a user, a mount and a network namespace of its own.
set -eu
agent=$1
envoy=$2
form=$3
qemu=$PWD/.tools/arm64
here=$(mktemp -d)
children=
trap 'kill $children 2>/dev/null || true; wait; rm -rf "$here"' EXIT
ip link set lo up

# The agent starts itself again and then Envoy, so the kernel must know how to run programs for arm64. Since
# Linux 6.7 each user namespace can have interpreters of its own.
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc || {
    echo "probe-arm64: cannot mount binfmt_misc in a user namespace, which needs Linux 6.7" >&2
    exit 1
}
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":arm64:M::$magic:$mask:$qemu/usr/bin/qemu-aarch64-static:F" >/proc/sys/fs/binfmt_misc/register
export QEMU_LD_PREFIX="$qemu/usr/aarch64-linux-gnu"

mkdir "$here/www"
echo fine >"$here/www/ready"
python3 -m http.server --bind 127.0.0.1 --directory "$here/www" 8080 >"$here/application.log" 2>&1 &
children=$!

fail() {
    echo "probe-arm64: $form: $*" >&2
    cat "$here/agent.log" >&2
    exit 1
}

status() { # URL
    curl --silent --output /dev/null --write-out '%{http_code}' "$1" || true
}

until_status() { # expected status, URL
    tries=0
    until [ "$(status "$2")" = "$1" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || fail "$2 answers $(status "$2"), not $1"
        sleep 0.2
    done
}

probers='{"/app-health/app/readyz": {"httpGet": {"port": 8080, "path": "/ready"}}}'
INSTANCE_IP=127.0.0.1 ISTIO_KUBE_APP_PROBERS=$probers "$agent" bootstrap --filter "$form" \
    --envoy-version 1.40 --state-dir "$here/validated" --output "$here/envoy.json"
"$envoy" --mode validate --config-path "$here/envoy.json" --concurrency 1 >"$here/agent.log" 2>&1 ||
    fail "Envoy rejects the bootstrap"
# qemu has no IP_BIND_ADDRESS_NO_PORT, which Envoy sets where it chooses the source address.
INSTANCE_IP=127.0.0.1 ISTIO_KUBE_APP_PROBERS=$probers "$agent" run --filter "$form" \
    --source-bind off --envoy "$envoy" --envoy-version 1.40 --state-dir "$here/state" >"$here/agent.log" 2>&1 &
children="$children $!"
until_status 200 http://127.0.0.1:15021/healthz/ready
until_status 200 http://127.0.0.1:15020/app-health/app/readyz
rm "$here/www/ready"
until_status 404 http://127.0.0.1:15020/app-health/app/readyz
until_status 404 http://127.0.0.1:15020/app-health/other/readyz
"$agent" drain
until_status 503 http://127.0.0.1:15021/healthz/ready
echo "answered by Envoy for arm64 with the $form filter: 200, 404; drained"
