#!/usr/bin/env bash
# embedded_model.sh PROGRAM MODEL — the story that the program reads for itself is the one that its server
# gives for the same prompt and seed; SIGTERM ends it well.
. "$(dirname "$0")/support.sh"
start "$1" "$2"

story= last=
while read -r -t 60 line <&9; do
  [[ $line == "[24 tokens, length]" ]] && last=$line && break
  story+=$line$'\n'
done
[ -n "$last" ] || die "the story has no end: $story"
[ ${#story} -gt 40 ] || die "the story is short: $story"

body='{"prompt": "Once upon a time", "max_tokens": 24, "seed": 7}'
exec 3<>/dev/tcp/127.0.0.1/"$port"
printf '%s\r\n' >&3 'POST /v1/completions HTTP/1.1' 'Host: localhost' 'Content-Type: application/json' \
  'Connection: close' "Content-Length: ${#body}" ''
printf '%s' "$body" >&3
answer=$(timeout 60 cat <&3)
expected=$(printf '%s' "${story%$'\n'}" | tr '\n' '~' | sed 's/~/\\n/g; s/"/\\"/g; s/ *$//')
[[ $answer == *"$expected"* ]] || die "the server tells another story: $answer (expected: $expected)"

kill -TERM "$pid"
wait "$pid" || die "ended with $?"
trap - EXIT
