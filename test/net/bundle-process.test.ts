/**
 * Files that would keep the vault busy for hours: read by a process of their own, which the system ends, and which
 * leaves nothing.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Problem } from '../../src/base/problem.ts';
import { Secret } from '../../src/base/secret.ts';
import { realWorld } from '../../src/base/world.ts';
import { encodePem } from '../../src/crypto/pem.ts';
import { bundleReader, readBundleApart } from '../../src/net/bundle-process.ts';
import { makeChain, makeLeaf } from '../harness/ca/private-chain.ts';
import { dsaBomb, pkcs12Bomb } from '../harness/import-bombs.ts';

const password = new Secret('correct-horse-of-ours');

const readerIds = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((id) => {
      const [arguments_, parent] = ['cmdline', 'stat'].map((file) => contentOf(id, file));
      const above = Number(/^\d+ \(.*\) \w (\d+)/.exec(parent ?? '')?.[1]);
      return above === process.pid && arguments_?.includes(bundleReader) === true;
    });

/** Of a process that may have ended meanwhile. */
function contentOf(id: string, file: string): string {
  try {
    return readFileSync(`/proc/${id}/${file}`, 'utf8');
  } catch {
    // It has ended.
    return '';
  }
}

async function refusal(bytes: Buffer, name: string): Promise<Problem> {
  const error: unknown = await readBundleApart(realWorld, { sources: [{ name, bytes }], password }).then(
    () => assert.fail('it was read'),
    (reason: unknown) => reason,
  );
  assert(error instanceof Problem, String(error));
  return error;
}

/** Waits for another process. */
async function until<T>(look: () => T | undefined): Promise<T> {
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    await realWorld.turn();
  }
}

const usual = async () => {
  const leaf = await makeLeaf((await makeChain()).intermediate);
  const pem = [
    encodePem('CERTIFICATE', leaf.certificate),
    encodePem('PRIVATE KEY', leaf.privateKey.expose()),
  ];
  return { leaf, sources: [{ name: 'site.pem', bytes: Buffer.from(pem.join('')) }] };
};

const onLinux = process.platform === 'linux' ? {} : { skip: 'there is no /proc' };

test(
  'a PKCS#12 file with excessive rounds is stopped after 5 s, and the password is not in the process arguments',
  onLinux,
  async () => {
    const before = process.cpuUsage().user;
    // So many that no machine ends the first within the limit: a fast one did twenty million in less.
    const rounds = [400_000_000, 2 ** 31 - 1];
    const refusals = rounds.map((count) => refusal(pkcs12Bomb(password.expose(), count), 'site.p12'));
    const ids = await until(() => {
      const found = readerIds();
      return found.length === 2 ? found : undefined;
    });
    for (const id of ids) {
      const seen = contentOf(id, 'cmdline') + contentOf(id, 'environ');
      assert.ok(seen.includes(bundleReader));
      assert.ok(!seen.includes(password.expose()));
    }
    for (const { code, message, hint } of await Promise.all(refusals)) {
      assert.equal(code, 'invalid_request');
      assert.match(message, /^site\.p12 takes more than 5 seconds or too much memory to read/);
      assert.match(hint ?? '', /`openssl pkcs12 -legacy -in site\.p12 -nodes -out converted\.pem`/);
    }
    assert.deepEqual(readerIds(), []);
    assert.ok(process.cpuUsage().user - before < 10_000_000, 'the work was not done here');
  },
);

test('a DSA key that takes hours to read is stopped after 5 s', onLinux, async () => {
  const { code, message } = await refusal(dsaBomb(100_000), 'key.der');
  assert.equal(code, 'invalid_request');
  assert.match(message, /^key\.der takes more than 5 seconds or too much memory/);
  assert.deepEqual(readerIds(), []);
});

test('two files are read concurrently, sixteen wait, and further ones are rejected', async () => {
  const { leaf, sources } = await usual();
  const all = Array.from({ length: 19 }, () => readBundleApart(realWorld, { sources }));
  const settled = await Promise.allSettled(all);
  const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as Problem] : []));
  assert.deepEqual(
    refused.map(({ code, retryAfter }) => [code, retryAfter]),
    [['rate_limited', 5]],
  );
  for (const one of settled) {
    if (one.status === 'fulfilled') assert.deepEqual(one.value.leaf, leaf.certificate);
  }
  const again = await readBundleApart(realWorld, { sources });
  assert.deepEqual(again.privateKey.expose(), leaf.privateKey.expose());
  assert.deepEqual(again.warnings.length, 1);
});

test('errors in files are reported as if they were read in this process', async () => {
  const problem = await refusal(Buffer.from('hello'), 'note.txt');
  assert.equal(problem.message, 'note.txt contains neither a certificate nor a private key.');
  assert.match(problem.hint ?? '', /^Import a PKCS#12 or PEM file/);
  assert.equal((await refusal(Buffer.alloc(1_048_577), 'large.bin')).code, 'payload_too_large');
});
