#!/bin/sh
# A new program takes over where the old one ran. An update that the agent is
# in the middle of goes on afterwards.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl try-restart gitopsd.service gitopsd-agent.service
if [ "$1" = configure ]; then
	# deb: what is enabled runs, also when the package had been removed.
	for unit in gitopsd.service gitopsd-agent.service; do
		if systemctl is-enabled --quiet $unit; then
			systemctl start $unit
		fi
	done
fi
