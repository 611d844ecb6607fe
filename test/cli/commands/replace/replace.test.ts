/** `vault replace`: who is affected, started and followed with a server, and the exit codes that scripts read. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeChain } from '../../../harness/ca/openssl-chain.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { serve, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

const misuses: readonly (readonly [line: string, message: RegExp])[] = [
  ['start', /no certificates selected/],
  ['start --label a=b --key-compromised web', /--label and --key-compromised exclude each other/],
  ['start --key-compromised web --reason superseded', /--key-compromised and --reason exclude/],
  ['start --all-of-issuer x --reason boredom', /unknown reason "boredom"/],
  ['status --wait', /--wait needs one replacement/],
  ['status web', /"web" is not the id of a replacement/],
  ['cancel 0', /"0" is not the id of a replacement/],
];

for (const [line, message] of misuses) {
  test(`"vault replace ${line}" is misused and ends with the exit code 2`, async () => {
    const { code, stderr } = await vault(['replace', ...line.split(' ')]);
    assert.deepEqual([code, message.test(stderr)], [2, true], stderr);
  });
}

test('a replacement is previewed, started, followed and canceled', needs('openssl'), async (t) => {
  const dir = tempDir(t);
  const here = (line: string) => vault([...line.split(' '), '--data-dir', dir]);
  const done = async (line: string, code = 0) => {
    const outcome = await here(line);
    assert.equal(outcome.code, code, `${line}: ${outcome.stderr}`);
    return outcome;
  };
  await done('certificate create --name web --domain web.test --label team=web');
  const { leaf } = makeChain(tempDir(t), { label: 'bought' });
  const bundle = join(tempDir(t), 'bundle.pem');
  writeFileSync(bundle, `${leaf.certificatePem}${leaf.keyPem}`, { mode: 0o600 });
  await done(`certificate import --name bought --fullchain ${bundle}`);
  await done('certificate update --name bought --label team=web');
  const obstructed = await done('replace --label team=web --dry-run', 1);
  assert.match(obstructed.stdout, /^bought .* it was imported and has no issuer$/m);
  assert.match(obstructed.stderr, /action required for 1 of 2 certificates/);
  const preview = JSON.parse((await done('replace start --key-compromised web --dry-run --json')).stdout);
  assert.deepEqual(
    preview.map(({ certificate, version }: Record<string, unknown>) => [certificate, version]),
    [['web', 1]],
  );
  assert.match((await done('replace status')).stderr, /No replacements yet/);
  assert.match(
    (await done('replace start --key-compromised web', 1)).stderr,
    /refusing without confirmation/,
  );
  const alone = await done('replace start --key-compromised web --yes --wait', 1);
  assert.match(alone.stderr, /"vault serve" is not running; it is required to carry out the replacement/);
  assert.match((await done('replace cancel 1')).stderr, /Canceled replacement 1: 1 canceled/);
  assert.match((await done('replace cancel 1', 1)).stderr, /Replacement 1 is canceled/);
  await serve(t, dir);
  const line = 'replace start --label team=web --deadline 0 --yes --wait';
  const { stdout, stderr } = await done(line);
  assert.match(stderr, /^cannot replace bought: it was imported and has no issuer$/m);
  assert.match(stdout, /^web +revoked +1 +2 /m);
  const [newest] = JSON.parse((await done('replace status --json')).stdout);
  assert.deepEqual([newest.id, newest.state, newest.certificates.revoked], [2, 'finished', 1]);
  await done('replace status 2 --wait');
  assert.match((await done('replace status 1', 1)).stderr, /replacement 1 is incomplete: 1 canceled/);
  assert.match((await done('replace status 9', 1)).stderr, /Replacement not found/);
});
