#!/bin/sh
# Installs Forage from this archive on a host with systemd; see usage below.
set -eu

usage() {
  cat << 'USAGE'
sudo ./install.sh coordinator|agent|all [--root DIR]    installs programs, units and configuration
sudo ./install.sh remove [--root DIR]                   removes programs and units; configuration and state stay

Run it again to upgrade: configuration stays as it is, running units are restarted, and containers go on.
With --root DIR it installs below DIR and starts nothing.
USAGE
}

fail() {
  echo "install.sh: $1" >&2
  exit "${2:-1}"
}

root=/
what=${1:-}
[ $# -eq 0 ] || shift
case $what in
  coordinator | agent | all | remove) ;;
  -h | --help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
esac
if [ $# -gt 0 ]; then
  if [ "$1" != --root ] || [ $# -ne 2 ]; then usage >&2 && exit 2; fi
  root=$2
fi
here=$(cd "$(dirname "$0")" && pwd)
[ "$root" != / ] || [ "$(id -u)" -eq 0 ] || fail "needs root: sudo $0 $what"
running=no
[ "$root" != / ] || [ ! -d /run/systemd/system ] || running=yes

# Copies each file beside its place and renames it, so that a program that runs keeps the file it was started from.
install_package() {
  (cd "$here/packages/$1" && find . -type f | sort) | while read -r file; do
    to=$root/${file#./}
    case $file in ./etc/*) [ ! -e "$to" ] || continue ;; esac
    mkdir -p "$(dirname "$to")"
    cp -p "$here/packages/$1/$file" "$to.partial"
    [ "$(id -u)" -ne 0 ] || chown 0:0 "$to.partial"
    mv -f "$to.partial" "$to"
  done
}

remove_package() {
  (cd "$here/packages/$1" && find . -type f | sort) | while read -r file; do
    case $file in ./etc/*) continue ;; esac
    rm -f "$root/${file#./}"
  done
}

restart_if_active() {
  ! systemctl --quiet is-active "$1" || systemctl restart "$1"
}

if [ "$what" = remove ]; then
  if [ $running = yes ]; then
    systemctl disable --now forage-agent.service forage-logs.socket forage-coordinator.service > /dev/null 2>&1 || true
    systemctl stop forage-log-guard.service forage-logs.service > /dev/null 2>&1 || true
  fi
  for package in forage-agent forage-coordinator forage forage-runtime; do remove_package "$package"; done
  find "$root/usr/lib/forage" -depth -type d -empty -delete 2> /dev/null || true
  [ $running = no ] || systemctl daemon-reload
  exit 0
fi

if [ "$what" != coordinator ] && [ "$root" = / ]; then
  missing=
  for program in containerd runc nft conntrack ip mkfs.ext4 mount; do
    command -v "$program" > /dev/null || missing="$missing $program"
  done
  [ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || missing="$missing CNI-plugins"
  [ -z "$missing" ] || fail "these programs are missing, install them with the package manager of this host:$missing"
fi

install_package forage-runtime
install_package forage
case $what in coordinator | all) install_package forage-coordinator ;; esac
case $what in agent | all) install_package forage-agent ;; esac
if [ "$what" != coordinator ] && [ ! -e "$root/usr/lib/cni/bridge" ] && [ -e "$root/opt/cni/bin/bridge" ]; then
  sed -i 's#^cniBinDir: /usr/lib/cni$#cniBinDir: /opt/cni/bin#' "$root/etc/forage/agent.yaml"
fi
[ $running = yes ] || exit 0

systemctl daemon-reload
case $what in
  coordinator | all)
    systemd-sysusers forage-coordinator.conf
    systemd-tmpfiles --create forage-coordinator.conf
    systemctl enable --now forage-coordinator.service
    restart_if_active forage-coordinator.service
    ;;
esac
case $what in
  agent | all)
    systemd-tmpfiles --create forage-agent.conf
    restart_if_active forage-logs.service
    if [ -e /var/lib/forage/agent/identity/node.pem ] || [ -e /etc/forage/join-token ]; then
      systemctl enable --now forage-logs.socket forage-agent.service
      systemctl restart forage-agent.service
    else
      echo "This host belongs to no fleet yet. On the coordinator's host, sudo forage node add prints the command that joins it."
    fi
    ;;
esac
