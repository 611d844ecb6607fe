/** What CAs may want and offer: customers only, several chains, profiles, nonces that are refused. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { certificatesIn, verify } from '../harness/acme/certificates.ts';
import type { Held } from '../harness/acme/front.ts';
import { acmeVault, frontedVault, needsAcme } from '../harness/acme/vault.ts';
import { pebble } from '../harness/ca/pebble.ts';
import { needs } from '../harness/processes/missing-program.ts';

const eabKey = 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W';
const web = ['--domain', 'www.example.test'];

/** The common name in what `X509Certificate` calls a subject or an issuer. */
const commonName = (name: string) => /^CN=(.*)$/m.exec(name)?.[1] ?? '';

suite('issuers', needsAcme(), () => {
  test('the terms of service are shown and have to be accepted', async (t) => {
    const vault = await acmeVault(t);
    const { directoryUrl, caFile } = vault.ca;
    const args = ['--name', 'again', '--directory', directoryUrl, '--email', 'ops@example.test'];
    const complaint = await vault.refused('issuer', 'add', ...args, '--ca-file', caFile);
    assert.match(complaint, /the CA requires you to accept its terms of service: \S+\n.*--accept-terms/);
    assert.match(
      await vault.refused('issuer', 'add', ...args, '--accept-terms'),
      /certificate/i,
      'not trusted',
    );
    const names = JSON.parse(await vault.done('issuer', 'list', '--json')).map(
      (row: { name: string }) => row.name,
    );
    assert.deepEqual(names, ['local-ca', 'pebble']);
  });

  test('a CA that requires EAB issues only with the correct EAB key', async (t) => {
    const vault = await acmeVault(t);
    const customers = await pebble(t, {
      dnsServer: vault.dns.server,
      httpPort: vault.httpPort,
      eab: { 'kid-1': eabKey },
    });
    const { directoryUrl, caFile } = customers;
    const place = [
      '--directory',
      directoryUrl,
      '--ca-file',
      caFile,
      '--email',
      'a@example.test',
      '--accept-terms',
    ];
    const complaint = await vault.refused('issuer', 'add', '--name', 'none', ...place);
    assert.match(complaint, /requires external account binding \(EAB\)\n.*--eab-kid and --eab-hmac-key-file/);
    const [right, wrong] = ['right', 'wrong'].map((file) => join(vault.dir, file)) as [string, string];
    writeFileSync(right, `${eabKey}\n`);
    writeFileSync(wrong, Buffer.alloc(32, 1).toString('base64url'));
    await vault.addIssuer('right', customers, '--eab-kid', 'kid-1', '--eab-hmac-key-file', right);
    await vault.addIssuer('wrong', customers, '--eab-kid', 'kid-1', '--eab-hmac-key-file', wrong);
    await vault.serve();
    const create = ['certificate', 'create', ...web, '--wait'];
    const refused = await vault.refused(...create, '--name', 'web', '--issuer', 'wrong');
    assert.match(refused, /JWS verification|external ?account ?binding|MAC|HMAC/i);
    assert.match(await vault.done(...create, '--name', 'web-2', '--issuer', 'right'), /^web-2: version 1,/);
    await vault.done(
      'issuer',
      'update',
      '--name',
      'wrong',
      '--eab-kid',
      'kid-1',
      '--eab-hmac-key-file',
      right,
    );
    assert.match(await vault.done('certificate', 'renew', '--name', 'web', '--wait'), /^web: version 1,/);
  });

  test(
    '--preferred-chain selects the chain with that root, and an unknown root selects the default chain',
    needs('openssl'),
    async (t) => {
      const vault = await acmeVault(t, { alternateRoots: 2 });
      const roots = await Promise.all([0, 1, 2].map((n) => vault.ca.root(n)));
      const names = roots.map((root) => commonName(new X509Certificate(root).subject));
      assert.equal(new Set(names).size, 3);
      await vault.addIssuer('second', vault.ca, '--preferred-chain', names[2] ?? '');
      await vault.addIssuer('unknown', vault.ca, '--preferred-chain', 'No Such Root');
      const server = await vault.serve();
      const client = await vault.client();
      for (const [issuer, expected] of Object.entries({ pebble: 0, second: 2, unknown: 0 })) {
        await vault.done('certificate', 'create', '--name', issuer, ...web, '--issuer', issuer, '--wait');
        const { body } = await client(server, issuer, 'fullchain.crt');
        const top = certificatesIn(body).at(-1) ?? '';
        assert.equal(commonName(new X509Certificate(top).issuer), names[expected], issuer);
        assert.equal(verify(vault.dir, body, roots[expected] ?? ''), 'leaf.pem: OK');
        const other = roots[expected === 0 ? 1 : 0] ?? '';
        assert.throws(() => verify(vault.dir, body, other), /unable to get (local )?issuer certificate/);
      }
    },
  );

  test('Retry-After from the CA, in seconds or as a date, delays the next poll', async (t) => {
    // A refused nonce would be the answer that is held below.
    const { vault, front } = await frontedVault(t, { retryAfter: 2, authzReuse: 0, nonceReject: 0 });
    // Those that know no profiles know no such setting either.
    if (!vault.ca.has('profiles')) return t.skip(`Pebble ${vault.ca.version} sends no Retry-After`);
    const { url } = await vault.serveMute();
    // The CA sees the proof only after it has said, at least once, that it does not know yet.
    let asked: Held | undefined;
    const proof = createServer(async (request, reply) => {
      asked ??= front.hold('answer', /authz/i);
      await asked.reached;
      asked.release();
      const answer = await fetch(`${url}${request.url}`);
      reply.end(await answer.text());
    });
    t.after(() => proof.close());
    proof.listen(vault.httpPort, '127.0.0.1');
    await once(proof, 'listening');
    await vault.issue('web', ...web);
    const [row] = vault.query<{ took: number }>('select finished_at - started_at as took from renewals');
    // A date may be a part of a second sooner.
    assert.ok((row?.took ?? 0) >= 1000, `${row?.took} ms`);
  });

  test('no renewal fails at a CA that rejects every second nonce', async (t) => {
    const vault = await acmeVault(t, { nonceReject: 50 });
    await vault.serve();
    for (let number = 1; number <= 3; number += 1) {
      const made = await vault.issue(`web-${number}`, '--domain', `web-${number}.example.test`);
      assert.match(made, /: version 1,/);
    }
    assert.match(await vault.done('certificate', 'renew', '--name', 'web-1', '--wait'), /: version 2,/);
    assert.deepEqual(JSON.parse(await vault.done('renewals', 'list', '--failed', '--json')), []);
  });
});

test(
  "a certificate's profile takes precedence over its issuer's, and an unknown profile is rejected",
  needsAcme('profiles'),
  async (t) => {
    const profiles = {
      classic: { description: 'long', validityPeriod: 90 * 86_400 },
      shortlived: { description: 'short', validityPeriod: 6 * 86_400 },
    };
    const vault = await acmeVault(t, { profiles, issuer: ['--profile', 'classic'] });
    const server = await vault.serve();
    const client = await vault.client();
    const days = async (name: string) => {
      const { body } = await client(server, name, 'certificate.crt');
      const { validFromDate, validToDate } = new X509Certificate(body);
      return Math.round((validToDate.getTime() - validFromDate.getTime()) / 86_400_000);
    };
    await vault.issue('usual', ...web);
    await vault.issue('own', ...web, '--profile', 'shortlived');
    assert.deepEqual([await days('usual'), await days('own')], [90, 6]);
    const args = ['--name', 'odd', ...web, '--issuer', 'pebble', '--profile', 'nope', '--wait'];
    const complaint = await vault.refused('certificate', 'create', ...args);
    assert.match(complaint, /nope/);
    assert.match(complaint, /classic.*shortlived|shortlived.*classic/);
    await vault.done('certificate', 'update', '--name', 'own', '--profile', 'none');
    await vault.done('certificate', 'renew', '--name', 'own', '--wait');
    assert.equal(await days('own'), 90);
  },
);
