/**
 * Real file systems that are small or read-only under the real executable, mounted in a private namespace. Here the
 * kernel returns the errors that other tests simulate.
 */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { patience } from '../harness/eventually.ts';
import { needs, type Skip } from '../harness/processes/missing-program.ts';
import { fromExecutable } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { get } from './fault-scene.ts';

const small = 'mount -t tmpfs -o size=6m,mode=700 tmpfs "$DIR"';

/** A file system that the kernel remounts read-only after an error, the usual configuration. */
const failing = `truncate -s 32M "$DIR.img" && mkfs.ext4 -q "$DIR.img" && mount -o loop,errors=remount-ro "$DIR.img" "$DIR"
  chmod 700 "$DIR"`;

/**
 * A shell script that runs each input line where the file system is mounted, and prints the exit code after its output.
 */
const script = `
  { eval "$MOUNT"; } >&2 || exit 99
  vault() { verb="$1"; shift; timeout 60 "$VAULT" $verb --data-dir "$DIR/data" "$@"; }
  serve() {
    : >"$DIR.out" # Now: the next line empties it only when its process comes to it, and the address in it is an old one.
    "$VAULT" serve --data-dir "$DIR/data" --listen 127.0.0.1:0 --log-level error >"$DIR.out" & server=$!
    until grep '^listening' "$DIR.out"; do kill -0 "$server" || return; sleep 0.05; done
  }
  stop() { kill "$server" && wait "$server"; }
  while read -r order; do eval "$order"; echo "did $?"; done
  kill -9 "$server" 2>/dev/null
`;

/** A shell where the file system is mounted. Both are removed when the test ends. */
async function inside(t: TestContext, mount: string) {
  const DIR = join(tempDir(t), 'disk');
  mkdirSync(DIR, { mode: 0o700 });
  const [VAULT] = fromExecutable;
  const child = spawn('unshare', [...namespaceFor(mount), 'sh', '-c', script], {
    env: { ...process.env, DIR, VAULT, MOUNT: mount },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  const ended = once(child, 'close');
  t.after(async () => {
    child.stdin.end();
    await ended;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const run = async (line: string): Promise<string[]> => {
    child.stdin.write(`${line}\n`);
    const said: string[] = [];
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`the shell has exited: ${complaints}`);
      const [, code] = /^did (\d+)$/.exec(value) ?? [];
      if (code !== undefined) return [...said, code];
      said.push(value);
    }
  };
  return {
    /** Runs a line of shell. Returns its stdout, followed by the exit code. */
    run,
    /** Starts a server and returns its address. */
    serve: async (): Promise<string> => {
      const [said = ''] = await run('serve');
      return said.replace('listening on ', '');
    },
    complaints: () => complaints,
  };
}

type Inside = Awaited<ReturnType<typeof inside>>;

/** Root can mount without a user namespace. */
function namespaceFor(mount: string): string[] {
  return mount === small ? ['--mount', '--map-root-user'] : ['--mount'];
}

/** Skips the test if the kernel or the container does not let this user mount the file system. */
function mayMount(mount: string, ...programs: string[]): Skip {
  for (const program of ['unshare', 'mount', ...programs]) {
    const { skip } = needs(program, ['/usr/sbin', '/sbin']);
    if (skip !== undefined) return { skip };
  }
  const probe = `DIR=$(mktemp -d) && { ${mount}; } && mountpoint -q "$DIR"; code=$?; umount "$DIR"; rm -rf "$DIR" "$DIR.img"; exit $code`;
  const { status } = spawnSync('unshare', [...namespaceFor(mount), 'sh', '-c', probe], { stdio: 'ignore' });
  return status === 0 ? {} : { skip: 'the kernel does not let this user mount such a file system' };
}

async function makeVault({ run }: Inside): Promise<string> {
  assert.equal((await run('vault "certificate create" --name web --domain web.test')).at(-1), '0');
  const rights = '--scope certificates:read --scope private_keys:read --certificate "*"';
  const [key = '', code] = await run(`vault "api-key create" --name client ${rights}`);
  assert.equal(code, '0');
  return key;
}

const agent = new Agent();
const download = (url: string, key: string) =>
  get(agent, `${url}/api/v1/certificates/web/private.key`, { key });

/** Downloads until one fails. Returns the number of successful ones. */
async function untilRefused(url: string, key: string): Promise<number> {
  for (let answered = 0; answered < 5000; answered += 1) {
    const { status, headers, body } = await download(url, key);
    if (status === 200) continue;
    assert.equal(status, 503, body);
    assert.ok(Number(headers['retry-after']) > 0);
    assert.doesNotMatch(body, /PRIVATE KEY|SQLITE|vault\.db/);
    return answered;
  }
  throw new Error('no download failed');
}

async function untilAnswered(url: string, key: string): Promise<void> {
  const deadline = performance.now() + patience;
  for (;;) {
    const { status, body } = await download(url, key);
    if (status === 200) return;
    assert.ok(performance.now() < deadline, `it does not recover: ${status} ${body}`);
    await delay(50);
  }
}

/** Verifies the audit log and returns its number of downloads. */
async function recorded({ run }: Inside): Promise<number> {
  assert.deepEqual(await run('vault "audit verify" >/dev/null'), ['0']);
  const [count] = await run('vault "audit export" | grep -c certificate.download');
  return Number(count);
}

test(
  'on a full disk a server rejects what it cannot record, and recovers when there is space',
  mayMount(small),
  async (t) => {
    const disk = await inside(t, small);
    const key = await makeVault(disk);
    const url = await disk.serve();
    await untilAnswered(url, key);
    let answered = 1;
    for (let round = 0; round < 2; round += 1) {
      await disk.run('dd if=/dev/zero of="$DIR/filler" bs=4096 2>/dev/null');
      answered += await untilRefused(url, key);
      assert.equal((await get(agent, `${url}/api/v1/health`)).status, 200);
      assert.deepEqual(await disk.run('vault "certificate create" --name more --domain a.test'), ['1']);
      assert.deepEqual(await disk.run('rm "$DIR/filler"'), ['0']);
      await untilAnswered(url, key);
      answered += 1;
    }
    assert.deepEqual(await disk.run('stop'), ['0']);
    assert.equal(await recorded(disk), answered);
    assert.match(disk.complaints(), /^vault: (the disk with the database is full|failed to read or write)/m);
  },
);

test(
  'on a read-only disk a server fails to start with an error message, and starts once the disk is writable',
  mayMount(small),
  async (t) => {
    const disk = await inside(t, small);
    const key = await makeVault(disk);
    assert.deepEqual(await disk.run('mount -o remount,ro "$DIR"'), ['0']);
    assert.deepEqual(
      await disk.run('timeout 60 "$VAULT" serve --data-dir "$DIR/data" --listen 127.0.0.1:0'),
      ['1'],
    );
    assert.match(disk.complaints(), /^vault: cannot (open|write to) the database .*\n {2}\S/m);
    assert.deepEqual(await disk.run('mount -o remount,rw "$DIR"'), ['0']);
    await untilAnswered(await disk.serve(), key);
    assert.deepEqual(await disk.run('stop'), ['0']);
    assert.equal(await recorded(disk), 1);
  },
);

test(
  'after the kernel remounts the disk read-only a server rejects requests, and recorded data survives the next mount',
  mayMount(failing, 'mkfs.ext4', 'findmnt'),
  async (t) => {
    const disk = await inside(t, failing);
    const key = await makeVault(disk);
    const url = await disk.serve();
    await untilAnswered(url, key);
    const trigger = '/sys/fs/ext4/$(basename "$(findmnt -no SOURCE "$DIR")")/trigger_fs_error';
    assert.deepEqual(await disk.run(`echo broken > "${trigger}"`), ['0']);
    const answered = 1 + (await untilRefused(url, key));
    assert.equal((await get(agent, `${url}/api/v1/health`)).status, 200);
    await disk.run('stop');
    assert.deepEqual(await disk.run('umount "$DIR" && mount -o loop,errors=remount-ro "$DIR.img" "$DIR"'), [
      '0',
    ]);
    await untilAnswered(await disk.serve(), key);
    assert.deepEqual(await disk.run('stop'), ['0']);
    assert.equal(await recorded(disk), answered + 1);
  },
);
