/** Names and addresses proved over HTTP and TLS: the CA comes to the listeners of the executable. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { acmeVault, frontedVault, needsAcme } from '../harness/acme/vault.ts';
import { eventually } from '../harness/eventually.ts';
import { serve } from '../harness/processes/vault-process.ts';

suite('listeners', needsAcme(), () => {
  test('http-01 and tls-alpn-01 validate names and an IP address', async (t) => {
    const vault = await acmeVault(t, { authzReuse: 0 });
    const server = await vault.serve();
    const client = await vault.client();
    const cases = [
      { name: 'http', domain: 'www.example.test', challenge: 'http-01', san: 'DNS:www.example.test' },
      { name: 'alpn', domain: 'alpn.example.test', challenge: 'tls-alpn-01', san: 'DNS:alpn.example.test' },
      { name: 'ip', domain: '127.0.0.1', challenge: 'http-01', san: 'IP Address:127.0.0.1' },
      { name: 'ip-alpn', domain: '127.0.0.1', challenge: 'tls-alpn-01', san: 'IP Address:127.0.0.1' },
    ];
    for (const { name, domain, challenge, san } of cases) {
      await vault.issue(name, '--domain', domain, '--challenge', challenge);
      const { body } = await client(server, name, 'certificate.crt');
      assert.equal(new X509Certificate(body).subjectAltName, san);
      const step = `validating ${domain} with ${challenge}`;
      const [row] = vault.query<{ steps: string }>('select steps from renewals order by id desc limit 1');
      assert.ok(row?.steps.includes(step), step);
    }
    assert.deepEqual(vault.query('select * from acme_challenges'), []);
  });

  test('any vault process responds to an http-01 challenge, not only the one that ordered', async (t) => {
    const { vault, front } = await frontedVault(t);
    const held = front.hold('request', /^\/chalZ\//);
    const ordering = await vault.serveMute();
    const issued = vault.issue('web', '--domain', 'www.example.test', '--challenge', 'http-01');
    await held.reached;
    const where = `127.0.0.1:${vault.httpPort}`;
    const answering = await serve(t, vault.dataDir, {
      args: ['--acme-http-listen', where, '--log-level', 'debug'],
    });
    held.release();
    await issued;
    await eventually('the line of the server that ordered', () =>
      ordering.log().includes('"msg":"certificate issued"'),
    );
    assert.doesNotMatch(answering.log(), /"msg":"(certificate issued|renewal step)/);
    // The usual listeners of both answer as well; a challenge that has ended is gone from all.
    for (const url of [ordering.url, answering.url, `http://${where}`]) {
      const { status } = await fetch(`${url}/.well-known/acme-challenge/unknown`);
      assert.equal(status, 404);
    }
  });

  test('a challenge without a response fails with the error of the CA, and a retry is scheduled in 60 seconds', async (t) => {
    const vault = await acmeVault(t);
    await vault.serveMute();
    const args = ['--name', 'web', '--domain', 'www.example.test', '--issuer', 'pebble', '--wait'];
    const complaint = await vault.refused('certificate', 'create', ...args);
    assert.match(complaint, /www\.example\.test/);
    assert.match(complaint, /connection refused/i);
    const shown = JSON.parse(await vault.done('renewals', 'list', '--failed', '--json'));
    assert.match(shown[0].error, /connection refused/i);
    const [row] = vault.query<{ wait: number; failed: number }>(
      'select next_renewal_at - last_attempt_at as wait, failed_attempts as failed from certificates',
    );
    assert.deepEqual(row, { wait: 60_000, failed: 1 });
  });
});
