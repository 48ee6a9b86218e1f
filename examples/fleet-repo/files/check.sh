#!/bin/sh
# Judges the configuration that this device has just been given, and keeps a
# record of it. Releases run it as their after-update hook: when it ends with
# anything but 0, the device goes back to what it ran before.
set -u
root=${GITOPSD_ROOT:-}
conf=$root/etc/edge/edge.conf

value() { sed -n "s/^$1=//p" "$conf"; }

say() { echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $GITOPSD_DEVICE ${GITOPSD_TO:-?}: $1" >>"$root/var/log/edge/updates.log"; }

fail() {
  say "refused: $1"
  echo "edge check: $1" >&2
  exit 1
}

say "was given ${GITOPSD_TO:-?}, had ${GITOPSD_FROM:-nothing}"
[ -n "$(value name)" ] || fail "$conf names no device"
[ -n "$(value site)" ] || fail "$conf names no site"
if [ "$(value tls)" = on ]; then
  certificate=$(value certificate)
  [ -n "$certificate" ] || fail "tls is on, but edge.conf names no certificate"
  [ -r "$root$certificate" ] || fail "certificate $certificate cannot be read"
fi
say "up on $(value site), channel $(value channel)"
