/** Nonces: each is accepted once, for a while, by all processes of a vault and by no other vault. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { minute } from '../../../../src/base/duration.ts';
import { Nonces, nonceLifetime, storeNonce } from '../../../../src/domain/acme-server/protocol/nonces.ts';
import { testVault } from '../../../harness/test-vault.ts';

const refused = { type: 'badNonce' };

suite('a nonce', () => {
  test('is base64url, differs from all others, and is accepted once', async (t) => {
    const { vault } = await testVault(t);
    const nonces = new Nonces(vault);
    const [one, other] = [nonces.fresh(), nonces.fresh()];
    assert.match(one, /^[A-Za-z0-9_-]{43}$/);
    assert.notEqual(one, other);
    nonces.use(one);
    assert.throws(() => nonces.use(one), refused);
    nonces.use(other);
  });

  test('is accepted by another process, but rejected when it is stored a second time', async (t) => {
    const { vault } = await testVault(t);
    const [first, second] = [new Nonces(vault), new Nonces(vault)];
    const text = first.fresh();
    const used = first.use(text);
    await vault.db.write((writer) => storeNonce(writer, used));
    const again = second.use(text);
    await assert.rejects(
      vault.db.write((writer) => storeNonce(writer, again)),
      refused,
    );
  });

  test('is rejected after its lifetime and when its time is in the future', async (t) => {
    const { vault, world } = await testVault(t);
    const nonces = new Nonces(vault);
    const text = nonces.fresh();
    world.advance(nonceLifetime - 1000);
    nonces.use(text);
    const late = nonces.fresh();
    world.advance(nonceLifetime);
    assert.throws(() => nonces.use(late), refused);
    const early = nonces.fresh();
    world.advance(-minute);
    assert.throws(() => nonces.use(early), refused);
  });

  test('is rejected as used even when a process has used more nonces than it remembers', async (t) => {
    const { vault, world } = await testVault(t);
    const nonces = new Nonces(vault, 3);
    const used = Array.from({ length: 4 }, () => nonces.fresh());
    for (const one of used) nonces.use(one);
    for (const one of used) assert.throws(() => nonces.use(one), refused);
    const last = nonces.fresh();
    nonces.use(last);
    world.advance(nonceLifetime - 1000);
    assert.throws(() => nonces.use(last), refused);
  });

  test('is rejected if modified, shortened, missing or from another vault, and malformed if not base64url', async (t) => {
    const { vault } = await testVault(t);
    const { vault: other } = await testVault(t);
    const nonces = new Nonces(vault);
    const bytes = Buffer.from(nonces.fresh(), 'base64url');
    for (const index of [0, 3, 4, 15, 16, 31]) {
      const changed = Buffer.from(bytes);
      changed[index] = (changed[index] ?? 0) ^ 1;
      assert.throws(() => nonces.use(changed.toString('base64url')), refused, String(index));
    }
    for (const text of [bytes.subarray(0, 31).toString('base64url'), '', 'AAAA', 'x'.repeat(4000)]) {
      assert.throws(() => nonces.use(text), refused, text);
    }
    assert.throws(() => nonces.use(undefined), refused);
    assert.throws(() => nonces.use(new Nonces(other).fresh()), refused);
    for (const text of ['a b', 'ä', `${bytes.toString('base64')}=`, 'A']) {
      assert.throws(() => nonces.use(text), { type: 'malformed' }, text);
    }
    nonces.use(bytes.toString('base64url'));
  });
});
