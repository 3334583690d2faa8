# The first process of a machine: it does what the installation of Istio's package and of app-health-agent does on a
# virtual machine, and then what systemd does for the unit `istio`. /machine has the files of `istioctl`.
set -e
mkdir -p /etc/certs /etc/istio/config /etc/istio/proxy /var/lib/istio/envoy /var/log/istio /var/run/secrets/tokens
cp /machine/root-cert.pem /etc/certs/
cp /machine/istio-token /var/run/secrets/tokens/
cp /machine/cluster.env /machine/sidecar.env /var/lib/istio/envoy/
cp /machine/mesh.yaml /etc/istio/config/mesh
cat /machine/hosts >>/etc/hosts
mv /usr/local/bin/pilot-agent /usr/local/bin/pilot-agent.istio
install -m 0755 /machine/istio-start.sh /usr/local/bin/
ln -s /opt/app-health/app-health-agent /usr/local/bin/pilot-agent
chown -R 1337:1337 /etc/certs /etc/istio /var/lib/istio /var/log/istio /var/run/secrets
cd /
istio-start.sh init
while [ ! -e /run/stopped ]; do
    setpriv --reuid 1337 --regid 1337 --clear-groups env USER=istio-proxy istio-start.sh run || true
    sleep 1
done
