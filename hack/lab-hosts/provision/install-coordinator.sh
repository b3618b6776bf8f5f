#!/bin/sh
# install-coordinator.sh: installs the coordinator and the command. The coordinator answers when this returns.
set -eu
apt-get -qq --yes install forage-coordinator
