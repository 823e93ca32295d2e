#!/bin/sh
# Starts a server that Sentinels look after, or a Sentinel, in a container of compose.sentinel.yaml. Both rewrite their
# file, so the first start makes a copy in /data. Remove the volume to make it anew, after a new password for example.
#
#   start.sh server NAME [PRIMARY]     # with PRIMARY it is a replica at its first start
#   start.sh sentinel NAME
set -eu
kind=$1 name=$2 primary=${3:-}

if ! [ -e "/data/$kind.conf" ]; then
  case $kind in
  server)
    cat /etc/redis/redis.conf
    echo
    echo "replica-announce-ip $name"
    if [ -n "$primary" ]; then echo "replicaof $primary 6379"; fi
    ;;
  sentinel)
    cat /run/secrets/redis_sentinel.conf
    echo
    echo "sentinel announce-ip $name"
    ;;
  esac >/data/new.conf
  mv /data/new.conf "/data/$kind.conf"
fi
case $kind in
server) exec redis-server /data/server.conf ;;
sentinel) exec redis-sentinel /data/sentinel.conf ;;
esac
