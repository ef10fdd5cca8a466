#!/usr/bin/env bash
# says.sh REGEX PROGRAM — the program ends well, and what it says is that, to the last letter.
. "$(dirname "$0")/support.sh"
said=$(timeout 60 "$2") || die "$2 ended with $?"
[[ $said =~ ^$1$ ]] || die "$2 said '$said'"
