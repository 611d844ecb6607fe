#!/bin/sh
# Makes the backup and the export of one schema with the code of its time: make-backup.sh COMMIT SCHEMA
# COMMIT is the last one whose newest migration is SCHEMA; the vault is the one that make.sh made. Run it in the root of the
# project, after npm ci. Code that knew no such command leaves no such file.
set -eu
commit=$1 schema=$2
root=$PWD work=$(mktemp -d)
into="$root/test/schemas/$schema"
git worktree add --quiet --detach "$work/code" "$commit"
trap 'git worktree remove --force "$work/code"; rm -r "$work"' EXIT
ln -s "$root/node_modules" "$work/code/node_modules"
umask 077
mkdir "$work/data"
gzip -dc "$into/vault.db.gz" >"$work/data/vault.db"
cp "$into/master.key" "$work/data/master.key"
export VAULT_DATA_DIR="$work/data"
vault() { "$root/node_modules/.bin/node" "$work/code/src/main.ts" "$@"; }
has() { vault "$1" --help >/dev/null 2>&1; }
if has backup; then
  vault backup "$work/vault.backup"
  gzip -9nc "$work/vault.backup" >"$into/vault.backup.gz"
fi
if has export; then vault export >"$into/export.yaml"; fi
for file in vault.backup.gz export.yaml; do
  if [ -e "$into/$file" ]; then chmod 644 "$into/$file"; fi
done
ls -l "$into"
