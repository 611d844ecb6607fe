/** Which certificates strangers trust: only those of public roots, while everything on the way is valid. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { rootCertificates } from 'node:tls';
import { isPubliclyTrusted } from '../../../src/crypto/x509/public-trust.ts';
import { type ChainOptions, issue, makeChain } from '../../harness/ca/openssl-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const now = Date.UTC(2026, 10, 21);

suite('public trust', needs('openssl'), () => {
  function chained(t: Parameters<typeof tempDir>[0], options?: ChainOptions) {
    const dir = tempDir(t);
    const { root, intermediates, leaf } = makeChain(dir, options);
    const open = ({ certificatePem }: { certificatePem: string }) => new X509Certificate(certificatePem);
    return {
      dir,
      root,
      leaf: open(leaf),
      intermediates: intermediates.map(open),
      rootCertificate: open(root),
    };
  }

  test('is given to a chain of a public root, with the root in it or not, and in any order', (t) => {
    const { root, leaf, intermediates, rootCertificate } = chained(t);
    const roots = [...rootCertificates, root.certificatePem];
    assert.equal(isPubliclyTrusted(leaf, intermediates, now, roots), true);
    assert.equal(isPubliclyTrusted(leaf, [rootCertificate, ...intermediates.toReversed()], now, roots), true);
  });

  test('is not given to private roots, broken chains or a root that only has the same name', (t) => {
    const { root, leaf, intermediates } = chained(t);
    const namesake = chained(t);
    assert.equal(isPubliclyTrusted(leaf, intermediates, now), false);
    assert.equal(isPubliclyTrusted(leaf, intermediates, now, [namesake.root.certificatePem]), false);
    assert.equal(isPubliclyTrusted(leaf, intermediates.slice(0, 1), now, [root.certificatePem]), false);
    assert.equal(isPubliclyTrusted(leaf, [], now, [root.certificatePem]), false);
    const selfSigned = issue(tempDir(t), 'self');
    const alone = new X509Certificate(selfSigned.certificatePem);
    assert.equal(isPubliclyTrusted(alone, [], now, [selfSigned.certificatePem]), false);
  });

  test('is not given before or after the validity period of the chain', (t) => {
    const dates = { notBefore: Date.UTC(2026, 9, 1), notAfter: Date.UTC(2026, 11, 1) };
    const { root, leaf, intermediates } = chained(t, dates);
    const at = (time: number) => isPubliclyTrusted(leaf, intermediates, time, [root.certificatePem]);
    assert.equal(at(now), true);
    assert.equal(at(dates.notAfter + 1000), false);
    assert.equal(at(dates.notBefore - 1000), false);
    assert.equal(at(Date.UTC(2050, 0)), false);
  });
});
