#!/bin/sh
# Installs Chromium, by choice its headless shell, where no browser is found.
set -eu
if [ -n "${RATCHET_CHROMIUM:-}" ]; then exit 0; fi
for name in chromium-headless-shell headless_shell chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
if grep -q '^ID=ubuntu' /etc/os-release 2>/dev/null; then
    chrome=https://dl.google.com/linux/direct/google-chrome-stable_current_amd64.deb
    echo "setup: Ubuntu has Chromium as a snap only: install Google Chrome ($chrome), or export RATCHET_CHROMIUM=/path/to/chromium" >&2
    exit 2
fi
exec sh "$(dirname "$0")/apt.sh" 'chromium-headless-shell | chromium, fonts-liberation' \
    'export RATCHET_CHROMIUM=/path/to/chromium'
