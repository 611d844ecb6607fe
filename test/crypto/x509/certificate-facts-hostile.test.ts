/**
 * Certificates with damaged and with hostile bytes: nothing is thrown, and what is said of those that can be opened
 * agrees with a reader of DER that knows nothing of OpenSSL.
 */
import assert from 'node:assert/strict';
import { hash, X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { parseIdentifier } from '../../../src/base/identifier.ts';
import {
  factsOf,
  openCertificate,
  titleOf,
  validityWarnings,
} from '../../../src/crypto/x509/certificate-facts.ts';
import { makeChain } from '../../harness/ca/openssl-chain.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';

type Element = { readonly tag: number; readonly content: Buffer };

/** The elements in the content of a DER sequence. */
function elements(bytes: Buffer): Element[] {
  const all: Element[] = [];
  let at = 0;
  while (at < bytes.length) {
    const first = bytes[at + 1] ?? 0;
    const size = first < 0x80 ? 0 : first - 0x80;
    const length = size === 0 ? first : bytes.readUIntBE(at + 2, size);
    const start = at + 2 + size;
    all.push({ tag: bytes[at] ?? 0, content: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return all;
}

/** Serial number and validity of a certificate (RFC 5280 §4.1). */
function readDer(der: Buffer): {
  readonly serial: bigint;
  readonly notBefore: number;
  readonly notAfter: number;
} {
  const inside = (element: Element | undefined) => elements(element?.content ?? Buffer.alloc(0));
  const [certificate] = elements(der);
  const [signed] = inside(certificate);
  const parts = inside(signed);
  const [serial, , , validity] = parts[0]?.tag === 0xa0 ? parts.slice(1) : parts;
  const [notBefore = 0, notAfter = 0] = inside(validity).map(timeIn);
  return {
    serial: BigInt.asIntN((serial?.content.length ?? 1) * 8, BigInt(`0x${serial?.content.toString('hex')}`)),
    notBefore,
    notAfter,
  };
}

/** UTCTime and GeneralizedTime (RFC 5280 §4.1.2.5), with zones as older encoders wrote them. */
function timeIn({ tag, content }: Element): number {
  const text = content.toString('latin1');
  const form = /^(\d{2,4}?)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?(?:\.\d+)?(?:Z|([+-])(\d\d)(\d\d))$/;
  const digits = tag === 0x17 ? `${Number(text.slice(0, 2)) < 50 ? '20' : '19'}${text}` : text;
  const [, , ...rest] = form.exec(digits.slice(2)) ?? [];
  const [month, day, hour, minute, second, sign, hours, minutes] = rest;
  const zone = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * (sign === '-' ? -1 : 1);
  const at = new Date(0);
  at.setUTCFullYear(Number(digits.slice(0, 4)), Number(month) - 1, Number(day));
  at.setUTCHours(Number(hour), Number(minute) - zone, Number(second ?? 0));
  return at.getTime();
}

suite('a certificate', () => {
  test(
    'with changed bytes is rejected, or its facts agree with an independent DER reader',
    needs('openssl'),
    (t) => {
      const { leaf, root } = makeChain(tempDir(t));
      const originals = [leaf, root].map(({ certificatePem }) => new X509Certificate(certificatePem).raw);
      const change = fc.tuple(fc.nat(), fc.oneof(fc.nat(255), fc.constantFrom(0, 1, 0x30, 0x7f, 0x80, 0xff)));
      const changes = fc.array(change, { minLength: 1, maxLength: 4 });
      let opened = 0;
      const property = fc.property(fc.constantFrom(...originals), changes, (original, all) => {
        const der = Buffer.from(original);
        for (const [at, value] of all) der[at % der.length] = value;
        const certificate = openCertificate(der);
        if (certificate === undefined) return;
        opened += 1;
        const facts = factsOf(certificate);
        const { serial, notBefore, notAfter } = readDer(certificate.raw);
        assert.equal(facts.fingerprintSha256, hash('sha256', certificate.raw));
        assert.equal(BigInt(`0x${facts.serial.replace('-', '')}`), serial < 0n ? -serial : serial);
        assert.deepEqual([facts.notBefore, facts.notAfter], [notBefore, notAfter]);
        for (const text of [titleOf(certificate), ...validityWarnings(certificate, notBefore)]) {
          assert.doesNotMatch(text, /\p{C}/u);
        }
      });
      fc.assert(property, fuzzRuns(2000));
      assert(opened > 100, `only ${opened} could be opened`);
    },
  );

  test(
    'with arbitrary bytes in a name lists only valid domains and never two for one name',
    needs('openssl'),
    (t) => {
      const { leaf } = makeChain(tempDir(t));
      const original = new X509Certificate(leaf.certificatePem).raw;
      const name = Buffer.from('example.com');
      const place = original.lastIndexOf(name);
      const hostile = fc.oneof(
        fc
          .constantFrom(...', DNS:', '"', '\\', '\0', '\n', ',', ' ', 'IP Address:', 'a', '.', '*', 'é')
          .map((text) => text),
        fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
      );
      const texts = fc
        .array(hostile, { maxLength: name.length })
        .map((scraps) => scraps.join('').padEnd(name.length, 'x').slice(0, name.length));
      const property = fc.property(texts, (text) => {
        const der = Buffer.from(original);
        der.write(text, place, 'latin1');
        const certificate = openCertificate(der);
        assert(certificate);
        const { domains } = factsOf(certificate);
        const expected = ['www.example.com', text]
          .map(parseIdentifier)
          .filter((domain) => domain !== undefined);
        assert.deepEqual(domains, [...new Set(expected)], JSON.stringify(text));
      });
      fc.assert(property, fuzzRuns(500));
    },
  );
});
