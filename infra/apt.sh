#!/bin/sh
# Installs packages, as root or by sudo: sh infra/apt.sh 'DEPENDENCIES, as a package states them' 'what else helps'
set -eu
wanted=$1 otherwise=$2
fail() {
    echo "setup: $1, or $otherwise" >&2
    exit 2
}
command -v apt-get >/dev/null || fail "there is no apt-get: install $wanted by hand"
apt='env DEBIAN_FRONTEND=noninteractive apt-get -qq'
if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || fail "this user may install nothing: as root, apt-get satisfy '$wanted'"
    apt="sudo -n $apt"
fi
echo "setup: installing $wanted"
$apt update && $apt satisfy -y --no-install-recommends "$wanted" >/dev/null || fail "apt-get failed: install $wanted by hand"
