#!/bin/sh
# What a device runs stays, and the agent's state with it: a device that gets
# the package again goes on where it was.
set -e
if [ "$1" = purge ]; then
	# Without its unit, systemctl no longer disables a service.
	rm -f /etc/systemd/system/multi-user.target.wants/gitopsd.service /etc/systemd/system/multi-user.target.wants/gitopsd-agent.service
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
