#!/bin/sh
# Makes the small Debian of Pods and machines: FOLDER/debian.tar. Runs in a mount namespace.
set -eu
programs=$1 folder=$2 suite=$3 mirror=$4

[ -n "$mirror" ] || { echo "apt names no mirror of Debian '$suite'"; exit 1; }
mount -t overlay overlay -o "lowerdir=$programs/usr:/usr" /usr
# iptables captures traffic, systemd starts the units.
debootstrap --force-check-gpg --variant=minbase --include=iptables,systemd,systemd-sysv "$suite" "$folder/root" "$mirror"
cd "$folder/root"
# What runs in a container reads no documents, installs no package.
rm -rf var/cache/apt/* var/lib/apt/lists/* var/log/* usr/share/doc usr/share/man usr/share/locale usr/share/info
tar --create --one-file-system --numeric-owner --exclude "./proc/*" --exclude "./sys/*" --exclude "./dev/*" \
    --file "$folder/debian.tar" .
