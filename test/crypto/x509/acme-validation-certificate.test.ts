/** The certificate of tls-alpn-01, as OpenSSL reads it and as a CA gets it in a handshake (RFC 8737 §3). */
import assert from 'node:assert/strict';
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { connect, createServer } from 'node:tls';
import { readPemBlocks } from '../../../src/crypto/pem.ts';
import { validationCertificate } from '../../../src/crypto/x509/acme-validation-certificate.ts';
import { identifier, opensslSays, pemFile } from '../../harness/ca/private-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const keyAuthorization = 'token.thumbprint';
const terms = () => ({
  serial: randomBytes(16),
  notBefore: Date.UTC(2026, 10, 21, 12, 0, 0, 700),
  notAfter: Date.UTC(2026, 10, 28),
});

for (const [name, shown] of [
  ['www.example.com', 'DNS:www.example.com'],
  ['192.0.2.1', 'IP Address:192.0.2.1'],
  ['2001:db8::1', 'IP Address:2001:DB8:0:0:0:0:0:1'],
] as const) {
  test(
    `the certificate for ${name} has only that identifier and the digest in a critical extension`,
    needs('openssl'),
    async () => {
      const { certificate } = await validationCertificate(identifier(name), keyAuthorization, terms());
      const parsed = new X509Certificate(certificate);
      assert.equal(parsed.subjectAltName, shown);
      assert(parsed.verify(parsed.publicKey));
      assert.equal(parsed.validFromDate.toISOString(), '2026-11-21T12:00:00.000Z');
      const digest = createHash('sha256').update(keyAuthorization).digest('hex').toUpperCase();
      const text = opensslSays('x509', '-in', pemFile(parsed.raw), '-noout', '-text');
      assert.match(text, /1\.3\.6\.1\.5\.5\.7\.1\.31: critical/);
      const asn1 = opensslSays('asn1parse', '-in', pemFile(parsed.raw));
      // A critical id-pe-acmeIdentifier is a BOOLEAN and an OCTET STRING with the DER of an OCTET STRING in it.
      assert.match(asn1, new RegExp(`BOOLEAN +:255\\n.*OCTET STRING +\\[HEX DUMP\\]:0420${digest}`));
    },
  );
}

test('a TLS server presents the validation certificate over ALPN acme-tls/1', async (t) => {
  const name = 'www.example.com';
  const made = await validationCertificate(identifier(name), keyAuthorization, terms());
  const server = createServer({
    cert: made.certificate,
    key: made.privateKey.expose(),
    ALPNProtocols: ['acme-tls/1'],
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect({
    ...{ port, host: '127.0.0.1', servername: name, ALPNProtocols: ['acme-tls/1'] },
    rejectUnauthorized: false,
  });
  await once(socket, 'secureConnect');
  const [block] = readPemBlocks(made.certificate);
  assert.deepEqual(socket.getPeerX509Certificate()?.raw, block?.der);
  assert.equal(socket.alpnProtocol, 'acme-tls/1');
  socket.destroy();
});

test('two certificates for one challenge have different keys, which JSON does not contain', async () => {
  const make = () => validationCertificate(identifier('a.example.com'), keyAuthorization, terms());
  const [first, second] = await Promise.all([make(), make()]);
  assert.notEqual(first.privateKey.expose(), second.privateKey.expose());
  assert.match(first.privateKey.expose(), /^-----BEGIN PRIVATE KEY-----/);
  assert(!JSON.stringify(first).includes('PRIVATE KEY'));
});
