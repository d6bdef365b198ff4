#!/bin/sh
# deb calls this with "configure" and the version before, if any; rpm with 1 at the
# first installation, and with 2 at an upgrade.
set -e
case $1 in
configure | 1 | 2) ;;
*) exit 0 ;;
esac

if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers doyen.conf
else
	getent passwd doyen >/dev/null || useradd --system --user-group --home-dir /var/lib/doyen --shell /usr/sbin/nologin doyen
	getent passwd doyen-act >/dev/null || useradd --system --user-group --home-dir / --shell /usr/sbin/nologin doyen-act
	getent group doyen-read >/dev/null || groupadd --system doyen-read
fi
# systemd-tmpfiles needs a mounted /proc, which a root that is being made may lack.
if ! systemd-tmpfiles --create doyen.conf 2>/dev/null; then
	install -d -m 2750 -o doyen -g doyen-read /run/doyen-read
	install -d -m 0755 /etc/doyen
	install -d -m 0700 -o doyen -g doyen /etc/doyen/keys /var/lib/doyen
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# Never systemctl restart: that hands over. This one goes on leading.
	if systemctl --quiet is-active doyen.service && ! doyen restart; then
		echo 'doyen: the agent runs on with the former program; see why above, then run: doyen restart' >&2
	fi
	# But where hooks and checks don't run: a keeper of 0.3.0 can't start them.
	tries=0
	while doyen status 2>/dev/null | grep -q act_missing; do
		tries=$((tries + 1))
		if [ $tries = 10 ]; then
			echo 'doyen: the service restarts: its keeper is of a version that runs no hooks and checks' >&2
			systemctl restart doyen.service
			break
		fi
		sleep 0.2
	done
fi
