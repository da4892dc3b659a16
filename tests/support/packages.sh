#!/bin/bash
# Installs what is missing of the Debian packages that are needed: packages.sh run|test
# Asks apt only if something is missing, so it needs neither root nor network where all is there.
set -euo pipefail

build=(make g++ git apache2 apache2-dev libjansson-dev)
run=("${build[@]}" libcurl4-openssl-dev procps)
test=("${run[@]}" libgtest-dev spin gcc clang-format clang-tidy valgrind libbenchmark-dev util-linux)

case "${1:-}" in
    run) wanted=("${run[@]}") ;;
    test) wanted=("${test[@]}") ;;
    *) echo "usage: $0 run|test" >&2; exit 2 ;;
esac

missing=()
for package in "${wanted[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "These packages are missing: ${missing[*]}" >&2
    echo "Install them (as root): apt-get install ${missing[*]}" >&2
    exit 1
fi

# Debian's apache2 starts a server of its own when it is installed; this one is not wanted. The policy is only added
# where there is none, and taken away again.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
echo "installing: ${missing[*]}"
apt-get update -q
apt-get install -q -y --no-install-recommends "${missing[@]}"
