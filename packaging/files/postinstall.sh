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

[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl --quiet is-active doyen.service || exit 0
# Never systemctl restart: that hands over. This one goes on leading.
if ! doyen restart; then
	echo 'doyen: the agent runs on with the former program; see above what to do' >&2
	exit 0
fi
# But where hooks and checks don't run, since the keeper is still that of 0.3.0, and the agent would
# start again under the new one.
case $("/proc/$(systemctl show -P MainPID doyen.service)/exe" version 2>/dev/null) in
'doyen 0.3.'*) doyen status 2>/dev/null | grep -q act_missing || exit 0 ;;
*) exit 0 ;;
esac
config=/etc/doyen/agent.yaml
if warnings=$(runuser -u doyen -- doyen agent --check-config --config $config 2>&1 >/dev/null) && ! echo "$warnings" | grep -q 'is below'; then
	echo 'doyen: the service restarts: its keeper is of a version that runs no hooks and checks' >&2
	systemctl restart doyen.service
else
	echo "$warnings" >&2
	echo "doyen: the agent runs, but no hooks and checks until you mend $config and run: systemctl restart doyen" >&2
fi
