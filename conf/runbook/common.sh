# Read by the programs of this folder: their settings, and how they talk to the outside. POSIX sh.
# What comes from an event is data: it is quoted everywhere and never evaluated.
set -u
: "${CB_RUNBOOK:?is set by circuitbreaker-runbook}"
if [ -r "$CB_RUNBOOK/runbook.conf" ]; then
    . "$CB_RUNBOOK/runbook.conf"
fi

# post URL BODY [HEADER]: prints the answer; fails unless it is a 2xx, after two more tries if that may help. The URL and
# the header may hold a secret, paths in the event too, and anybody can read a command line, so curl reads them from a pipe.
post() {
    {
        curl_option url "$1"
        curl_option data-raw "$2"
        if [ -n "${3:-}" ]; then curl_option header "$3"; fi
    } | curl --silent --show-error --fail --max-time "${POST_TIMEOUT:-8}" --retry 2 --retry-connrefused \
        --retry-max-time 20 --header 'Content-Type: application/json' --config -
}

# curl_option NAME VALUE: a line of a curl configuration. A line break in the value would begin another option.
curl_option() {
    printf '%s = "%s"\n' "$1" "$(printf '%s' "$2" | tr '\r\n' '  ' | sed 's/[\\"]/\\&/g')"
}

# hmac_sha256 KEY: of standard input, in base64 (RFC 2104). openssl would take the key from its command line only.
hmac_sha256() {
    key=$(printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n')
    if [ "${#key}" -gt 128 ]; then key=$(printf '%s' "$1" | sha256sum | cut -c 1-64); fi
    { hmac_pad 54; cat; } | openssl dgst -sha256 -binary | { hmac_pad 92; cat; } | openssl dgst -sha256 -binary | base64
}

# hmac_pad N: the 64 bytes of the key, each xor N.
hmac_pad() {
    rest=$key
    escapes=
    for _ in 1 2 3 4 5 6 7 8; do for _ in 1 2 3 4 5 6 7 8; do
        byte=${rest%"${rest#??}"}
        rest=${rest#??}
        byte=$((0x${byte:-0} ^ $1))
        escapes="$escapes\\$((byte >> 6))$((byte >> 3 & 7))$((byte & 7))"
    done; done
    printf "$escapes"
}

# A folder for what a program has to remember.
state_folder() {
    state=${RUNBOOK_STATE:-/run/circuitbreaker-runbook}
    mkdir -p -m 700 -- "$state"
}

# short_hash TEXT...
short_hash() { printf '%s\n' "$@" | sha256sum | cut -c 1-16; }

# The same for the same breaker (a member has one in each virtual host), and safe as a file's name.
breaker_id() {
    printf '%s.%s\n' "$(short_hash "$CB_BALANCER" "$CB_MEMBER")" "$(short_hash "${CB_VHOST:-}")"
}

# breaker_files FOLDER PREFIX [-delete]: prints, or deletes, the files FOLDER/PREFIX$(breaker_id) of this event's breaker.
# Where httpd's parent has told of a member that was added at run time, the virtual host is not known, and it may be any of
# them: what was kept for such an event is everybody's, and such an event means all there is of the member.
breaker_files() {
    vhost=$(short_hash "${CB_VHOST:-}")
    if [ -z "${CB_VHOST:-}" ]; then vhost='*'; fi
    member=$2$(short_hash "$CB_BALANCER" "$CB_MEMBER")
    find "$1" -maxdepth 1 \( -name "$member.$vhost" -o -name "$member.$(short_hash '')" \) ${3:-}
}
