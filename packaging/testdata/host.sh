#!/bin/bash
# Runs as a service of a Debian host whose PID 1 is systemd, with the package installed:
# what docs/operations.md and docs/upgrading.md say of the unit, step by step. What fails
# ends it. Its last line says that all was well.
set -eEuo pipefail
trap 'echo "FAILED: line $LINENO: $BASH_COMMAND"; systemctl status --no-pager doyen; journalctl --no-pager -u doyen | tail -40' ERR

step() { echo "== $*"; }
field() { doyen "${@:2}" -o json | grep -o "\"$1\":[^,}]*" | head -1 | cut -d: -f2- | tr -d '"'; }
await() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; echo "waited in vain for: $*"; "$@"; }
property() { systemctl show -P "$1" doyen; }
term() { field term leader; }
life() { field pid status; }

step 'the unit is understood and hardened'
systemd-analyze verify doyen.service
systemd-analyze security --no-pager --threshold=20 doyen.service | tail -1

step 'an address that comes late is waited for'
runuser -u doyen -- doyen keygen --out /etc/doyen/keys/cluster
cat >/etc/doyen/agent.yaml <<END
name: a
bind: 10.99.0.1
voters: [a]
key-file: /etc/doyen/keys/cluster
data-dir: /var/lib/doyen
socket: /run/doyen/doyen.sock
on-change: echo \$DOYEN_EVENT >>/var/lib/doyen/events
END
systemctl start --no-block doyen
await journalctl --no-pager -u doyen --grep 'waits for it'
[ "$(property ActiveState)" = activating ]
ip link add site0 type veth peer name site1
ip addr add 10.99.0.1/24 dev site0
ip link set site0 up
ip link set site1 up
await doyen is-leader
[ "$(property ActiveState)" = active ]
! doyen status | grep no_record

step 'doyen restart: same term, same keeper, another life'
keeper=$(property MainPID) first=$(term) before=$(life)
doyen restart
await doyen is-leader
[ "$(term)" = "$first" ]; [ "$(life)" != "$before" ]; [ "$(property MainPID)" = "$keeper" ]; [ "$(property NRestarts)" = 0 ]

step 'kill -9 of the life'
before=$(life)
kill -9 "$before"
await doyen is-leader
[ "$(term)" = "$first" ]; [ "$(life)" != "$before" ]; [ "$(property MainPID)" = "$keeper" ]; [ "$(property NRestarts)" = 0 ]

step 'kill -9 of the keeper: systemd starts it again within the lease, and the hook runs again under a higher term'
kill -9 "$keeper"
another() { doyen is-leader && [ "$(property MainPID)" != "$keeper" ] && [ "$(property ActiveState)" = active ]; }
await another
[ "$(property NRestarts)" = 1 ]
ran() { [ "$(paste -sd' ' /var/lib/doyen/events)" = 'none leading leading' ]; }
await ran
[ "$(term)" = "$((first + 1))" ] || { echo "the term was $first and is $(term)"; false; }
first=$(term)

step 'the package of another version is installed: doyen restart, no hand-over'
keeper=$(property MainPID) before=$(life)
dpkg -i /doyen.deb
await doyen is-leader
[ "$(term)" = "$first" ]; [ "$(life)" != "$before" ]; [ "$(property MainPID)" = "$keeper" ]

step 'the hook ran under the filter, and for no restart'
ran

step 'stop is clean, and stays'
systemctl stop doyen
[ "$(property ActiveState) $(property Result)" = 'inactive success' ]
tail -1 /var/lib/doyen/events | grep -x none
[ ! -e /run/doyen ]

step 'a mistake in the configuration is not tried again'
sed -i 's/^voters.*/voters: [A]/' /etc/doyen/agent.yaml
! systemctl start doyen
[ "$(property ExecMainStatus) $(property NRestarts)" = '78 0' ]

step 'removal stops it and keeps the data'
sed -i 's/^voters.*/voters: [a]/' /etc/doyen/agent.yaml
systemctl enable --now doyen
await doyen is-leader
dpkg -r doyen
[ "$(property ActiveState)" = inactive ]
[ -e /var/lib/doyen/identity.key ]; [ -e /etc/doyen/keys/cluster ]
echo 'all was well'
