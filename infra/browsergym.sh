#!/bin/sh
# BrowserGym in a virtual environment of its own: the Playwright it pins needs other versions than we do, and a
# browser of its own, for which the Chromium of our own worlds stands in (nothing is downloaded from elsewhere).
set -eu
home=.ratchet/browsergym
build=chromium-1117 # of Playwright 1.44
.venv/bin/uv venv --quiet --clear --python "${PYTHON:-python3.11}" "$home"
echo "setup: installing BrowserGym into $home"
.venv/bin/uv pip install --quiet --compile-bytecode --python "$home/bin/python" browsergym-core==0.14.3 browsergym-miniwob==0.14.3
.venv/bin/uv pip install --quiet --python "$home/bin/python" --no-deps miniwob==1.1.0 # for its pages
chromium=$(.venv/bin/python -c 'from environments.browser.chromium import find_browser; print(find_browser())')
mkdir -p "$home/browsers/$build/chrome-linux"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$chromium" >"$home/browsers/$build/chrome-linux/chrome"
chmod +x "$home/browsers/$build/chrome-linux/chrome"
touch "$home/browsers/$build/INSTALLATION_COMPLETE" "$home/.ready"
