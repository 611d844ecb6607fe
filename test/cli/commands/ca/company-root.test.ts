/**
 * `vault ca csr` and `vault ca import`: what they say, the files they write, and that a running server issues under the
 * company's root.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { companySigns, confinedCompany } from '../../../harness/ca/company-ca.ts';
import { openssl } from '../../../harness/ca/openssl-chain.ts';
import { commandLine, commandLineWithCa } from '../../../harness/processes/command-line.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { serve } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

/** A vault with a certificate of the company's domain, and the company. */
async function vaultAndCompany(t: TestContext) {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=web', '--domain=www.corp.example');
  const dir = tempDir(t);
  const { root, issuing } = confinedCompany(dir);
  /** The chain that the company returns, as a file. */
  const signed = (csr: string, days = 1825) => {
    const chain = join(dir, 'chain.pem');
    writeFileSync(chain, companySigns(dir, issuing, csr, { days }) + issuing.pem + root.pem);
    return chain;
  };
  return { ...line, dir, root, issuing, signed };
}

test(
  'ca csr and ca import reject other issuers, files with other content and chains that do not match',
  needs('openssl'),
  async (t) => {
    const other = await commandLineWithCa(t);
    for (const words of [['csr'], ['import', '--chain', other.file('x', 'x.pem')]]) {
      for (const issuer of ['ca', 'nothing']) {
        await other.refused(
          ['ca', ...words, '--issuer', issuer],
          `vault: no private CA named ${issuer}\n  Try: vault issuer list\n`,
        );
      }
    }
    const { done, refused, dir, issuing, root, file } = await vaultAndCompany(t);
    const whole = file(issuing.pem + root.pem, 'whole.pem');
    await refused(['ca', 'import'], /--chain/, 2);
    await refused(
      ['ca', 'import', '--chain', join(dir, 'nothing.pem')],
      /^vault: cannot read .*nothing\.pem: /,
    );
    await refused(
      ['ca', 'import', '--chain', whole],
      /^vault: there is no pending request for private CA local-ca\n {2}Create one, .*\nTry: vault ca csr --issuer local-ca --out vault\.csr\n$/,
    );
    const { stdout: csr } = await done('ca', 'csr');
    await refused(
      ['ca', 'import', '--chain', whole],
      /^vault: None of the certificates in the file has the key of the request: .*\n.*"vault ca csr" prints the CSR/,
    );
    await refused(
      ['ca', 'import', '--chain', file(csr, 'vault.csr')],
      /^vault: The file contains a CSR, not the certificate that the CA issued for it\.\n/,
    );
    await refused(['ca', 'csr', '--out', whole], /holds other content: whole\.pem\n.*--force/);
    assert.equal(readFileSync(whole, 'utf8'), issuing.pem + root.pem);
  },
);

test('a running server issues under the company root after ca import', needs('openssl'), async (t) => {
  const { done, refused, data, dir, root, issuing, signed } = await vaultAndCompany(t);
  const { url } = await serve(t, data);
  const roots = async () => (await fetch(`${url}/client/ca.crt`)).text();
  const former = await roots();

  const out = join(dir, 'request.csr');
  const first = await done('ca', 'csr', '--out', out);
  assert.equal(first.stdout, '');
  assert.equal(
    first.stderr,
    'Generated a key for an intermediate of local-ca. Send the CSR to the CA of the company, and import what it returns:\n' +
      '  vault ca import --chain FILE\n',
  );
  assert.equal(statSync(out).mode & 0o777, 0o600);
  const again = await done('ca', 'csr');
  assert.equal(again.stdout, readFileSync(out, 'utf8'));
  assert.match(again.stderr, /^The request of 20\d\d-.*Z is pending for an intermediate of local-ca\./);
  await done('ca', 'csr', '--out', out);
  assert.match(
    openssl(dir, 'req', '-in', out, '-verify', '-noout', '-text').toString().replace(/\s+/g, ' '),
    /CN = Certificate Vault Intermediate [0-9a-f]{8}.*CA:TRUE, pathlen:0 .*Certificate Sign, CRL Sign /,
  );

  const chain = signed(again.stdout);
  const { stdout, stderr } = await done('ca', 'import', '--chain', chain);
  assert.equal(stdout, '');
  assert.match(
    stderr,
    /^local-ca issues under CN=Example Corp Root,O=Example Corp from now on, until 20\d\d-.*Z\.\nQueued 1 renewal, over a day; "vault serve" runs it\.\nClients of local-ca have to trust the root of the company now\. The roots of local-ca for clients include the former one until 20\d\d-\d\d-\d\dT00:00:00Z\.\n$/,
  );
  assert.equal(await roots(), former + root.pem);
  await done('certificate', 'renew', '--name=web', '--wait');
  await done('certificate', 'export', '--name=web', '--out', join(dir, 'web'));
  const fullchain = readFileSync(join(dir, 'web', 'fullchain.crt'), 'utf8');
  assert(fullchain.endsWith(issuing.pem));
  writeFileSync(join(dir, 'untrusted.pem'), fullchain);
  openssl(
    dir,
    ...['verify', '-x509_strict', '-no-CAfile', '-no-CApath', '-CAfile', 'root.crt'],
    ...['-untrusted', 'untrusted.pem', '-verify_hostname', 'www.corp.example', 'untrusted.pem'],
  );

  await refused(
    ['certificate', 'create', '--name=other', '--domain=www.example.com'],
    'vault: issuer local-ca cannot issue for www.example.com: the certificate CN=Example Corp Issuing CA,O=Example Corp above it does not permit it\n',
    1,
  );
  await refused(
    ['ca', 'rotate'],
    /^vault: the root of local-ca belongs to another CA, which replaces it\n.*\nTry: vault ca csr --issuer local-ca --new\n$/,
  );
  const words = join(dir, 'words');
  writeFileSync(words, 'several words in a row\n', { mode: 0o600 });
  await refused(
    ['ca', 'export-root-key', join(dir, 'root-key.pem'), '--passphrase-file', words],
    /^vault: the root of local-ca belongs to another CA, which keeps its key\n/,
  );
  assert.equal(existsSync(join(dir, 'root-key.pem')), false);
  await refused(
    ['ca', 'import-root-key', join(dir, 'root.key'), '--passphrase-file', words],
    /^vault: the root of local-ca belongs to another CA, which keeps its key\n/,
  );
  const { stdout: shown } = await done('ca', 'show');
  assert.match(shown, /^root +current +CN=Example Corp Root,O=Example Corp +company /m);
  const { stdout: audit } = await done('audit', 'list');
  assert.match(audit, /issuer\.ca_request/);
  assert.match(audit, /issuer\.ca_import/);
});

test('doctor says when the company has to issue the next intermediate', needs('openssl'), async (t) => {
  const { done, run, signed } = await vaultAndCompany(t);
  const csr = async () => (await done('ca', 'csr')).stdout;
  await done('ca', 'import', '--chain', signed(await csr()));
  const found = async () => (await run('doctor')).stdout;
  assert.match(await found(), /local-ca: it issues under the root of a company until 20\d\d-/);
  await done('ca', 'import', '--chain', signed(await csr(), 300));
  assert.match(
    await found(),
    /local-ca: its intermediate expires at 20\d\d-[\s\S]*vault ca csr --issuer local-ca --out vault\.csr/,
  );
  await done('ca', 'import', '--chain', signed(await csr(), 20));
  assert.match(await found(), /local-ca: its intermediate expires at 20\d\d-/);
});
