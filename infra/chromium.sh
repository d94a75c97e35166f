#!/bin/sh
# Installs Chromium's headless shell by the system's package manager where no browser is found.
set -eu
for name in chromium-headless-shell headless_shell chromium chromium-browser google-chrome; do
    if [ -n "${RATCHET_CHROMIUM:-}" ] || command -v "$name" >/dev/null; then exit 0; fi
done
by_hand='apt-get install chromium-headless-shell   (or name a Chromium: export RATCHET_CHROMIUM=/path/to/chromium)'
if ! command -v apt-get >/dev/null; then
    echo "setup: no Chromium, and no apt-get to install it with. By hand: $by_hand" >&2
    exit 2
fi
as_root=''
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
        echo "setup: no Chromium, and this user may not install it. As root: $by_hand" >&2
        exit 2
    fi
    as_root='sudo -n'
fi
echo "setup: installing Chromium"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
if ! $as_root apt-get install -y -qq chromium-headless-shell fonts-liberation >/dev/null 2>&1; then
    $as_root apt-get install -y -qq chromium fonts-liberation >/dev/null || { echo "setup: failed. By hand: $by_hand" >&2; exit 2; }
fi
