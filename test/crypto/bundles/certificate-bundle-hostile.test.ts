/** Arbitrary bytes as an import: they are rejected with a problem or used correctly. */

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { Problem } from '../../../src/base/problem.ts';
import { keyObject } from '../../../src/crypto/key-pair.ts';
import { encodePem, readPemBlocks } from '../../../src/crypto/pem.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { fixtures, now, p12, pemOf, read } from './bundle-fixtures.ts';

test(
  'an import of arbitrary bytes throws only Problem or returns a matching leaf and key',
  needs('openssl'),
  () => {
    const f = fixtures();
    const pem = Buffer.from(pemOf(f.leaf, f.lower, f.upper) + f.leaf.keyPem);
    const blocks = readPemBlocks(pem.toString());
    const change = fc.tuple(fc.nat(), fc.nat(255));
    const change4 = fc.array(change, { minLength: 1, maxLength: 4 });
    const mutate = (bytes: Buffer, changes: [number, number][]) => {
      const copy = Buffer.from(bytes);
      for (const [at, value] of changes) copy[at % copy.length] = value;
      return copy;
    };
    const p12Bytes = p12('-in', f.leaf.certificatePath, '-inkey', f.leaf.keyPath);
    const hostile = fc.oneof(
      fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes)),
      change4.map((changes) => mutate(pem, changes)),
      change4.map((changes) => mutate(p12Bytes, changes)),
      fc
        .array(change4, { minLength: 4, maxLength: 4 })
        .map((perBlock) =>
          Buffer.from(
            blocks
              .map(({ label, der }, i) => encodePem(label, mutate(der, (perBlock[i] ?? []).slice(i % 2))))
              .join(''),
          ),
        ),
    );
    fc.assert(
      fc.property(hostile, (bytes) => {
        const sources = { 'a.pem': bytes };
        try {
          const { leaf, privateKey } = read(sources, now, 'secret');
          assert.ok(new X509Certificate(leaf).checkPrivateKey(keyObject(privateKey)));
        } catch (error) {
          assert.ok(error instanceof Problem, inspect(error));
        }
      }),
      fuzzRuns(500),
    );
  },
);
