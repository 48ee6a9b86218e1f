#!/bin/sh
# An upgrade runs this too (deb: "upgrade", rpm: 1) and must not stop anything.
# A deb leaves its services enabled until it is purged, an rpm does not: each as
# the other packages of its system.
set -e
[ -d /run/systemd/system ] || exit 0
case "$1" in
remove) systemctl stop gitopsd.service gitopsd-agent.service ;;
0) systemctl disable --now gitopsd.service gitopsd-agent.service ;;
esac
