#!/bin/sh
# install-agent.sh [COMMAND...]: installs the agent, and joins by the command that `forage node add` has printed.
set -eu
apt-get -qq --yes install forage-agent busybox-static
[ $# -eq 0 ] || exec "$@"
