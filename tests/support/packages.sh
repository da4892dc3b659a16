#!/bin/bash
# Installs what is missing of the Debian packages that are needed: packages.sh run|test
# Those that only tests with real backends or a real browser need are optional: what can't be installed is said, and its tests are skipped.
# Asks apt only if something is missing, so it needs neither root nor network where all is there.
set -euo pipefail

build=(make g++ git apache2 apache2-dev libjansson-dev)
run=("${build[@]}" libcurl4-openssl-dev libgtest-dev procps)  # the demo is built with the tests' support code
test=("${run[@]}" spin gcc clang-format clang-tidy valgrind libbenchmark-dev util-linux
    prometheus curl openssl tidy libxml2-utils)
real_backends=(php-fpm tomcat10 default-jre-headless nghttp2-server openssl)
real_browser=(chromium fonts-dejavu-core)
optional=()

case "${1:-}" in
    run) wanted=("${run[@]}") ;;
    test) wanted=("${test[@]}") optional=("${real_backends[@]}" "${real_browser[@]}") ;;
    *) echo "usage: $0 run|test" >&2; exit 2 ;;
esac

is_missing() {
    ! dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'
}
missing=()
for package in "${wanted[@]}"; do
    if is_missing "$package"; then missing+=("$package"); fi
done
missing_optional=()
for package in "${optional[@]}"; do
    if is_missing "$package"; then missing_optional+=("$package"); fi
done
[ $((${#missing[@]} + ${#missing_optional[@]})) -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
    if [ ${#missing_optional[@]} -gt 0 ]; then
        echo "Tests with real backends or a browser are skipped without these packages: ${missing_optional[*]}" >&2
    fi
    [ ${#missing[@]} -eq 0 ] && exit 0
    echo "These packages are missing: ${missing[*]}" >&2
    echo "Install them (as root): apt-get install ${missing[*]}" >&2
    exit 1
fi

# Debian's apache2, prometheus, php-fpm and tomcat10 start servers of their own when they are installed; these are not wanted. The policy is only added
# where there is none, and taken away again.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
if [ ${#missing[@]} -gt 0 ]; then
    echo "installing: ${missing[*]}"
    apt-get update -q
    apt-get install -q -y --no-install-recommends "${missing[@]}"
elif [ ${#missing_optional[@]} -gt 0 ]; then
    apt-get update -q || true
fi
# One by one, so that one that can't be had keeps no other out.
for package in "${missing_optional[@]}"; do
    echo "installing, for tests with real backends or a browser: $package"
    apt-get install -q -y --no-install-recommends "$package" ||
        echo "$package can't be installed: its tests will be skipped" >&2
done
