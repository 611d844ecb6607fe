/**
 * A disk without space: what cannot be stored is refused, and what was stored is still there. Real where this user may
 * mount one (in a namespace of its own, so that no other process sees it), and everywhere by a limit on the size of
 * files.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import BetterSqlite3 from 'better-sqlite3';
import { eventually } from '../harness/eventually.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { fromSource, serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

/**
 * Runs in a namespace where $DIR is a small file system: makes a vault, fills the disk, tries, makes room, tries again.
 */
const script = `
  mount -t tmpfs -o size=2m tmpfs "$DIR" || exit 99
  vault() { group="$1"; verb="$2"; shift 2; "$NODE" "$MAIN" "$group" "$verb" --data-dir "$DIR/data" "$@"; }
  create() { vault certificate create --name "$1" --domain a.test; echo "$1 $?" >&3; }
  names() { vault certificate list --json | grep '^    "name"' >&3; }
  sum() { cksum < "$DIR/data/vault.db" >&3; }
  create first
  dd if=/dev/zero of="$DIR/filler" bs=4096 2>/dev/null
  sum; create second; sum
  rm "$DIR/filler"
  names; create third; names
`;

test(
  'a full disk is reported, nothing is lost, and commands work again once there is space',
  mayMount(),
  (t) => {
    const [NODE, MAIN] = fromSource;
    const result = spawnSync('unshare', ['--mount', '--map-root-user', 'sh', '-c', script], {
      env: { ...process.env, DIR: tempDir(t), NODE, MAIN },
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
    });
    const lines = (result.output[3] ?? '').trimEnd().split('\n');
    const [first, before, second, after, ...rest] = lines.map((line) => line.trim());
    assert.deepEqual([first, second], ['first 0', 'second 1'], result.stderr);
    assert.equal(after, before, 'the database is as it was');
    assert.deepEqual(rest, ['"name": "first",', 'third 0', '"name": "first",', '"name": "third",']);
    assert.match(
      result.stderr,
      /^vault: (the disk with the database is full|failed to read or write the database) /m,
    );
    assert.doesNotMatch(result.stderr, /\n\s+at /);
  },
);

test(
  'downloads that cannot be recorded are rejected, and the vault is not ready until they can be',
  needs('prlimit'),
  async (t) => {
    const dir = join(tempDir(t), 'data');
    await vault(['certificate', 'create', '--name=web', '--domain=a.test', '--data-dir', dir]);
    const options = ['--name=x', '--scope=private_keys:read', '--certificate=*'];
    const raw = (await vault(['api-key', 'create', '--data-dir', dir, ...options])).stdout.trim();
    const headers = { Authorization: `Bearer ${raw}` };
    // 1024 blocks of 512 bytes (dash) or 1024 (bash): the write-ahead log reaches that after some hundred downloads.
    const program = ['sh', '-c', 'ulimit -S -f 1024; exec "$0" "$@"', ...fromSource];
    const limited = await serve(t, dir, { program });
    const download = async (url: string) => {
      const response = await fetch(`${url}/api/v1/certificates/web/private.key`, { headers });
      return { status: response.status, body: await response.text() };
    };
    let handedOut = 0;
    let answer = await download(limited.url);
    for (; answer.status === 200 && handedOut < 2000; handedOut++) answer = await download(limited.url);
    assert.equal(answer.status, 503);
    assert.deepEqual(Object.keys(JSON.parse(answer.body) as object), ['status', 'code', 'detail']);
    assert.doesNotMatch(answer.body, /PRIVATE KEY|SQLITE|vault\.db/);
    assert.equal((await fetch(`${limited.url}/api/v1/health`)).status, 200);
    const ready = async () => (await fetch(`${limited.url}/api/v1/ready`)).status;
    for (let times = 0; times < 3; times += 1) assert.equal(await ready(), 503);
    // A client that was sent elsewhere finds no download to try with: the vault tries by itself.
    const raised = spawnSync('prlimit', ['--pid', `${limited.pid}`, '--fsize=unlimited']);
    assert.equal(raised.status, 0, String(raised.stderr));
    await eventually('the vault is ready', async () => (await ready()) === 200);
    assert.equal(await ready(), 200);
    assert.equal((await download(limited.url)).status, 200);
    await limited.end();
    const lines = limited.log().match(/"readiness check [^"]*"/g);
    assert.deepEqual(lines, ['"readiness check failed"', '"readiness check succeeds again"']);
    const database = new BetterSqlite3(join(dir, 'vault.db'), { readonly: true });
    const query = "select count(*) from audit_events where action = 'certificate.download'";
    assert.equal(database.prepare(query).pluck().get(), handedOut + 1);
    database.close();
  },
);

/**
 * A vault of the first schema on a small disk: it is upgraded, and its master key rotated, on a full disk and with
 * space again.
 */
const upgrade = `
  mount -t tmpfs -o size=3m tmpfs "$DIR" || exit 99
  mkdir -m 700 "$DIR/data" && gzip -dc "$OLD/vault.db.gz" >"$DIR/data/vault.db" && cp "$OLD/master.key" "$DIR/data/"
  chmod 600 "$DIR/data"/*
  vault() { "$NODE" "$MAIN" "$@" --data-dir "$DIR/data"; }
  fill() { dd if=/dev/zero of="$DIR/filler" bs=4096 2>/dev/null; }
  before=$(cksum <"$DIR/data/vault.db")
  fill
  # Room for SQLite's own files, and not for the copy.
  truncate -s -80K "$DIR/filler"
  vault certificate list; echo "upgrade $?" >&3
  [ "$before" = "$(cksum <"$DIR/data/vault.db")" ] && echo same >&3
  ls "$DIR/data" | tr '\\n' ' ' >&3; echo >&3
  rm "$DIR/filler"
  vault certificate list >/dev/null; echo "upgrade $?" >&3
  fill
  vault master-key rotate; echo "rotate $?" >&3
  rm "$DIR/filler"
  vault master-key rotate; echo "rotate $?" >&3
  vault master-key status | grep -c current >&3
  ls "$DIR/data" | grep -c 'master.key.*next' >&3
`;

test(
  'an upgrade or key rotation on a full disk fails without changes and succeeds once there is space',
  mayMount(),
  (t) => {
    const [NODE, MAIN] = fromSource;
    const OLD = fileURLToPath(new URL('../schemas/0001-first-schema', import.meta.url));
    const result = spawnSync('unshare', ['--mount', '--map-root-user', 'sh', '-c', upgrade], {
      env: { ...process.env, DIR: tempDir(t), NODE, MAIN, OLD },
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
    });
    const lines = (result.output[3] ?? '').trimEnd().split('\n');
    const [first, same, names, second, full, then, ...rest] = lines.map((line) => line.trim());
    assert.deepEqual(
      [first, same, second, full, then],
      ['upgrade 1', 'same', 'upgrade 0', 'rotate 1', 'rotate 0'],
      result.stderr,
    );
    assert.doesNotMatch(names ?? '', /before/);
    assert.deepEqual(rest, ['1', '0']);
    assert.match(
      result.stderr,
      /^vault: not enough space for the copy of the database before the upgrade \(.*\)\n {2}Free some space there/m,
    );
    assert.doesNotMatch(result.stderr, /\n\s+at /);
  },
);

function mayMount(): { skip?: string } {
  const args = ['--mount', '--map-root-user', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'];
  const { status } = spawnSync('unshare', args, { stdio: 'ignore' });
  return status === 0 ? {} : { skip: 'this user may not mount a file system' };
}
