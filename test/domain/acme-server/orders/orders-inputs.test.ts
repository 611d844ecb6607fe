/** What clients write into orders and accounts: names and addresses, dates, contacts. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { day, minute } from '../../../../src/base/duration.ts';
import { readContacts } from '../../../../src/domain/acme-server/accounts/contacts.ts';
import { readIdentifiers } from '../../../../src/domain/acme-server/orders/order-identifiers.ts';
import { readValidity } from '../../../../src/domain/acme-server/orders/order-validity.ts';
import { AcmeProblem } from '../../../../src/domain/acme-server/protocol/acme-problem.ts';

const dns = (value: string) => ({ type: 'dns', value });
const ip = (value: string) => ({ type: 'ip', value });

function problemOf(work: () => unknown): AcmeProblem {
  try {
    work();
  } catch (error) {
    assert(error instanceof AcmeProblem, String(error));
    return error;
  }
  assert.fail('nothing was thrown');
}

suite('order identifiers', () => {
  test('are normalized and deduplicated', () => {
    const read = readIdentifiers([
      ...[dns('WWW.Example.test'), dns('www.example.test'), dns('*.example.test'), dns('www.example.test.')],
      ...[ip('192.0.2.7'), ip('2001:DB8:0::1'), ip('2001:db8::1'), dns('xn--bcher-kva.example')],
    ]);
    assert.deepEqual(read, [
      ...['www.example.test', '*.example.test', '192.0.2.7', '2001:db8::1', 'xn--bcher-kva.example'],
    ]);
  });

  const wrong: Readonly<
    Record<string, readonly [type: string, list: readonly { type: string; value: string }[]]>
  > = {
    'an empty list': ['malformed', []],
    'more than 100 identifiers': [
      'malformed',
      Array.from({ length: 101 }, (_, n) => dns(`n${n}.example.test`)),
    ],
    'an unsupported type': ['unsupportedIdentifier', [{ type: 'email', value: 'a@example.test' }]],
    'a name with non-ASCII letters': ['malformed', [dns('bücher.example')]],
    'a URL': ['malformed', [dns('https://www.example.test')]],
    'a port': ['malformed', [dns('www.example.test:443')]],
    'a wildcard inside a name': ['malformed', [dns('www.*.example.test')]],
    'a wildcard without a domain': ['malformed', [dns('*.')]],
    'two wildcards': ['malformed', [dns('*.*.example.test')]],
    'an underscore': ['malformed', [dns('_acme.example.test')]],
    'an empty name': ['malformed', [dns('')]],
    'an address as a name': ['malformed', [dns('192.0.2.7')]],
    'a name as an address': ['malformed', [ip('www.example.test')]],
    'an address with a zone': ['malformed', [ip('fe80::1%eth0')]],
    'an address in brackets': ['malformed', [ip('[2001:db8::1]')]],
    'an address in octal notation': ['malformed', [ip('0300.0.2.7')]],
    'a network': ['malformed', [ip('192.0.2.0/24')]],
    'a line feed': ['malformed', [dns('www.example.test\n')]],
  };
  for (const [what, [type, list]] of Object.entries(wrong)) {
    test(`are rejected with ${type} for ${what}`, () => {
      assert.equal(problemOf(() => readIdentifiers(list)).type, type);
    });
  }

  test('are rejected with a subproblem for each invalid identifier', () => {
    const problem = problemOf(() =>
      readIdentifiers([dns('fine.example.test'), dns('a b'), { type: 'x', value: 'y' }]),
    );
    assert.equal(problem.type, 'malformed');
    assert.deepEqual(
      problem.subproblems.map(({ type, identifier }) => [type, identifier]),
      [
        ['malformed', 'a b'],
        ['unsupportedIdentifier', 'y'],
      ],
    );
  });
});

suite('order dates', () => {
  const now = Date.parse('2027-01-01T00:00:00.500Z');
  const at = (ms: number) => new Date(now + ms).toISOString();

  test('are truncated to whole seconds and accepted within the limits of the issuer', () => {
    assert.deepEqual(readValidity({}, day, now), { notBefore: undefined, notAfter: undefined });
    assert.deepEqual(readValidity({ notAfter: '2027-01-01T23:00:00.9Z' }, day, now), {
      notBefore: undefined,
      notAfter: Date.parse('2027-01-01T23:00:00Z'),
    });
    const both = readValidity({ notBefore: at(day), notAfter: at(2 * day) }, day, now);
    assert.equal(both.notBefore, Date.parse('2027-01-02T00:00:00Z'));
    assert.equal(readValidity({ notBefore: at(-4 * minute) }, day, now).notAfter, undefined);
  });

  const wrong = {
    'an invalid timestamp': { notAfter: 'tomorrow' },
    'a timestamp without an offset': { notAfter: '2027-01-01T23:00:00' },
    'an end in the past': { notAfter: at(-minute) },
    'an end that is too late': { notAfter: at(day + minute) },
    'a start that is too early': { notBefore: at(-6 * minute) },
    'a start that is too late': { notBefore: at(day + minute) },
    'an end before the start': { notBefore: at(2 * minute), notAfter: at(minute) },
  };
  for (const [what, written] of Object.entries(wrong)) {
    test(`are rejected as malformed for ${what}`, () => {
      assert.equal(problemOf(() => readValidity(written, day, now)).type, 'malformed');
    });
  }
});

suite('account contacts', () => {
  test('are deduplicated email addresses', () => {
    assert.deepEqual(
      readContacts(['mailto:ops@example.test', 'MAILTO:ops@example.test', 'mailto:a%2Bb@example.test']),
      [...['mailto:ops@example.test', 'mailto:a+b@example.test']],
    );
  });

  const wrong: Readonly<Record<string, readonly string[]>> = {
    unsupportedContact: ['tel:+123', 'ops@example.test', 'https://example.test', ''],
    invalidContact: [
      ...['mailto:', 'mailto:ops', 'mailto:a@example.test,b@example.test', 'mailto:a@example.test?subject=x'],
      ...['mailto:%', 'mailto:a@b@example.test', 'mailto:a b@example.test'],
    ],
  };
  for (const [type, contacts] of Object.entries(wrong)) {
    test(`are rejected with ${type}`, () => {
      for (const contact of contacts)
        assert.equal(problemOf(() => readContacts([contact])).type, type, contact);
    });
  }

  test('are rejected when there are more than ten', () => {
    const many = Array.from({ length: 11 }, (_, n) => `mailto:ops${n}@example.test`);
    assert.equal(problemOf(() => readContacts(many)).type, 'invalidContact');
  });
});
