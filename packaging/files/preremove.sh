#!/bin/sh
# deb calls this with "remove", and with "upgrade" before another version; rpm with 0
# before a removal.
set -e
case $1 in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl --no-reload disable --now doyen-act.service doyen.service
fi
