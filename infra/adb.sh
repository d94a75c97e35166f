#!/bin/sh
# Installs adb where there is none.
set -eu
if [ -n "${RATCHET_ADB:-}" ] || command -v adb >/dev/null; then exit 0; fi
exec sh "$(dirname "$0")/apt.sh" adb \
    'unpack the Android platform tools, or the adbutils package from PyPI, and export RATCHET_ADB=/path/to/adb'
