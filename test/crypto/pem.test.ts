/** PEM as people have it: what is read in spite of its dress, what is refused, and that no text takes long. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { Problem } from '../../src/base/problem.ts';
import { encodePem, pemText, readPemBlocks } from '../../src/crypto/pem.ts';
import { processorTimeOf } from '../harness/event-loop-turns.ts';
import { fuzzRuns } from '../harness/fuzz-runs.ts';

const der = Buffer.from([...Array(100).keys()]);
const pem = encodePem('CERTIFICATE', der);
const block = { label: 'CERTIFICATE', der, encrypted: false };
const bom = '\uFEFF';

test('a block is written with 64 columns, LF and a newline at the end', () => {
  const lines = pem.split('\n');
  assert.equal(lines[0], '-----BEGIN CERTIFICATE-----');
  assert.deepEqual(
    lines.slice(1, -2).map((line) => line.length),
    [64, 64, 8],
  );
  assert.deepEqual(lines.slice(-2), ['-----END CERTIFICATE-----', '']);
  assert.equal(pem.includes('\r'), false);
});

const dresses: Record<string, string> = {
  'with CRLF': pem.replaceAll('\n', '\r\n'),
  'with lone CR': pem.replaceAll('\n', '\r'),
  'with a byte order mark': bom + pem,
  'without a final newline': pem.trimEnd(),
  'with spaces around the lines': pem.replace(/^|$/gm, ' \t '),
  'with a space before the dashes of its label': pem.replaceAll('CERTIFICATE-', 'CERTIFICATE -'),
  'with empty lines inside': pem.replaceAll('\n', '\n\n'),
  'on one line': pem.replaceAll('\n', ' '),
  'in lines of 76 columns': pem.replace(/\n(?!-)/g, '').replace(/(.{76})/g, '$1\n'),
  'after Bag Attributes': `Bag Attributes\n    friendlyName: a -----BEGIN\nsubject=CN = x\n${pem}`,
  'before text': `${pem}trailing words`,
  'after a comment that names the marker': `# paste -----BEGIN CERTIFICATE----- here\n${pem}`,
  'after a block that is commented out': `${pem.replace(/^(?=.)/gm, '# ')}${pem}`,
  'after a broken block of an ignored type': `-----BEGIN DH PARAMETERS-----\nMIIB\n${pem}`,
  'after a PGP block': `-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ==\n=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n${pem}`,
  'with an explanatory header': pem.replace('-----\n', '-----\nComment: made on Monday\n\n'),
};

for (const [dress, text] of Object.entries(dresses)) {
  test(`a block ${dress} is read`, () => {
    assert.deepEqual(readPemBlocks(text), [block]);
  });
}

test('files that were joined without a newline, each with its byte order mark, are read in order', () => {
  const key = encodePem('PRIVATE KEY', Buffer.from('key'));
  const blocks = readPemBlocks([pem, key, pem].map((one) => bom + one.trimEnd()).join(''));
  assert.deepEqual(
    blocks.map(({ label }) => label),
    ['CERTIFICATE', 'PRIVATE KEY', 'CERTIFICATE'],
  );
  const joined = readPemBlocks(pem.trimEnd() + pem);
  assert.deepEqual(joined, [block, block]);
});

test('both formats of encrypted keys are recognized', () => {
  const headers = 'Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00112233\n\n';
  const traditional = encodePem('RSA PRIVATE KEY', der).replace('-----\n', `-----\n${headers}`);
  assert.deepEqual(readPemBlocks(traditional), [{ label: 'RSA PRIVATE KEY', der, encrypted: true }]);
  const crlf = traditional.replaceAll('\n', '\r\n');
  assert.deepEqual(readPemBlocks(crlf), [{ label: 'RSA PRIVATE KEY', der, encrypted: true }]);
  assert.equal(readPemBlocks(encodePem('ENCRYPTED PRIVATE KEY', der))[0]?.encrypted, true);
});

test('text without blocks returns an empty list', () => {
  for (const text of ['', '\n', 'hello', '-----BEGIN', '-----BEGIN \n-----', '-----END-----']) {
    assert.deepEqual(readPemBlocks(text), []);
  }
});

const lines = pem.split('\n');
const breakages: Record<string, { text: string; says: RegExp }> = {
  'without an END line': { text: lines.slice(0, -2).join('\n'), says: /line 1 has no END line/ },
  'whose END line is truncated': { text: pem.replace(/----\n$/, ''), says: /line 1 has no END line/ },
  'interrupted by another block': {
    text: `x\r\n\r\n${lines.slice(0, 2).join('\r\n')}\r\n${pem}`,
    says: /CERTIFICATE block at line 3 has no END line/,
  },
  'with an END line of another type': {
    text: pem.replace('END CERTIFICATE', 'END PRIVATE KEY'),
    says: /END line of another type/,
  },
  'whose BEGIN line is lost in another block': {
    text: '-----BEGIN DH PARAMETERS-----\nAAEC\n-----END CERTIFICATE-----',
    says: /CERTIFICATE block at line 3 has an END line without a BEGIN/,
  },
  'without a BEGIN line': { text: lines.slice(1).join('\n'), says: /line 4 has an END line without a BEGIN/ },
  'with a sixth dash before BEGIN': { text: `-${pem}`, says: /END line without a BEGIN/ },
  'with a foreign character': { text: pem.replace('AAEC', 'AA!C'), says: /is not base64 text/ },
  'that misses a character': { text: pem.replace('AAEC', 'AAC'), says: /is not base64 text/ },
  'with padding in the middle': { text: pem.replace('AAEC', 'AA=='), says: /is not base64 text/ },
  'that is empty': {
    text: '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----',
    says: /is not base64 text/,
  },
  'of headers only': {
    text: '-----BEGIN PRIVATE KEY-----\na: b\n-----END PRIVATE KEY-----',
    says: /is not base64 text/,
  },
};

for (const [breakage, { text, says }] of Object.entries(breakages)) {
  test(`a certificate or key block ${breakage} is rejected with the file name and a hint`, () => {
    assert.throws(
      () => readPemBlocks(text, 'site.pem'),
      (error) => {
        assert.ok(error instanceof Problem);
        assert.equal(error.code, 'invalid_request');
        assert.match(error.message, says);
        assert.match(error.message, /^site\.pem is damaged: /);
        assert.match(error.hint ?? '', /^Copy the complete file again .*\.$/);
        return true;
      },
    );
  });
}

test('UTF-8 and UTF-16 are distinguished by the byte order mark', () => {
  const little = Buffer.from(bom + pem, 'utf16le');
  for (const bytes of [little, Buffer.from(little).swap16(), Buffer.from(bom + pem), Buffer.from(pem)]) {
    assert.deepEqual(readPemBlocks(pemText(bytes)), [block]);
  }
  assert.equal(typeof pemText(Buffer.from([0xfe, 0xff, 0x00])), 'string');
});

test('encoded blocks with any text between them parse to the same blocks', () => {
  const junk = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('-----', '----'));
  const labels = fc.constantFrom('CERTIFICATE', 'PRIVATE KEY', 'EC PARAMETERS', 'X509 CRL');
  const pieces = fc.array(fc.tuple(junk, labels, fc.uint8Array({ minLength: 1, maxLength: 300 })));
  const newlines = fc.constantFrom('\n', '\r\n', '\r');
  fc.assert(
    fc.property(pieces, newlines, (blocks, newline) => {
      const text = blocks.map(([between, label, bytes]) => {
        return `${between}${newline}${encodePem(label, Buffer.from(bytes)).replaceAll('\n', newline)}`;
      });
      const expected = blocks.map(([, label, bytes]) => ({
        label,
        der: Buffer.from(bytes),
        encrypted: false,
      }));
      assert.deepEqual(readPemBlocks(text.join('')), expected);
    }),
  );
});

test('readPemBlocks throws only Problem for arbitrary text', () => {
  const scraps = fc.constantFrom(
    '-----',
    'BEGIN ',
    'END ',
    'CERTIFICATE',
    '\n',
    ' ',
    'AAAA',
    'a: b',
    '=',
    bom,
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(scraps).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(text, (hostile) => {
      try {
        readPemBlocks(hostile);
      } catch (error) {
        assert.ok(error instanceof Problem);
      }
    }),
    fuzzRuns(2000),
  );
});

test('1 MiB of any repeated fragment is read in less than 2 s of CPU time', () => {
  const scraps = [
    '-',
    '-----',
    '-----BEGIN ',
    '-----BEGIN A',
    '-----BEGIN A-----',
    '-----BEGIN A-----\n',
    '-----END A-----\n',
    '-----BEGIN A-----\n-----END A-----\n',
    ' ',
    '\n',
    '\r',
    ' -----BEGIN A----- ',
    'a:\n',
    '=',
    'AAAA\n',
    bom,
  ];
  for (const scrap of scraps) {
    for (const head of ['', '-----BEGIN A-----\n', '-----BEGIN KEY-----\n']) {
      const text = head + scrap.repeat(Math.ceil(2 ** 20 / scrap.length));
      const took = processorTimeOf(() => {
        try {
          readPemBlocks(text);
        } catch (error) {
          assert.ok(error instanceof Problem);
        }
      });
      assert.ok(took < 2000, `${JSON.stringify(head + scrap)} took ${took} ms`);
    }
  }
});

test('the error about a damaged key contains no part of the key', () => {
  const secret = randomBytes(90).toString('base64');
  const text = `-----BEGIN PRIVATE KEY-----\n${secret}!\n-----END PRIVATE KEY-----`;
  assert.throws(
    () => readPemBlocks(text),
    (error: Problem) => !JSON.stringify(error.body).includes(secret.slice(0, 8)) && error.cause === undefined,
  );
});

test('blocks read from any text are the same after they are encoded and read again', () => {
  const scrap = fc.oneof(
    fc.constantFrom(
      pem,
      pem.replaceAll('\n', '\r\n'),
      pem.slice(0, 60),
      pem.slice(40),
      '-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n',
    ),
    fc.constantFrom('\n', ' ', bom, '# ', '-----', 'a: b\n', '-----BEGIN EC PARAMETERS-----\n'),
  );
  const property = fc.property(fc.array(scrap, { maxLength: 8 }), (scraps) => {
    let blocks: ReturnType<typeof readPemBlocks>;
    try {
      blocks = readPemBlocks(scraps.join(''));
    } catch (error) {
      assert(error instanceof Problem);
      return;
    }
    const strict = blocks.map(({ label, der: bytes }) => encodePem(label, bytes)).join('');
    assert.deepEqual(readPemBlocks(strict), blocks);
  });
  fc.assert(property, fuzzRuns(1000));
});
