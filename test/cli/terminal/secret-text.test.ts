/** Passphrases and passwords in files are read without the byte order mark and line break that an editor adds. */
import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { secretReadings, secretText } from '../../../src/cli/terminal/secret-text.ts';
import { commandLine } from '../../harness/processes/command-line.ts';
import { vault } from '../../harness/processes/vault-process.ts';

const phrase = 'several wörds in a row';
const mark = '\uFEFF';

const files: Readonly<Record<string, Buffer>> = {
  'UTF-8': Buffer.from(phrase),
  'with a line break': Buffer.from(`${phrase}\n`),
  'with a byte order mark': Buffer.from(`${mark}${phrase}\r\n`),
  'UTF-16 as PowerShell writes it': Buffer.from(`${mark}${phrase}\r\n`, 'utf16le'),
  'UTF-16 in big-endian order': Buffer.from(`${mark}${phrase}\n`, 'utf16le').swap16(),
};

for (const [name, content] of Object.entries(files)) {
  test(`a passphrase file is read as the passphrase alone: ${name}`, () => {
    assert.equal(secretText(content).expose(), phrase);
    assert.equal(secretReadings(content)?.[0].expose(), phrase);
  });
}

test('a file without a byte order mark has one reading', () => {
  assert.equal(secretReadings(Buffer.from(`${phrase}\n`))?.length, 1);
});

test('a passphrase file with a byte order mark opens what the typed passphrase sealed', async (t) => {
  const { data, file, done } = commandLine(t);
  const backup = join(dirname(data), 'x.backup');
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  await done('backup', backup, '--with-master-key', '--passphrase-file', file(phrase));
  const marked = file(`${mark}${phrase}\n`, 'marked');
  const elsewhere = join(dirname(data), 'elsewhere');
  const { code, stderr } = await vault([
    'restore',
    backup,
    '--data-dir',
    elsewhere,
    '--passphrase-file',
    marked,
  ]);
  assert.equal(code, 0, stderr);
});

test('a key file sealed by an earlier version with a byte order mark in the passphrase still opens', async (t) => {
  const { data, file, done } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  // The second mark belongs to the passphrase, as the only one did before.
  await done('master-key', 'seal', '--passphrase-file', file(`${mark}${mark}${phrase}`, 'twice'));
  const once = file(`${mark}${phrase}`, 'once');
  chmodSync(once, 0o600);
  const { code, stderr } = await vault([
    ...['certificate', 'list', '--data-dir', data, '--master-key-passphrase-file', once],
  ]);
  assert.equal(code, 0, stderr);
});
