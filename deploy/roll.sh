#!/usr/bin/env bash
# Replaces the nodes by new ones, one at a time, so that they get the image, the settings and the secrets of now. Nobody
# notices: a new node is added and has to be in use at the balancer before an old one drains and ends.
#
#   docker compose -f deploy/compose.yaml build node     # or pull, or a change in deploy/.env or deploy/secrets
#   deploy/roll.sh [-f FILE]…                            # the files of docker compose; deploy/compose.yaml without any
#
# It stops at the first new node that does not become ready: that one is removed, its last lines are shown, and those that
# served go on. Then the status is 1. It is safe to run again, also after it was interrupted.
#
#   PARLOR_ROLL_WAIT      seconds until a new node must be in use; 60 without it
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wait_s=${PARLOR_ROLL_WAIT:-60}

files=()
while [[ ${1:-} == -f && $# -ge 2 ]]; do
  files+=(-f "$2")
  shift 2
done
if [[ $# -gt 0 || ! $wait_s =~ ^[0-9]+$ ]]; then
  echo "usage: [PARLOR_ROLL_WAIT=SECONDS] deploy/roll.sh [-f FILE]…" >&2
  exit 2
fi
if [[ ${#files[@]} -eq 0 && -z ${COMPOSE_FILE:-} ]]; then
  files=(-f "$here/compose.yaml")
fi
compose() { docker compose ${files[@]+"${files[@]}"} "$@"; }

# nodes: the containers of nodes, one id a line, those that ended by themselves too.
nodes() { compose ps --all --quiet node; }

# added BEFORE: the nodes that are not in the list.
added() { comm -13 <(sort <<<"$1") <(nodes | sort); }

# wait_in_use ID: waits until the node is ready and the balancer has learned so.
wait_in_use() {
  local deadline=$((SECONDS + wait_s))
  until docker exec "$1" /parlor healthcheck --balancer >/dev/null 2>&1; do
    # A node that ended is started again by Docker, and would end again.
    if ((SECONDS >= deadline)) || [[ $(docker inspect --format '{{.State.Running}} {{.RestartCount}}' "$1") != "true 0" ]]; then
      return 1
    fi
    sleep 0.2
  done
}

# stop ID: drains a node and removes it.
stop() {
  docker stop "$1" >/dev/null # SIGTERM, and the time of stop_grace_period
  local status
  status=$(docker inspect --format '{{.State.ExitCode}}' "$1")
  if [[ $status != 0 ]]; then
    echo "roll: ${1:0:12} ended with $status: it did not drain in its time, or had ended before" >&2
  fi
  docker rm "$1" >/dev/null
}

# give_up TEXT [ID]: removes a node that did not become ready, and ends.
give_up() {
  echo "roll: stopped: $1" >&2
  for id in ${2:-}; do
    echo "roll: the last lines of ${id:0:12}, which is removed:" >&2
    docker logs --tail 20 "$id" >&2 || true
    docker rm --force "$id" >/dev/null || true
  done
  rm -f "$state"
  echo "roll: $(nodes | wc -l) nodes serve as before. Put it right, and run this again." >&2
  exit 1
}

# How many nodes there are to be is in this file while a roll runs. A run that was killed may have left one more.
state=$here/.roll
old=$(nodes)
if [[ -z $old ]]; then
  echo "roll: no node runs; start the installation: docker compose -f deploy/compose.yaml up -d" >&2
  exit 1
fi
count=$(wc -l <<<"$old")
if [[ -e $state && $(<"$state") == $((count - 1)) ]]; then
  count=$((count - 1))
  newest=$(for id in $old; do docker inspect --format '{{.Created}} {{.Id}}' "$id"; done | sort | tail -n 1 | cut -d' ' -f2)
  echo "roll: ${newest:0:12} is one too many since the last run, and drains"
  stop "$newest"
  old=$(nodes)
fi
echo "$count" >"$state"

echo "roll: $count nodes, one at a time"
n=0
for id in $old; do
  n=$((n + 1))
  before=$(nodes)
  compose up --detach --no-deps --no-recreate --scale node=$((count + 1)) node >/dev/null ||
    give_up "docker compose could not start a new node" "$(added "$before")"
  new=$(added "$before")
  [[ -n $new ]] || give_up "docker compose started no new node"
  wait_in_use "$new" || give_up "a new node did not become ready within $wait_s s" "$new"
  echo "roll: $n of $count: ${new:0:12} is in use, ${id:0:12} drains"
  stop "$id"
done
rm -f "$state"
echo "roll: done"
