#!/usr/bin/env bash
# chat_room.sh PROGRAM — two clients in a room, a third in another; one leaves.
. "$(dirname "$0")/support.sh"
start "$1" 0

exec 3<>/dev/tcp/127.0.0.1/"$port"
echo "garden ann" >&3
hear 3 "* ann comes in"
exec 4<>/dev/tcp/127.0.0.1/"$port"
echo "garden ben" >&4
hear 4 "* ben comes in"
hear 3 "* ben comes in"
exec 5<>/dev/tcp/127.0.0.1/"$port"
echo "kitchen cleo" >&5
hear 5 "* cleo comes in"

echo "hello" >&3
hear 3 "ann: hello"
hear 4 "ann: hello"
printf 'one\ntwo\n' >&4
for ear in 3 4; do
  hear $ear "ben: one"
  hear $ear "ben: two"
done
exec 3>&-
hear 4 "* ann leaves"
echo "alone" >&4
hear 4 "ben: alone"
echo "still here" >&5
hear 5 "cleo: still here"
