#!/usr/bin/env bash
# http_embedding.sh PROGRAM — counts across connections; an answer that does not come, an actor that fails,
# and what follows.
. "$(dirname "$0")/support.sh"
start "$1" 0

exec 3<>/dev/tcp/127.0.0.1/"$port"
get 3 /tea 200 "tea: 0"
get 3 /tea 200 "tea: 1"
exec 4<>/dev/tcp/127.0.0.1/"$port"
get 4 /tea 200 "tea: 2"
get 4 /never 504 "no answer in time"
get 3 /tea 200 "tea: 3"
get 3 /fail 500 "the question was dropped without an answer"
get 4 /tea 200 "tea: 0"
