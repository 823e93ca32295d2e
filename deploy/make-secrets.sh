#!/usr/bin/env bash
# Makes what compose.yaml reads from deploy/secrets: keys, passwords, and a certificate to try it with. It never
# replaces a file, so it is safe to run again: to make one anew, remove it first. Needs openssl.
set -euo pipefail
cd "$(dirname "$0")"

# Only the owner can enter the folder. The files are readable inside of the containers, whose users are not the owner.
mkdir -p secrets
chmod 700 secrets
umask 022

# make NAME COMMAND…: writes the command's output to a secret that does not exist yet.
make_file() {
  local name=$1
  shift
  [[ -e secrets/$name ]] && return
  "$@" >"secrets/.$name"
  mv "secrets/.$name" "secrets/$name"
  echo "made deploy/secrets/$name"
}

random() { openssl rand -hex 32; }
sha256_of() { printf %s "$(<"secrets/$1")" | openssl dgst -sha256 -r | cut -d' ' -f1; }
store_url() { echo "redis://parlor:$(<secrets/redis_password)@redis:6379/0"; }
store_users() {
  sed -e '/^#/d' -e '/^$/d' \
    -e "s/#SHA256_PARLOR_BACKUP /#$(sha256_of redis_backup_password) /" \
    -e "s/#SHA256_PARLOR /#$(sha256_of redis_password) /" redis/users.acl
}
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
make_file redis_url store_url
make_file redis_users.acl store_users
make_file tls.pem certificate
