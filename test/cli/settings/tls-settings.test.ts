/** The settings of HTTPS: what belongs together, and what excludes each other. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { tlsSettings } from '../../../src/cli/settings/tls-settings.ts';

type Values = Readonly<Record<string, string>>;

function read(values: Values) {
  return tlsSettings((name) => {
    const value = values[name];
    return value === undefined ? undefined : { value, from: `--${name}` };
  });
}

suite('settings of HTTPS', () => {
  test('accept nothing, a certificate of the vault, or a certificate file with a key file', () => {
    assert.equal(read({}), undefined);
    assert.deepEqual(read({ 'tls-certificate': 'vault' }), { kind: 'certificate', name: 'vault' });
    assert.deepEqual(read({ 'tls-cert-file': '/etc/a.crt', 'tls-key-file': '/etc/a.key' }), {
      kind: 'files',
      certFile: '/etc/a.crt',
      keyFile: '/etc/a.key',
    });
  });

  const refused: [values: Values, message: RegExp][] = [
    [
      { 'tls-certificate': 'vault', 'tls-cert-file': 'a', 'tls-key-file': 'b' },
      /^--tls-certificate and --tls-cert-file exclude each other$/,
    ],
    [{ 'tls-certificate': 'vault', 'tls-key-file': 'b' }, /^--tls-certificate and --tls-key-file exclude/],
    [{ 'tls-cert-file': 'a' }, /^--tls-cert-file needs --tls-key-file$/],
    [{ 'tls-key-file': 'a' }, /^--tls-key-file needs --tls-cert-file$/],
    [{ 'tls-certificate': '../x' }, /^--tls-certificate: "\.\.\/x" is not a certificate name$/],
  ];
  for (const [values, message] of refused) {
    test(`reject ${Object.keys(values).join(' with ')} = ${Object.values(values)[0]}`, () => {
      assert.throws(
        () => read(values),
        (error) => {
          assert(error instanceof OperatorError);
          assert.match(error.message, message);
          assert(error.hint !== undefined);
          return true;
        },
      );
    });
  }
});
