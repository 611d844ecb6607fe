/**
 * The gateway as the executable with a real CA, Pebble with its strictness and its rejection of nonces: a whole order,
 * one whose server is killed between finalize and certificate, and one that the CA refuses.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import {
  type AcmeAnswer,
  AcmeTestClient,
  csrFor,
  type ExternalAccount,
} from '../../../harness/acme/server-client.ts';
import { type AcmeVault, acmeVault, needsAcme } from '../../../harness/acme/vault.ts';
import { eventually } from '../../../harness/eventually.ts';

async function externalAccount({ done }: AcmeVault): Promise<ExternalAccount> {
  const options = [
    '--domain',
    '*.example.test',
    '--domain',
    '*.nowhere.test',
    '--issuer',
    'pebble',
    '--json',
  ];
  const { kid, hmac_key } = JSON.parse(await done('acme-client', 'create', '--name', 'proxy', ...options));
  return { kid, hmacKey: Buffer.from(hmac_key, 'base64url') };
}

type Renewal = { readonly status: string; readonly order_url: string | null };

const renewals = ({ query }: AcmeVault) =>
  query<Renewal>('select status, order_url from renewals order by id');

/** The order once it is no longer processing. */
function finished(client: AcmeTestClient, url: string): Promise<AcmeAnswer> {
  return eventually('the order', async () => {
    const answer = await client.post(url);
    assert.equal(answer.status, 200, answer.text);
    if (answer.json.status === 'processing') assert(Number(answer.headers.get('Retry-After')) >= 1);
    return answer.json.status === 'processing' ? undefined : answer;
  });
}

test(
  'an order at the gateway survives kill -9 with the same order at the CA, and errors of the CA reach the client',
  needsAcme(),
  async (t) => {
    const vault = await acmeVault(t);
    await vault.addDnsProvider();
    const external = await externalAccount(vault);
    const first = await vault.serve();
    const client = await AcmeTestClient.registered(first.url, external, { issuer: 'pebble' });
    const names = ['www.example.test', '*.example.test'];
    const csr = await csrFor(names);
    const ordered = await client.order(names);
    assert.equal(ordered.status, 201, ordered.text);
    const finalized = await client.post(ordered.json.finalize, { csr });
    assert.equal(finalized.json.status, 'processing', finalized.text);

    const url = await eventually('an order at the CA', () => renewals(vault)[0]?.order_url ?? undefined);
    await first.end('SIGKILL');
    assert.equal(renewals(vault)[0]?.status, 'running');

    const second = await vault.serve();
    const again = await AcmeTestClient.at(second.url, { issuer: 'pebble', key: client.key });
    assert.equal((await again.register(external)).status, 200);
    const path = new URL(ordered.headers.get('Location') ?? '').pathname;
    const valid = await finished(again, second.url + path);
    assert.equal(valid.json.status, 'valid', valid.text);
    assert.deepEqual(renewals(vault), [{ status: 'succeeded', order_url: url }]);
    const { text } = await again.post(valid.json.certificate);
    const leaf = new X509Certificate(text);
    const spki = leaf.publicKey.export({ type: 'spki', format: 'der' });
    assert(Buffer.from(csr, 'base64url').includes(spki));
    assert.match(leaf.subjectAltName ?? '', /DNS:www\.example\.test/);
    const stored = vault.query<{ length: number }>(
      'select length(sealed_private_key) as length from certificate_versions',
    );
    assert.deepEqual(stored, [{ length: 0 }]);

    const lost = ['www.nowhere.test'];
    const refused = await again.order(lost);
    await again.post(refused.json.finalize, { csr: await csrFor(lost) });
    const invalid = await finished(again, refused.headers.get('Location') ?? '');
    assert.equal(invalid.json.status, 'invalid');
    assert.match(invalid.json.error.type, /^urn:ietf:params:acme:error:(?:dns|connection|unauthorized)$/);
    assert.match(JSON.stringify(invalid.json.error), /nowhere\.test/);
    await second.end();
  },
);
