# Keeps a node running until its test ends, and then removes everything but the logs.
# $1: the node's folder; $2: Debian's packages; $3: the name of its control groups; $4: the script of
# the first process. The test holds the other end of standard input, which is closed when it ends.
trap '' INT TERM HUP
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ ! -f "$hierarchy/cgroup.procs" ] || mkdir "$hierarchy/$3"
done
setpriv --pdeathsig KILL unshare --mount --net --pid --fork --mount-proc --kill-child sh "$4" "$1" "$2" </dev/null &
namespaces=$!
cat >/dev/null
kill -KILL $namespaces
wait $namespaces
# Mounts and control groups disappear a moment after the processes, so removal is retried.
for _ in $(seq 100); do
    rm -rf "$1/data" "$1/cluster/etcd" 2>/dev/null
    find /sys/fs/cgroup -depth -type d -path "*/$3*" -exec rmdir {} + 2>/dev/null
    [ -e "$1/data" ] || [ -n "$(find /sys/fs/cgroup -maxdepth 2 -name "$3")" ] || break
    sleep 0.2
done
