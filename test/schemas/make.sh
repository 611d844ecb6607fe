#!/bin/sh
# Makes the fixture of one schema with the code of its time: make.sh COMMIT SCHEMA [MIGRATION-TO-LEAVE-OUT]
# COMMIT is the last one whose newest migration is SCHEMA. Run it in the root of the project, after npm ci.
set -eu
commit=$1 schema=$2 without=${3:-}
root=$PWD work=$(mktemp -d)
git worktree add --quiet --detach "$work/code" "$commit"
trap 'git worktree remove --force "$work/code"; rm -r "$work"' EXIT
ln -s "$root/node_modules" "$work/code/node_modules"
[ -z "$without" ] || sed -i "/$without/d" $(find "$work/code/src/db" -name migrations.ts)
export VAULT_DATA_DIR="$work/data"
vault() { "$root/node_modules/.bin/node" "$work/code/src/main.ts" "$@"; }
has() { vault "$1" --help >/dev/null 2>&1; }

# Thirty years: the tests of a fixture must not end with its certificate.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 10950 -subj '/CN=Fixture CA' \
  -keyout "$work/ca.key" -out "$work/ca.pem" 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=old.test -addext subjectAltName=DNS:old.test \
  -keyout "$work/leaf.key" -out "$work/leaf.csr" 2>/dev/null
openssl x509 -req -in "$work/leaf.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days 10900 -copy_extensions copy \
  -out "$work/leaf.pem" 2>/dev/null

vault certificate import --name imported --fullchain "$work/leaf.pem" --private-key "$work/leaf.key"
vault certificate create --name issued --domain issued.test
if vault certificate update --help | grep -q -e --label; then vault certificate update --name issued --label team=web; fi
key=$(vault api-key create --name reader --scope certificates:read --scope private_keys:read --certificate '*')
revoked=$(vault api-key create --name revoked --scope private_keys:read --certificate '*')
id=$(vault api-key list | sed -n '/"revoked"/!s/.*"id": *"\{0,1\}\([0-9]*\).*/\1/p' | sort -n | tail -1)
vault api-key revoke --id "$id"
if has dns-provider; then
  echo 'api_token: token-of-the-fixture' >"$work/secret"
  vault dns-provider add --name dns --type cloudflare --zone old.test --secret-file "$work/secret"
fi
if has admin; then echo 'a long enough passphrase' | vault admin create --name alice --password-stdin; fi

# Not through the function: the signal must reach the server, which stops in order.
"$root/node_modules/.bin/node" "$work/code/src/main.ts" serve --listen 127.0.0.1:0 >"$work/out" 2>/dev/null &
until grep -q '^listening on' "$work/out"; do sleep 0.2; done
url=$(sed -n 's/^listening on //p' "$work/out")
curl -fsS -H "Authorization: Bearer $key" "$url/api/v1/certificates/imported/private.key" >"$work/served.key"
etag=$(curl -fsS -D - -o "$work/etag" -H "Authorization: Bearer $key" "$url/api/v1/certificates/imported/fullchain.crt" |
  tr -d '\r' | sed -n 's/^[Ee][Tt]ag: //p')
kill $!
wait

into="$root/test/schemas/$schema"
mkdir -p "$into"
gzip -9nc "$work/data/vault.db" >"$into/vault.db.gz"
cp "$work/data/master.key" "$work/served.key" "$into"
chmod 644 "$into"/*
printf '{\n  "key": "%s",\n  "revoked": "%s",\n  "etag": %s\n}\n' "$key" "$revoked" "\"$(printf %s "$etag" | sed 's/"/\\"/g')\"" >"$into/facts.json"
ls -l "$into"
