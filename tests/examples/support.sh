# support.sh — for scripts that talk to an example over TCP, with nothing but bash.
set -euo pipefail

die() { echo "FAILED: $*" >&2; exit 1; }

# start PROGRAM ARGS... — runs it until the script ends; $port is the number that ends its first line.
start() {
  exec 9< <(exec "$@")
  pid=$!
  trap 'kill $pid 2>/dev/null || true' EXIT
  read -r -t 60 line <&9 || die "$1 said nothing"
  port=${line##*[!0-9]}
}

# hear FD TEXT — the next line from FD has to be TEXT.
hear() {
  read -r -t 20 heard <&"$1" || die "waited in vain for '$2'"
  heard=${heard%$'\r'}
  [ "$heard" = "$2" ] || die "heard '$heard' in place of '$2'"
}

# get FD PATH STATUS BODY — one request of a connection that stays open; the body is one line.
get() {
  local length=0
  printf 'GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n' "$2" >&"$1"
  read -r -t 20 _ status _ <&"$1" || die "no answer to $2"
  while read -r -t 20 header <&"$1" && [ "$header" != $'\r' ]; do :; done
  [ "$status" = "$3" ] || die "$2 gave $status"
  hear "$1" "$4"
}
