# Read by the programs of this folder: their settings, and how they talk to the outside. POSIX sh.
# What comes from an event is data: it is quoted everywhere and never evaluated.
set -u
: "${CB_RUNBOOK:?is set by circuitbreaker-runbook}"
if [ -r "$CB_RUNBOOK/runbook.conf" ]; then
    . "$CB_RUNBOOK/runbook.conf"
fi

# post URL BODY [HEADER]: prints the answer; fails unless it is a 2xx, after two more tries if that may help. The URL and
# the header may hold a secret, and anybody can read a command line, so curl reads them from a pipe.
post() {
    post_url=$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')
    post_header=$(printf '%s' "${3:-}" | sed 's/[\\"]/\\&/g')
    {
        printf 'url = "%s"\n' "$post_url"
        if [ -n "$post_header" ]; then printf 'header = "%s"\n' "$post_header"; fi
    } | curl --silent --show-error --fail --max-time "${POST_TIMEOUT:-8}" --retry 2 --retry-max-time 20 \
        --header 'Content-Type: application/json' --data-raw "$2" --config -
}

# A folder for what a program has to remember.
state_folder() {
    state=${RUNBOOK_STATE:-/run/circuitbreaker-runbook}
    mkdir -p -m 700 -- "$state"
}

# The same for the same member, and safe as a file's name.
member_id() {
    printf '%s\n%s\n' "$CB_BALANCER" "$CB_MEMBER" | sha256sum | cut -c 1-16
}
