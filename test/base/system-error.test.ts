/** Errors of the operating system are described in plain words. */
import assert from 'node:assert/strict';
import { linkSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { describeFileError, describeSystemError, isNoSpaceError } from '../../src/base/system-error.ts';

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return assert.fail('nothing was thrown');
}

test('errors of Node are described without their code, system call and path', () => {
  assert.equal(
    describeSystemError(thrownBy(() => readFileSync('/no/such/file'))),
    'no such file or directory',
  );
  assert.equal(describeSystemError(thrownBy(() => readFileSync('/'))), 'is a directory');
  assert.equal(describeSystemError(thrownBy(() => readdirSync('/dev/null'))), 'not a directory');
});

test('an exceeded disk quota is described although Node has no text for it', () => {
  for (const code of ['EDQUOT', 'Unknown system error -122', 'Unknown system error -69']) {
    assert.equal(describeSystemError(Object.assign(new Error(code), { code })), 'disk quota exceeded');
  }
});

test('describeFileError puts the path before the description', () => {
  assert.equal(
    describeFileError(thrownBy(() => readFileSync('/no/such/file'))),
    '/no/such/file: no such file or directory',
  );
  assert.equal(
    describeFileError(thrownBy(() => linkSync('/no/such/a', '/no/such/b'))),
    '/no/such/a to /no/such/b: no such file or directory',
  );
  assert.equal(describeFileError(new Error('plain')), 'plain');
  assert.equal(describeFileError(undefined), 'undefined');
});

test('an unknown code keeps the error text, without code, system call and path', () => {
  const shapes = [
    ["ENOTSUP: operation not supported, copyfile '/a' -> '/b'", 'copyfile'],
    ['ENOTSUP: operation not supported, fsync', 'fsync'],
    ['ENOTSUP: operation not supported', undefined],
  ] as const;
  for (const [message, syscall] of shapes) {
    const error = Object.assign(new Error(message), { code: 'ENOTSUP', errno: -95, syscall });
    assert.equal(describeSystemError(error), 'operation not supported', message);
  }
});

test('errors of SQLite and OpenSSL are described without their own texts', () => {
  const cases = [
    ['SQLITE_FULL', 'no space left on device'],
    ['SQLITE_IOERR_WRITE', 'input/output error'],
    ['SQLITE_CANTOPEN_ISDIR', 'cannot open the database file'],
    ['SQLITE_NOTADB', 'file is not a database'],
    ['ERR_OSSL_X509_KEY_VALUES_MISMATCH', 'key values mismatch'],
  ] as const;
  for (const [code, expected] of cases) {
    const error = Object.assign(new Error('error:05800074:x'), { code, reason: 'key values mismatch' });
    assert.equal(describeSystemError(error), expected, code);
  }
});

test('an unknown error keeps its message', () => {
  assert.equal(describeSystemError(Object.assign(new Error('odd'), { code: 'EODD' })), 'odd');
  assert.equal(describeSystemError(new Error('plain')), 'plain');
  assert.equal(describeSystemError('text'), 'text');
});

test('errors of TLS are described without the text of OpenSSL', () => {
  const wrongName = {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    cert: { subjectaltname: 'DNS:a.test, DNS:b.test' },
  };
  assert.equal(
    describeSystemError(Object.assign(new Error('x'), wrongName)),
    'certificate is for a.test, b.test',
  );
  const wrongVersion = { code: 'ERR_SSL_WRONG_VERSION_NUMBER', reason: 'wrong version number' };
  assert.equal(
    describeSystemError(Object.assign(new Error('0020:error:...'), wrongVersion)),
    'TLS error: wrong version number',
  );
  const untrusted = { code: 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY' };
  assert.equal(
    describeSystemError(Object.assign(new Error('unable to get local issuer certificate'), untrusted)),
    'certificate issued by an unknown CA',
  );
});

const coded = (code: unknown) => Object.assign(new Error('any'), { code });

test('isNoSpaceError recognizes the full disk and quota codes of Node and SQLite', () => {
  const full = ['ENOSPC', 'EDQUOT', 'EFBIG', 'SQLITE_FULL', 'Unknown system error -122'];
  assert.deepEqual(
    full.filter((code) => !isNoSpaceError(coded(code))),
    [],
  );
});

test('no other error is taken for a full disk', () => {
  const others = ['EIO', 'SQLITE_IOERR_WRITE', 'Unknown system error -1', 'ENOSPC2', 5, undefined].map(coded);
  assert.deepEqual(
    [...others, undefined, null, 'ENOSPC'].filter((error) => isNoSpaceError(error)),
    [],
  );
});
