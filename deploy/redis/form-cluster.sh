#!/bin/bash
# Makes servers a Cluster, as the user parlor-admin: the first ones are masters, the others their replicas. It changes
# nothing where there is a Cluster, so it may run at each start.
#
#   REDISCLI_AUTH=… form-cluster.sh REPLICAS HOST:PORT…
set -euo pipefail
replicas=$1
shift

addresses=()
for server in "$@"; do
  host=${server%:*} port=${server##*:}
  # Servers meet by address, and announce their names afterwards.
  address=$(getent ahostsv4 "$host" | awk 'NR == 1 { print $1 }')
  addresses+=("$address:$port")
done
ask() { redis-cli --user parlor-admin -h "${1%:*}" -p "${1##*:}" "${@:2}"; }

for address in "${addresses[@]}"; do
  tries=0
  until [[ $(ask "$address" ping) == PONG ]]; do
    ((++tries < 60)) || { echo "$address does not reply" >&2; exit 1; }
    sleep 1
  done
done
state=$(ask "${addresses[0]}" cluster info)
if [[ $state == *cluster_slots_assigned:16384* ]]; then
  echo "there is a Cluster"
  exit
fi
redis-cli --user parlor-admin --cluster create "${addresses[@]}" --cluster-replicas "$replicas" --cluster-yes
