# The first process of a node's namespaces. $1: the node's folder; $2: the folder with Debian's
# packages, or empty if the machine has the programs. Changes made here are visible only inside the
# namespaces, and end with this process.
set -e
case $1/ in
/run/* | /var/lib/* | /var/log/*)
    echo "the folder of a node cannot be in $1, because the node has its own /run, /var/lib and /var/log"
    exit 1
    ;;
esac
mount --make-rprivate /
[ -z "$2" ] || mount -t overlay -o "lowerdir=$2/usr:/usr" overlay /usr
mkdir -p "$1/data/lib" "$1/log/var"
mount -t tmpfs tmpfs /run
# Kubelet writes sysctls that no namespace isolates, so copies are mounted over them.
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    own=/run/$(echo "$setting" | tr / .)
    cat "/proc/sys/$setting" >"$own"
    mount --bind "$own" "/proc/sys/$setting"
done
mount --bind "$1/data/lib" /var/lib
mount --bind "$1/log/var" /var/log
mkdir /run/upper /run/work
mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc
ip link set lo up
# The addresses of the node and of the Service `kubernetes`, at which Pods reach the API server.
ip address add 192.0.2.1/32 dev lo
ip address add 10.96.0.1/32 dev lo
echo 1 >/proc/sys/net/ipv4/ip_forward
: >"$1/started"
exec sleep infinity
