#!/bin/sh
# The user, /etc/doyen and /var/lib/doyen stay: the agent's promises as a voter
# outlive the program. Remove them once no other agent counts on it.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
