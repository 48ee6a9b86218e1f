#!/bin/sh
# An upgrade runs this too (deb: "upgrade", rpm: 1) and must not stop anything.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now gitopsd.service gitopsd-agent.service
	fi
	;;
esac
