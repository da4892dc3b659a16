#!/bin/bash
# Checks on the project itself. Each is a function that prints what is wrong and returns 1; one that finds nothing to check
# has failed too. Ends with "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
passed=0
failed=0

check() {  # name, command...
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        passed=$((passed + 1))
        echo "  ok      $name"
    else
        failed=$((failed + 1))
        echo "  FAILED  $name"
        printf '%s\n' "$output" | head -30
    fi
}

sources() { find mod_circuitbreaker shm conf tests docker \( -name '*.cpp' -o -name '*.hpp' \) | sort; }
product() { find mod_circuitbreaker shm \( -name '*.cpp' -o -name '*.hpp' \) | sort; }

# "field CircuitBreakerName" of each row, and the names alone.
directive_rows() { sed -n 's/^DIRECTIVE(\([a-z_]*\), "\(CircuitBreaker[A-Za-z]*\)", .*/\1 \2/p' mod_circuitbreaker/httpd/config/directives.def; }
directives() { directive_rows | cut -d ' ' -f 2; }

# --- layers: core <- shm <- httpd ---
core_includes_nothing_of_the_others() {
    local files
    files=$(find mod_circuitbreaker/core -name '*.?pp')
    [ -n "$files" ] || return 1
    ! grep -nE '#include .*(httpd|shm/|apr|atomic|time\.h|chrono)' $files
}
shm_includes_nothing_of_httpd() {
    local files
    files=$(find shm -name '*.?pp')
    [ -n "$files" ] || return 1
    ! grep -nE '#include .*(httpd|ap_|mod_proxy)' $files
}
httpd_is_included_in_one_place() {
    local found
    found=$(grep -lE '#include <(httpd|http_|ap_|mod_proxy|util_|mpm_|scoreboard)' $(product))
    [ "$found" = mod_circuitbreaker/httpd/httpd_api.hpp ] || { echo "$found"; return 1; }
}
# The layers of mod_circuitbreaker/httpd, from below: each may include itself and those before it (core and shm are below
# all of them). A layer is a folder, or a file beside the folders.
httpd_layers="httpd_api proxy_api shown runtime config members request events call choose failover attempts pages timer parent lifecycle
    mod_circuitbreaker"
httpd_includes_go_down() {
    grep -rn '#include "' mod_circuitbreaker/httpd mod_circuitbreaker/mod_circuitbreaker.cpp | sort |
        awk -F'[:"]' -v layers="$httpd_layers" '
            function layer(path) { sub(/^mod_circuitbreaker\//, "", path); sub(/^httpd\//, "", path); sub(/[\/.].*/, "", path); return path }
            BEGIN { n = split(layers, name, " "); for (i = 1; i <= n; ++i) rank[name[i]] = i }
            $4 ~ /^(core|shm)\// { next }
            {
                ++count
                from = layer($1)
                to = $4 ~ /^httpd\// || $1 !~ /\/httpd\/.*\// ? layer($4) : from
                if ($4 !~ /\.\./ && from in rank && to in rank && rank[to] <= rank[from]) next
                print
                bad = 1
            }
            END { if (count < 100) { print count + 0 " includes found"; bad = 1 } exit bad }'
}
each_folder_says_what_it_is_for() {
    local folder file status=0 count=0
    for folder in mod_circuitbreaker/httpd/*; do
        [ -d "$folder" ] || continue
        count=$((count + 1))
        grep -q "^| \`httpd/${folder##*/}/\`" mod_circuitbreaker/README.md || { echo "$folder: not in the reference"; status=1; }
        [ -e "$folder/README.md" ] || { echo "$folder has no README.md"; status=1; continue; }
        [ "$(wc -l < "$folder/README.md")" -le 5 ] || { echo "$folder/README.md has more than 5 lines"; status=1; }
        for file in $(grep -oE '`[a-z_]+\.(cpp|hpp|def)`' "$folder/README.md" | tr -d '`'); do
            [ -e "$folder/$file" ] || { echo "$folder/README.md names $file, which does not exist"; status=1; }
        done
    done
    [ "$count" -ge 8 ] || { echo "only $count folders found"; status=1; }
    return $status
}
nothing_throws_and_no_mutex() {
    ! grep -nE '\bthrow\b|std::(mutex|lock_guard|condition_variable)|pthread_mutex' $(product)
}

# --- directives: what the compiler does not find of a row of directives.def ---
each_directive_is_documented() {
    local name status=0 count=0
    while read -r _ name; do
        count=$((count + 1))
        grep -q "^| \`$name " README.md || { echo "$name: not in README.md"; status=1; }
        grep -q "^### $name " mod_circuitbreaker/README.md || { echo "$name: not in the reference"; status=1; }
        grep -qE "^ *#$name " conf/circuitbreaker.conf || { echo "$name: not in circuitbreaker.conf"; status=1; }
    done < <(directive_rows)
    [ "$count" -ge 26 ] && [ "$count" -eq "$(grep -c '^DIRECTIVE(' mod_circuitbreaker/httpd/config/directives.def)" ] ||
        { echo "only $count directives found"; status=1; }
    return $status
}
only_existing_directives_are_documented() {
    local known unknown
    known=$(directives)
    unknown=$(grep -ohE '\bCircuitBreaker[A-Za-z]*\b' README.md mod_circuitbreaker/README.md mod_circuitbreaker/GUIDE.md conf/* docker/demo/*.cpp |
        sort -u | grep -vxF "$known")
    [ -n "$known" ] && [ -z "$unknown" ] || { echo "$unknown"; return 1; }
}
shipped_conf_shows_the_defaults() {
    # What conf says must be what an empty configuration means: every line of it, switched on, is accepted.
    local dir status
    dir=$(mktemp -d)
    chmod 755 "$dir"
    minimal_conf "$dir" > "$dir/httpd.conf"
    sed -n 's/^#\(CircuitBreaker.*\)/\1/p' conf/circuitbreaker.conf > "$dir/directives"
    # Those of its <Location>, which needs a module that this server hasn't got.
    { echo '<Location "/x">'; sed -n 's/^ \+#\(CircuitBreaker.*\)/\1/p' conf/circuitbreaker.conf; echo '</Location>'; } >> "$dir/directives"
    [ "$(wc -l < "$dir/directives")" -ge 12 ] || return 1
    cat "$dir/directives" >> "$dir/httpd.conf"
    /usr/sbin/apache2 -t -f "$dir/httpd.conf"
    status=$?
    rm -rf "$dir"
    return $status
}
minimal_conf() {
    local module
    echo "ServerRoot \"$1\"
ServerName localhost
Listen 127.0.0.1:1
ErrorLog \"$1/error.log\""
    for module in mpm_event authz_core proxy; do
        echo "LoadModule ${module}_module /usr/lib/apache2/modules/mod_$module.so"
    done
    echo "LoadModule circuitbreaker_module $PWD/$build/mod_circuitbreaker.so"
}

control_is_never_shown_without_a_user() {
    # Whatever shows how to switch Control on shows who may use it: README, reference, shipped configuration, demo.
    local file found count=0 status=0
    for file in README.md $(find mod_circuitbreaker conf docker -type f); do
        grep -q 'CircuitBreakerControl On' "$file" || continue
        # A <Location>, whether as it is, commented out or in C++ text.
        found=$(awk '/<Location/ { inside = 1; control = user = 0 }
            inside && /CircuitBreakerControl On/ { control = 1 }
            inside && /Require (valid-user|user |group )/ { user = 1 }
            /<\/Location>/ { if (inside && control) print user ? "with" : "without"; inside = 0 }' "$file")
        count=$((count + $(grep -cx with <<< "$found")))
        ! grep -qx without <<< "$found" || { echo "$file: CircuitBreakerControl On without Require valid-user"; status=1; }
    done
    [ "$count" -ge 3 ] || { echo "only $count examples found"; status=1; }
    return $status
}

# --- the README's configuration, as it is printed ---
readme_conf() { sed -n '/^ServerRoot "\/usr\/lib\/apache2"$/,/^```$/p' README.md | grep -v '^```'; }
readme_configuration_has_20_lines_and_is_valid() {
    local dir status
    [ "$(readme_conf | wc -l)" -eq 20 ] || { readme_conf; return 1; }
    dir=$(mktemp -d)
    readme_conf | sed "s#modules/mod_circuitbreaker.so#$PWD/$build/mod_circuitbreaker.so#" > "$dir/httpd.conf"
    /usr/sbin/apache2 -t -f "$dir/httpd.conf"
    status=$?
    rm -rf "$dir"
    return $status
}
file_map_names_what_exists() {
    local path count=0 status=0
    for path in $(sed -n '/^## Where is what/,$p' README.md | grep -oE '`[a-z_]+(/[a-z_.]*)+`' | tr -d '`'); do
        count=$((count + 1))
        [ -e "$path" ] || { echo "README.md names $path, which does not exist"; status=1; }
    done
    [ "$count" -ge 10 ] || { echo "only $count paths found"; status=1; }
    return $status
}

# --- the module as httpd loads it ---
module_exports_its_record_only() {
    local symbols
    symbols=$(nm -D --defined-only "$build/mod_circuitbreaker.so" | awk '{print $3}')
    [ "$symbols" = circuitbreaker_module ] || { echo "$symbols"; return 1; }
}
module_needs_neither_mod_proxy_nor_libstdcxx_to_load() {
    local undefined
    undefined=$(nm -D --undefined-only "$build/mod_circuitbreaker.so")
    [ -n "$undefined" ] || return 1
    ! grep -E ' (ap_proxy_|proxy_|_ZSt|_ZNSt|__cxa_(throw|begin|allocate|guard))' <<< "$undefined"
}
module_has_no_constructors() {
    # gcc's own frame_dummy is the one entry.
    local size
    size=$(readelf -SW "$build/mod_circuitbreaker.so" | sed -n 's/.*\.init_array *INIT_ARRAY *[0-9a-f]* *[0-9a-f]* *\([0-9a-f]*\).*/\1/p')
    [ "$size" = 000008 ] || { echo ".init_array has $size bytes"; return 1; }
}

# --- what is installed beside it ---
runbook_programs() { grep -l '^#!/bin/sh$' conf/runbook/*; }
runbook_programs_parse_and_are_installed() {
    local program status=0 count=0 root
    root=$(mktemp -d)
    env -u MAKEFLAGS -u MFLAGS make -s --no-print-directory install DESTDIR="$root" BUILD="$build" || return 1
    for program in $(runbook_programs); do
        count=$((count + 1))
        [ -x "$program" ] && sh -n "$program" || { echo "$program can't be run"; status=1; }
        [ -x "$root/usr/share/mod_circuitbreaker/runbook/${program##*/}" ] || { echo "$program is not installed"; status=1; }
        grep -q "$(basename "$program")" mod_circuitbreaker/README.md || { echo "$program: not in the reference"; status=1; }
    done
    [ "$count" -ge 8 ] || { echo "only $count programs found"; status=1; }
    for program in usr/lib/mod_circuitbreaker/circuitbreaker-runbook usr/lib/apache2/modules/mod_circuitbreaker.so \
        usr/share/mod_circuitbreaker/runbook/common.sh usr/share/mod_circuitbreaker/grafana/circuitbreaker.json \
        usr/share/mod_circuitbreaker/prometheus/circuitbreaker.rules.yml etc/apache2/circuitbreaker/on-open.d \
        etc/apache2/circuitbreaker/on-probe-soon.d etc/apache2/circuitbreaker/clear.d \
        etc/apache2/mods-available/circuitbreaker.conf; do
        [ -e "$root/$program" ] || { echo "/$program is not installed"; status=1; }
    done
    # What an administrator wrote stays, and nobody else can read it.
    echo "MAIL_TO=me" >> "$root/etc/apache2/circuitbreaker/runbook.conf"
    env -u MAKEFLAGS -u MFLAGS make -s --no-print-directory install DESTDIR="$root" BUILD="$build" || return 1
    [ "$(tail -n 1 "$root/etc/apache2/circuitbreaker/runbook.conf")" = MAIL_TO=me ] || { echo "runbook.conf was overwritten"; status=1; }
    [ "$(stat -c %a "$root/etc/apache2/circuitbreaker/runbook.conf")" = 600 ] || { echo "runbook.conf can be read by others"; status=1; }
    rm -rf "$root"
    return $status
}

# --- the source as a text ---
code_is_formatted() { clang-format --dry-run --Werror $(sources); }
product_files_are_short() {
    local long
    long=$(wc -l $(product) | awk '$2 != "total" && $1 > 340')
    [ -z "$long" ] || { echo "$long"; return 1; }
}
each_header_says_what_it_is_about() {
    # In a sentence at its very beginning; one about shared state says who may use it from which thread.
    local header status=0 count=0
    for header in $(find mod_circuitbreaker shm -name '*.hpp'); do
        count=$((count + 1))
        head -1 "$header" | grep -qE '^// ([^ ]+ ){3,}' || { echo "$header: does not begin with what it is about"; status=1; }
        ! grep -qE 'std::atomic|Atomic(32|64)' "$header" || head -25 "$header" | grep -q 'Thread safety: ' ||
            { echo "$header: shared state, and no word on thread safety"; status=1; }
    done
    [ "$count" -ge 15 ] || status=1
    return $status
}
no_path_of_a_machine() {
    ! grep -rnE '/(work|home|root)/' --include='*' --exclude-dir=.git --exclude-dir="$build" --exclude-dir=guards . | grep -vE '/(home|root)/?[a-z]*"?>'
}
make_run_names_a_port_in_use() {
    # The port that a first demo listens on; both end by themselves.
    local port output status first
    port=$((20000 + RANDOM % 10000))
    DEMO=once PORT=$port "$build/demo" > /dev/null 2>&1 &
    first=$!
    for _ in $(seq 200); do
        (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null && break
        sleep 0.05
    done
    output=$(DEMO=once PORT=$port "$build/demo" 2>&1)
    status=$?
    kill -TERM "$first"
    wait "$first"
    [ "$status" -eq 1 ] && grep -q "Port $port on 127.0.0.1 is in use" <<< "$output" || { echo "$status: $output"; return 1; }
}

simulation_shows_what_readme_says() {
    # The plot and the tables are those of the program as it is now.
    local dir line status=0 lines=0
    dir=$(mktemp -d)
    "$build/simulation" "$dir/recovery.svg" > "$dir/table" || status=1
    cmp "$dir/recovery.svg" tests/bench/recovery.svg || status=1
    grep -q '](tests/bench/recovery.svg)' README.md || { echo "README.md doesn't show the plot"; status=1; }
    while IFS= read -r line; do
        [ -n "$line" ] || continue
        lines=$((lines + 1))
        grep -qF -- "$line" README.md || { echo "README.md lacks: $line"; status=1; }
    done < "$dir/table"
    [ "$lines" -ge 10 ] || { echo "only $lines lines printed"; status=1; }
    rm -rf "$dir"
    [ "$status" -eq 0 ] || echo "make simulation, and put its tables into README.md"
    return $status
}

check "core includes no httpd, no APR, no clock, no atomics" core_includes_nothing_of_the_others
check "shm includes no httpd" shm_includes_nothing_of_httpd
check "httpd is included in one header" httpd_is_included_in_one_place
check "httpd's includes go down" httpd_includes_go_down
check "each folder of httpd/ says what it is for" each_folder_says_what_it_is_for
check "nothing throws, no mutex" nothing_throws_and_no_mutex
check "each directive is documented" each_directive_is_documented
check "only directives that exist are documented" only_existing_directives_are_documented
check "circuitbreaker.conf is accepted with every line switched on" shipped_conf_shows_the_defaults
check "CircuitBreakerControl On is never shown without a user" control_is_never_shown_without_a_user
check "the README's configuration has 20 lines and is valid" readme_configuration_has_20_lines_and_is_valid
check "the README's file map names what exists" file_map_names_what_exists
check "the module exports its record only" module_exports_its_record_only
check "the module loads without mod_proxy and libstdc++" module_needs_neither_mod_proxy_nor_libstdcxx_to_load
check "the module has no constructors" module_has_no_constructors
check "the runbook's programs parse, and are installed" runbook_programs_parse_and_are_installed
check "README.md shows what the simulation shows" simulation_shows_what_readme_says
check "code is formatted" code_is_formatted
check "product files are short" product_files_are_short
check "each header says what it is about" each_header_says_what_it_is_about
check "no path of a machine in the source" no_path_of_a_machine
check "make run names a port that is in use" make_run_names_a_port_in_use

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
