/** From server names to challenge certificates: which identifier a name stands for, and what is remembered. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { deleteChallengeRow } from '../../../src/db/tables/issuance/acme-challenges.ts';
import { challengeContexts, identifierIn } from '../../../src/http/tls/tls-alpn-certificate.ts';
import { putChallenge } from '../../harness/http/acme-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const names: readonly (readonly [serverName: string, identifier: string | undefined])[] = [
  ['www.example.test', 'www.example.test'],
  ['WWW.Example.Test', 'www.example.test'],
  ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  ['7.2.0.192.in-addr.arpa', '192.0.2.7'],
  ['7.2.0.192.IN-ADDR.ARPA', '192.0.2.7'],
  ['7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa', '2001:db8::7'],
  ['1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.IP6.ARPA', '::1'],
  ['256.2.0.192.in-addr.arpa', undefined],
  ['2.0.192.in-addr.arpa', '2.0.192.in-addr.arpa'],
  ['7.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa', '7.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa'],
  ['192.0.2.7', undefined],
  ['::1', undefined],
  ['', undefined],
  ['a b', undefined],
  ['a/b', undefined],
  ['x'.repeat(300), undefined],
];

suite('a server name', () => {
  for (const [name, identifier] of names) {
    test(`"${name.slice(0, 80)}" stands for ${identifier ?? 'nothing'}`, () => {
      assert.equal(identifierIn(name), identifier);
    });
  }
});

suite('a challenge certificate', () => {
  const challenge = { type: 'tls-alpn-01', identifier: 'www.example.test', key_authorization: 'token.print' };

  test('is generated once for each challenge with concurrent readers, and the newest challenge counts', async (t) => {
    const { vault } = await testVault(t);
    const find = challengeContexts(vault);
    assert.equal(await find('www.example.test'), undefined);
    const { id } = await putChallenge(vault, challenge);
    const [first, ...others] = await Promise.all(
      ['www', 'WWW', 'www'].map((label) => find(`${label}.example.test`)),
    );
    assert(first !== undefined);
    for (const other of [...others, await find('www.example.test')]) assert.equal(other, first);
    await putChallenge(vault, { ...challenge, key_authorization: 'newer.print' });
    const newer = await find('www.example.test');
    assert(newer !== undefined && newer !== first, 'the newest challenge counts');
    await vault.db.write((writer) => deleteChallengeRow(writer, id + 1));
    assert.equal(await find('www.example.test'), first);
    await vault.db.write((writer) => deleteChallengeRow(writer, id));
    assert.equal(await find('www.example.test'), undefined, 'what was taken down is not shown any more');
  });

  test('is not there for challenges of other types', async (t) => {
    const { vault } = await testVault(t);
    for (const type of ['http-01', 'dns-01']) await putChallenge(vault, { ...challenge, type });
    assert.equal(await challengeContexts(vault)('www.example.test'), undefined);
  });

  test('is generated at the next request after a failure', async (t) => {
    const { vault, world } = await testVault(t);
    await putChallenge(vault, challenge);
    let fails = true;
    const shaky = {
      ...vault,
      world: {
        now: world.now,
        elapsed: world.elapsed,
        sleep: world.sleep,
        turn: world.turn,
        randomBytes: (size: number) => {
          if (fails) throw new Error('no randomness');
          return world.randomBytes(size);
        },
      },
    };
    const find = challengeContexts(shaky);
    await assert.rejects(find('www.example.test'), /no randomness/);
    fails = false;
    assert(await find('www.example.test'));
  });
});
