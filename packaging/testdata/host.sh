#!/bin/bash
# Runs as a service of a Debian host whose PID 1 is systemd, with the package installed:
# what docs/operations.md and docs/upgrading.md say of the unit, step by step. What fails
# ends it. Its last line says that all was well.
set -eEuo pipefail
trap 'echo "FAILED: line $LINENO: $BASH_COMMAND"; systemctl status --no-pager doyen; journalctl --no-pager -u doyen | tail -40' ERR

step() { echo "== $*"; }
field() { doyen "${@:2}" -o json | grep -o "\"$1\":[^,}]*" | head -1 | cut -d: -f2- | tr -d '"'; }
await() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; echo "waited in vain for: $*"; "$@"; }
no() { ! "$@"; } # set -e ignores a command that ! negates
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
no grep no_record <(doyen status)

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

step 'doyen-act.service: hooks and checks have a user and rights of their own, the agent has none'
install -D /dev/stdin /usr/local/libexec/doyen/rights <<'END'
#!/bin/sh
echo "$DOYEN_EVENT $(id -un) $(awk '/^CapEff/ { print $2 }' /proc/self/status)" >>"/var/lib/$(id -un)/runs"
echo "${PASSWORD-none}" >"/var/lib/$(id -un)/password"
END
cp /etc/doyen/agent.yaml /root
sed -i 's|^on-change: .*|on-change: /usr/local/libexec/doyen/rights|' /etc/doyen/agent.yaml
echo 'check: /usr/local/libexec/doyen/check' >>/etc/doyen/agent.yaml
printf '#!/bin/sh\nid -un >"/var/lib/$(id -un)/checked"\n' | install /dev/stdin /usr/local/libexec/doyen/check
mkdir -p /etc/systemd/system/doyen.service.d /etc/systemd/system/doyen-act.service.d
cp /usr/share/doc/doyen/examples/systemd/act.conf /etc/systemd/system/doyen.service.d
cat >/etc/systemd/system/doyen-act.service.d/rights.conf <<END
[Service]
StateDirectory=doyen-act
AmbientCapabilities=CAP_NET_ADMIN
CapabilityBoundingSet=CAP_NET_ADMIN
EnvironmentFile=/etc/doyen/act.env
END
(umask 077; echo PASSWORD=secret >/etc/doyen/act.env) # of root: the service manager reads it
systemd-analyze verify doyen.service doyen-act.service
systemd-analyze security --no-pager --threshold=20 doyen-act.service | tail -1
systemctl daemon-reload
systemctl enable doyen-act
systemctl restart doyen
last() { [ "$(tail -1 "/var/lib/$1/runs")" = "$2" ]; }
await last doyen-act 'leading doyen-act 0000000000001000'
await grep doyen-act /var/lib/doyen-act/checked
grep -x secret /var/lib/doyen-act/password
no grep -azs PASSWORD=secret /proc/[0-9]*/cmdline "/proc/$(property MainPID)/environ" "/proc/$(life)/environ"
[ ! -e /var/lib/doyen/runs ]
for pid in "$(property MainPID)" "$(life)"; do
	grep -x 'CapPrm:	0000000000000000' "/proc/$pid/status"; grep -x 'CapEff:	0000000000000000' "/proc/$pid/status"
	grep -x 'CapAmb:	0000000000000000' "/proc/$pid/status"; grep -x 'CapBnd:	0000000000000000' "/proc/$pid/status"
done
no grep 'doyen act' <(systemctl status --no-pager doyen)

step 'what the agent can write is not executed, and doyen restart goes on leading'
for at in /etc/doyen/keys /var/lib/doyen /run/doyen /run/doyen-read /tmp /var/tmp /dev/shm; do
	inside() { nsenter --target="$(life)" --mount "$@"; }
	inside cp /usr/bin/true $at/dropped
	no inside $at/dropped
	inside rm $at/dropped
done
first=$(term) before=$(life)
dpkg -i /doyen.deb
await doyen is-leader
[ "$(term)" = "$first" ]; [ "$(life)" != "$before" ]
last doyen-act 'leading doyen-act 0000000000001000'; [ "$(wc -l </var/lib/doyen-act/runs)" = 2 ]

step 'a companion that is killed: the hook runs again, under a higher term'
kill -9 "$(systemctl show -P MainPID doyen-act)"
again() { [ "$(grep -c leading /var/lib/doyen-act/runs)" = 2 ]; }
await again
[ "$(term)" = "$((first + 1))" ]

step 'doyen-act.service is disabled again: the keeper runs hooks and checks'
systemctl disable --now doyen-act
await last doyen-act 'none doyen-act 0000000000001000'
rm /etc/systemd/system/doyen.service.d/act.conf
systemctl daemon-reload
systemctl restart doyen
await last doyen 'leading doyen 0000000000000000'
[ "$(systemctl show -P ActiveState doyen-act)" = inactive ]
cp /root/agent.yaml /etc/doyen/agent.yaml
doyen reload

step 'follow-unit: the unit runs while this host leads, by the polkit rule and not without it'
cd /usr/share/doc/doyen/examples/systemd
install -D -t /usr/local/libexec/doyen follow-unit
install -D -m 0644 -t /etc/systemd/system report.service
printf '#!/bin/sh\nexec sleep infinity\n' | install /dev/stdin /usr/local/bin/report
systemctl daemon-reload
sed -i 's|^on-change: .*|on-change: /usr/local/libexec/doyen/follow-unit report.service|' /etc/doyen/agent.yaml
reports() { [ "$(systemctl show -P ActiveState report)" = "$1" ]; }
doyen reload
failed() { grep hook_failed <(doyen status); }
await failed
reports inactive
install -D -m 0644 follow-unit.rules /etc/polkit-1/rules.d/50-follow-unit.rules
understood() { runuser -u doyen -- systemctl --no-ask-password start report; }
await understood
systemctl stop report
no runuser -u doyen -- systemctl --no-ask-password restart report
no runuser -u doyen -- systemctl --no-ask-password stop doyen-act
doyen drain on
await reports inactive
doyen drain off
await reports active
doyen drain on
await reports inactive
doyen drain off
await doyen is-leader
rm /etc/polkit-1/rules.d/50-follow-unit.rules
cp /root/agent.yaml /etc/doyen/agent.yaml
doyen reload
cd /

step 'stop is clean, and stays'
systemctl stop doyen
[ "$(property ActiveState) $(property Result)" = 'inactive success' ]
tail -1 /var/lib/doyen/events | grep -x none
[ ! -e /run/doyen ]
dpkg -i /doyen.deb
[ "$(property ActiveState)" = inactive ]

step 'a mistake in the configuration is not tried again'
sed -i 's/^voters.*/voters: [A]/' /etc/doyen/agent.yaml
no systemctl start doyen
[ "$(property ExecMainStatus) $(property NRestarts)" = '78 0' ]

step 'removal stops it and keeps the data'
sed -i 's/^voters.*/voters: [a]/' /etc/doyen/agent.yaml
systemctl enable --now doyen
await doyen is-leader
dpkg -r doyen
[ "$(property ActiveState)" = inactive ]
[ -e /var/lib/doyen/identity.key ]; [ -e /etc/doyen/keys/cluster ]
echo 'all was well'
