#!/bin/sh
# Installs Chromium, by choice its headless shell, where no browser is found.
set -eu
if [ -n "${RATCHET_CHROMIUM:-}" ]; then exit 0; fi
for name in chromium-headless-shell headless_shell chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
exec sh "$(dirname "$0")/apt.sh" 'chromium-headless-shell | chromium, fonts-liberation' \
    'export RATCHET_CHROMIUM=/path/to/chromium'
