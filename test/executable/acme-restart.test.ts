/** The process ends in the middle of an order, asked to or not; the next one goes on with the same order. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { issuedBy } from '../harness/acme/certificates.ts';
import { frontedVault, needsAcme } from '../harness/acme/vault.ts';
import { eventually } from '../harness/eventually.ts';

/**
 * Where a process is ended: when a request is about to reach the CA, or when the CA has done what was asked and the
 * answer is lost.
 */
const points = [
  { title: 'before the challenge is answered', what: 'request', path: /^\/chalZ\// },
  { title: 'when the challenge is answered', what: 'answer', path: /^\/chalZ\// },
  { title: 'before the certificate request is sent', what: 'request', path: /^\/finalize-order\// },
  { title: 'when the CA has the certificate request', what: 'answer', path: /^\/finalize-order\// },
  { title: 'before the certificate is downloaded', what: 'request', path: /^\/certZ\// },
] as const;

type State = {
  readonly status: string;
  readonly order_url: string | null;
  readonly key: string | null;
};

/** The only renewal. */
function state({ query }: Awaited<ReturnType<typeof frontedVault>>['vault']): State | undefined {
  return query<State>('select status, order_url, hex(sealed_private_key) as key from renewals')[0];
}

suite('the process ends in the middle of an order', needsAcme(), () => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    for (const { title, what, path } of signal === 'SIGKILL' ? points : points.slice(1, 4)) {
      test(`the next process finishes the same order after ${signal} ${title}`, async (t) => {
        const { vault, front } = await frontedVault(t, { nonceReject: 0 });
        const first = await vault.serve();
        const held = front.hold(what, path);
        const args = ['--name', 'web', '--domain', 'www.example.test', '--issuer', 'pebble'];
        await vault.done('certificate', 'create', ...args);
        await held.reached;
        // Where it looks while nobody answers, the order has failed, and rightly.
        if (title === 'when the challenge is answered') {
          await eventually('the CA has looked', () => /set VALID by/.test(vault.ca.log()) || undefined);
        }
        // Nobody answers until it has ended.
        const ended = await first.end(signal);
        assert.deepEqual(ended, signal === 'SIGTERM' ? { code: 0, signal: null } : { code: null, signal });
        held.release();
        const before = state(vault);
        assert.ok(before?.order_url);
        assert.equal(before.status, signal === 'SIGTERM' ? 'queued' : 'running');
        await vault.serve();
        const after = await eventually('the order is finished', () => {
          const row = state(vault);
          return row?.status === 'succeeded' ? row : undefined;
        });
        assert.equal(after.order_url, before.order_url);
        assert.equal(front.requests().filter((request) => request === 'POST /order-plz').length, 1);
        assert.equal(issuedBy(vault.ca), 1);
        const versions = vault.query<{ version: number }>('select version from certificate_versions');
        assert.deepEqual(versions, [{ version: 1 }]);
        // What the first process put up, and the second did not need, goes after the certificate is there.
        await eventually('no challenge is left', () =>
          vault.query('select id from acme_challenges').length === 0 ? true : undefined,
        );
      });
    }
  }

  test('one certificate is issued after SIGKILL between the creation of an order at the CA and its record', async (t) => {
    const { vault, front } = await frontedVault(t, { nonceReject: 0 });
    const first = await vault.serve();
    const held = front.hold('answer', /^\/order-plz$/);
    const args = ['--name', 'web', '--domain', 'www.example.test', '--issuer', 'pebble'];
    await vault.done('certificate', 'create', ...args);
    await held.reached;
    await first.end('SIGKILL');
    held.release();
    await vault.serve();
    await eventually(
      'the interrupted renewal has ended',
      () => state(vault)?.status === 'succeeded' || undefined,
    );
    const versions = vault.query<{ version: number }>('select version from certificate_versions');
    assert.deepEqual([versions, issuedBy(vault.ca)], [[{ version: 1 }], 1]);
  });
});
