/**
 * One key rotation is one new key: announced with both pins, used by the next renewal, and kept by the ones after it.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../harness/eventually.ts';
import { visit } from '../harness/http/https-client.ts';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const pinText = /sha256\/\/\S{44}/g;

/** Runs commands on the vault in this directory; each must succeed. */
function commands(dataDir: string) {
  return async (line: string) => {
    const { code, stdout, stderr } = await vault([...line.split(' '), '--data-dir', dataDir]);
    assert.equal(code, 0, stderr);
    return { stdout, stderr };
  };
}

type Shown = { public_key_pin: string; next_public_key_pin: string | null };

test('--rotate-key announces the next HTTPS key, which the next renewal uses and later renewals keep', async (t) => {
  const dataDir = tempDir(t);
  const done = commands(dataDir);
  const shown = async (): Promise<Shown> =>
    JSON.parse((await done('certificate show --name vault --json')).stdout) as Shown;
  writeFileSync(join(dataDir, 'vault.yaml'), 'tls_certificate: vault\n');
  const server = await serve(t, dataDir);
  const pinServed = async () => (await visit(`${server.url}/api/v1/health`)).pin;
  const servedWith = (pin: string) =>
    eventually('the certificate with this key', async () => (await pinServed()) === pin || undefined);
  const first = await pinServed();
  const words = ['doctor', '--offline', '--url', server.url];
  const doctor = async () => {
    const { stdout } = await vault([...words, '--json', '--data-dir', dataDir]);
    const { findings } = JSON.parse(stdout) as {
      findings: { check: string; status: string; hint?: string }[];
    };
    return findings.filter(({ check }) => check === 'key-rotation');
  };
  assert.deepEqual(await doctor(), []);

  const { stderr } = await done('certificate update --name vault --rotate-key');
  assert.match(
    stderr,
    /^Updated certificate vault\.\nWarning: the next renewal, on \S+Z, changes the public key\. /,
  );
  const [current, next] = stderr.match(pinText) ?? [];
  assert(next);
  assert.equal(current, first);
  assert.notEqual(next, first);
  assert.deepEqual(await shown().then((view) => [view.public_key_pin, view.next_public_key_pin]), [
    first,
    next,
  ]);
  const [finding] = await doctor();
  assert.equal(finding?.status, 'warning');
  assert.deepEqual(finding.hint?.match(pinText), [first, next]);
  assert.equal(await pinServed(), first, 'nothing changes before the renewal');
  const again = await done('certificate update --name vault --rotate-key');
  assert.deepEqual(again.stderr.match(pinText), [first, next], 'an announced key stays');

  await done('certificate renew --name vault --wait');
  await servedWith(next);
  assert.deepEqual(await shown().then((view) => [view.public_key_pin, view.next_public_key_pin]), [
    next,
    null,
  ]);
  const { leaf: second } = await visit(`${server.url}/api/v1/health`);
  await done('certificate renew --name vault --wait');
  await eventually('the third version', async () => {
    const { leaf } = await visit(`${server.url}/api/v1/health`);
    return leaf.serialNumber === second.serialNumber ? undefined : leaf;
  });
  assert.equal(await pinServed(), next, 'one rotation is one rotation');
  assert.deepEqual(await doctor(), []);
  await done('certificate update --name vault --no-reuse-key');
  const [warning] = await doctor();
  assert.match(warning?.hint ?? '', /\nFix: vault certificate update --name vault --reuse-key$/);
});

test('--no-rotate-key cancels a key rotation, and settings that change the public key print a warning', async (t) => {
  const done = commands(tempDir(t));
  await done('certificate create --name web --domain web.test --reuse-key');
  const pins = async () => {
    const { stdout } = await done('certificate show --name web');
    return [/^Public key pin +(\S+)$/m.exec(stdout)?.[1], /^Next key pin +(\S+)$/m.exec(stdout)?.[1]];
  };
  const [first] = await pins();
  await done('certificate update --name web --rotate-key');
  assert.notEqual((await pins())[1], undefined);
  await done('certificate update --name web --no-rotate-key');
  await done('certificate renew --name web --wait');
  assert.deepEqual(await pins(), [first, undefined]);
  await done('certificate create --name kept --domain kept.test --reuse-key');
  const other = await done('certificate update --name kept --key-type ec384');
  assert.match(other.stderr, /\nWarning: the new key type changes the public key\./);
  const { stderr } = await done('certificate update --name web --no-reuse-key');
  assert.match(stderr, /Warning: each renewal changes the public key\./);
  await done('certificate renew --name web --wait');
  const [second] = await pins();
  assert.notEqual(second, first);
  const rotated = await done('certificate update --name web --rotate-key --wait');
  assert.match(rotated.stdout, /^web: version 4, /);
  await done('certificate update --name web --rotate-key');
  await done('certificate update --name web --key-type rsa2048 --wait');
  const { stdout } = await done('certificate show --name web');
  assert.doesNotMatch(stdout, /Next key pin/, 'a key of another type replaces the scheduled one');
});
