#!/usr/bin/env bash
# Makes what compose.yaml and its overlays read from deploy/secrets: keys, passwords, and a certificate to try it with. It
# never replaces a file, so it is safe to run again: to make one anew, remove it first. Needs openssl.
#
#   deploy/make-secrets.sh [FOLDER]     # FOLDER instead of deploy/secrets
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/secrets}

# Only the owner can enter the folder. The files are readable inside of the containers, whose users are not the owner.
mkdir -p "$folder"
chmod 700 "$folder"
cd "$folder"
umask 022

# make_file NAME COMMAND…: writes the command's output to a secret that does not exist yet.
make_file() {
  local name=$1
  shift
  [[ -e $name ]] && return
  "$@" >.next
  mv .next "$name"
  echo "made $folder/$name"
}

random() { openssl rand -hex 32; }
sha256_of() { printf %s "$(<"$1")" | openssl dgst -sha256 -r | cut -d' ' -f1; }
store_url() { echo "redis://parlor:$(<redis_password)@redis:6379/0"; }
sentinel_url() {
  local password
  password=$(<redis_password)
  echo "redis-sentinel://parlor:$password@sentinel-1:26379,sentinel-2:26379,sentinel-3:26379/parlor?sentinelUser=parlor&sentinelPassword=$password"
}
cluster_url() { echo "redis-cluster://parlor:$(<redis_password)@redis-1:6379,redis-2:6379,redis-3:6379"; }
# fill FILE: its lines without comments, with the digests and passwords of the users.
fill() {
  sed -e '/^#/d' -e '/^$/d' \
    -e "s/#SHA256_PARLOR_BACKUP /#$(sha256_of redis_backup_password) /" \
    -e "s/#SHA256_PARLOR_REPLICA /#$(sha256_of redis_replica_password) /" \
    -e "s/#SHA256_PARLOR_SENTINEL /#$(sha256_of redis_sentinel_password) /" \
    -e "s/#SHA256_PARLOR_ADMIN /#$(sha256_of redis_admin_password) /" \
    -e "s/#SHA256_PARLOR /#$(sha256_of redis_password) /" \
    -e "s/PASSWORD_PARLOR_SENTINEL\$/$(<redis_sentinel_password)/" "$here/redis/$1"
}
replica_settings() { printf 'masteruser parlor-replica\nmasterauth %s\n' "$(<redis_replica_password)"; }
# A certificate that nobody trusts, for trying. Replace it by one of an authority: the chain, then the key.
certificate() {
  local key
  key=$(openssl ecparam -name prime256v1 -genkey -noout)
  openssl req -x509 -new -key <(echo "$key") -days 30 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1
  echo "$key"
}

make_file admin_key random
make_file signing_key random
make_file redis_password random
make_file redis_backup_password random
make_file redis_replica_password random
make_file redis_sentinel_password random
make_file redis_admin_password random
make_file grafana_password random
make_file redis_url store_url
make_file redis_sentinel_url sentinel_url
make_file redis_cluster_url cluster_url
make_file redis_users.acl fill users.acl
make_file redis_replica.conf replica_settings
make_file redis_sentinel.conf fill sentinel.conf
# The balancer mounts the folder, so that a new certificate reaches it without a new container. Older versions had the file
# beside the others.
mkdir -p tls
if [[ -e tls.pem && ! -e tls/tls.pem ]]; then
  mv tls.pem tls/tls.pem
fi
make_file tls/tls.pem certificate
