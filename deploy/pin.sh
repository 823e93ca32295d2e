#!/usr/bin/env bash
# Writes the digest of each image into the compose files and Dockerfile, name:tag@sha256:…, so that a tag that moves, or is
# replaced at the registry, changes nothing here. Run it where the images can be looked up, read the difference, commit
# it. Run it again after a tag was changed. Needs docker with buildx.
set -euo pipefail
cd "$(dirname "$0")"

for file in compose*.yaml Dockerfile; do
  # An image with a tag, as "image: name:tag" or "FROM name:tag", with or without an older digest.
  { grep -oE '^ *(image: |FROM )[a-z0-9./_-]+:[A-Za-z0-9._-]+' "$file" || true; } | sed -E 's/^ *(image: |FROM )//' | sort -u |
    while read -r image; do
      digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image")
      if ! [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]]; then
        echo "$image: the registry has no digest, but: $digest" >&2
        exit 1
      fi
      sed -i -E "s#(image: |FROM )${image//./\\.}(@sha256:[0-9a-f]{64})?( |$)#\1$image@$digest\3#" "$file"
      echo "$file: $image@$digest"
    done
done
