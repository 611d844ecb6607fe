/** The Authorization header: what counts as a bearer token, and that no text in it ever gives more than a refusal. */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { readBearer } from '../../../src/http/auth/access.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';

const raw = `vk_abcdefghijkl.${'s'.repeat(43)}`;

suite('the Authorization header', () => {
  test('gives its token for any case of the scheme', () => {
    const headers = [
      `Bearer ${raw}`,
      `bearer ${raw}`,
      `BEARER ${raw}`,
      `Bearer   ${raw}`,
      `Bearer ${raw} \t`,
    ];
    for (const header of headers) assert.equal(readBearer(header), raw, header);
    assert.equal(readBearer('Bearer abc=='), 'abc==');
  });

  test('has no token if the scheme, the token or the space between them is invalid', () => {
    assert.equal(readBearer(undefined), undefined);
    const headers = [
      '',
      'Bearer',
      'Bearer ',
      raw,
      `Bearer${raw}`,
      `Bearer\t${raw}`,
      ` Bearer ${raw}`,
      `Basic ${raw}`,
      `Bearer ${raw} ${raw}`,
      `Bearer ${raw},`,
      `Bearer "${raw}"`,
      `Bearer ${raw}\n`,
      `Bearer =${raw}`,
      'Bearer a=b',
      'Bearer ключ',
    ];
    for (const header of headers) assert.equal(readBearer(header), undefined, header);
  });

  test('is parsed without an exception for arbitrary text, and a token is returned as sent', () => {
    const unit = fc.oneof(
      fc.constantFrom('Bearer', 'bearer ', ' ', '\t', '=', '.', 'vk_'),
      fc.string({ maxLength: 3 }),
    );
    const property = fc.property(fc.string({ unit, maxLength: 20 }), (header) => {
      const token = readBearer(header);
      assert(token === undefined || (header.includes(token) && /^[A-Za-z0-9._~+/=-]+$/.test(token)));
    });
    fc.assert(property, fuzzRuns(1000));
  });

  test('with a random token gets 401 without an audit event', async (t) => {
    const server = await checkedServer(t);
    await makeCertificate(server.vault, 'www');
    const key = await makeKey(server.vault);
    const [prefix = ''] = key.raw.split('.');
    // What fetch can send: visible Latin-1.
    const visible = fc.string({
      unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
    });
    const text = visible.map((value) => value.replaceAll(/[\x7f-\x9f]/g, '?'));
    const header = fc.oneof(
      text,
      text.map((value) => `Bearer ${value}`),
      text.map((value) => `Bearer ${prefix}.${value}`),
      fc.tuple(fc.nat(key.raw.length - 1), fc.constantFrom('A', 'B', '_')).map(([at, letter]) => {
        const changed = key.raw[at] === letter ? 'C' : letter;
        return `Bearer ${key.raw.slice(0, at)}${changed}${key.raw.slice(at + 1)}`;
      }),
    );
    const property = fc.asyncProperty(header, async (Authorization) => {
      const path = '/api/v1/certificates/www/private.key';
      const response = await server.get(path, undefined, { headers: { Authorization } });
      assert.equal(response.status, 401);
      assert.doesNotMatch(await response.text(), /BEGIN|vk_/);
    });
    await fc.assert(property, fuzzRuns(200));
    assert.deepEqual(eventsOf(server.dataDir, 'access.refuse'), []);
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.download'), []);
    assert.doesNotMatch(server.log.lines.join('\n'), /vk_|"level":"(warn|error)"/);
  });
});
