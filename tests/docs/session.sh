#!/usr/bin/env bash
# session.sh PAGE WEIR — runs the session of a page: the first block that begins with ```console. A line that
# begins with "$ " is a command, and the lines below it are what it says; … stands for anything. `weir serve`
# listens on a free port, and 127.0.0.1:8080 means this port in all that follows.
set -euo pipefail
page=$1
weir=$2
command -v curl >/dev/null || exit 77

die() { echo "FAILED: $*" >&2; exit 1; }

work=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
weir() { "$weir" "$@"; }

# serve ARGS… — starts the server; its first line goes to $said.
serve() {
  "$weir" serve "$@" --listen 127.0.0.1:0 >"$work/ready" 2>"$work/log" &
  server=$!
  for _ in $(seq 600); do
    if [ -s "$work/ready" ]; then break; fi
    kill -0 $server 2>/dev/null || die "the server ended: $(cat "$work/log")"
    sleep 0.1
  done
  said=$(cat "$work/ready")
  port=${said#*127.0.0.1:}
  port=${port%%[!0-9]*}
  said=${said/:$port/:8080}
}

# Whether the text $1 is as $2 says.
is_as() {
  local pattern
  pattern=$(printf '%s' "$2" | sed -e 's/[][\.*^$+?(){}|/]/\\&/g' -e 's/…/.*/g')
  [[ $1 =~ ^$pattern$ ]]
}

run() {
  local line=$1
  if [[ $line =~ ^weir\ serve\ (.*)\ \&$ ]]; then
    # shellcheck disable=SC2086
    serve ${BASH_REMATCH[1]}
    return
  fi
  said=
  line=${line//127.0.0.1:8080/127.0.0.1:$port}
  if [[ $line =~ ^[a-z]+\(\) ]]; then
    eval "$line"
    return
  fi
  eval "$line" >"$work/said" 2>"$work/errors" || die "$line: $(cat "$work/said" "$work/errors")"
  said=$(cat "$work/said")
}

steps=0
command=
wanted=
check() {
  [ -n "$command" ] || return 0
  run "$command"
  is_as "$said" "$wanted" || die "after: $command"$'\n'"the page says: $wanted"$'\n'"it said:       $said"
  steps=$((steps + 1))
}
while IFS= read -r line; do
  if [[ $line == '$ '* ]]; then
    check
    command=${line:2}
    wanted=
  else
    wanted+=${wanted:+$'\n'}$line
  fi
done < <(awk '/^```console/ { on = 1; next } /^```/ && on { exit } on' "$page")
check
[ $steps -ge 5 ] || die "$page has a session of $steps commands"
echo "$steps commands"
