#!/bin/sh
# Installs adb by the system's package manager where there is none.
set -eu
if [ -n "${RATCHET_ADB:-}" ] || command -v adb >/dev/null; then exit 0; fi
by_hand='apt-get install adb   (without root: unpack the Android platform tools, or the adbutils package from PyPI, and
name the program: export RATCHET_ADB=/path/to/adb)'
if ! command -v apt-get >/dev/null; then
    echo "adb: there is none, and no apt-get to install it with. By hand: $by_hand" >&2
    exit 2
fi
as_root=''
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
        echo "adb: there is none, and this user may not install it. As root: $by_hand" >&2
        exit 2
    fi
    as_root='sudo -n'
fi
echo "adb: installing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
$as_root apt-get install -y -qq --no-install-recommends adb >/dev/null || { echo "adb: failed. By hand: $by_hand" >&2; exit 2; }
