/** Settings that are wrong are refused by name, with the place they stand in and what to write instead. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { commonOptions, readSettings, serveOptions } from '../../../src/cli/settings/settings.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { tempDir } from '../../harness/temp-dir.ts';

test('an invalid settings file is rejected with the error and a hint', async (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'vault.yaml');
  const known = [...Object.keys(commonOptions), ...Object.keys(serveOptions)]
    .filter((name) => name !== 'config')
    .map((name) => name.replaceAll('-', '_'))
    .join(', ');
  const files: [content: string, message: RegExp, hint: string][] = [
    ['lsten: x\n', /unknown setting "lsten"$/, 'Did you mean "listen"?'],
    ['log-level: info\n', /unknown setting "log-level"$/, 'Did you mean "log_level"?'],
    ['config: other.yaml\n', /unknown setting "config"$/, `Known settings are ${known}.`],
    ['constructor: x\n', /unknown setting "constructor"$/, `Known settings are ${known}.`],
    ['listen: [\n', /invalid YAML: [a-z]/, 'Fix the file, or move it away.'],
    ['listen: a\nlisten: b\n', /invalid YAML: [a-z]/, 'Fix the file, or move it away.'],
    [
      '- listen\n',
      /not a list of settings$/,
      'Write one "name: value" on each line, such as "listen: 127.0.0.1:8080".',
    ],
    [
      'just text\n',
      /not a list of settings$/,
      'Write one "name: value" on each line, such as "listen: 127.0.0.1:8080".',
    ],
    ['listen:\n  host: x\n', /"listen" needs a plain value$/, 'Use text, a number, true or false.'],
    ['listen:\n', /"listen" needs a plain value$/, 'Use text, a number, true or false.'],
  ];
  for (const [content, message, hint] of files) {
    writeFileSync(path, content);
    await assertRefused({ 'data-dir': dir }, {}, message, hint);
  }
  writeFileSync(path, '# nothing but a comment\n');
  assert.equal((await readSettings({ 'data-dir': dir }, {})).logLevel, 'info');
});

test('a settings file in --config or VAULT_CONFIG must be readable', async (t) => {
  const dir = tempDir(t);
  mkdirSync(join(dir, 'directory'));
  const hint = 'Use --config to name a file that this user can read.';
  await assertRefused(
    { config: join(dir, 'absent.yaml') },
    {},
    /absent\.yaml: no such file or directory$/,
    hint,
  );
  await assertRefused({}, { VAULT_CONFIG: join(dir, 'directory') }, /directory: is a directory$/, hint);
});

test('an invalid value is rejected with the flag, variable or file that contains it', async (t) => {
  const dir = tempDir(t);
  writeFileSync(join(dir, 'vault.yaml'), 'log_level: loud\n');
  const addressHint = 'Use HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080.';
  for (const address of [
    '8080',
    'localhost',
    '127.0.0.1:65536',
    '::1:80',
    '[127.0.0.1]:80',
    'http://a:1',
    'a b:1',
  ]) {
    await assertRefused(
      { listen: address },
      {},
      `--listen: "${address}" is not an address to listen on`,
      addressHint,
    );
  }
  const urlHint = 'Use a URL such as https://vault.example.com.';
  for (const url of [
    'vault.test',
    'ftp://vault.test',
    'https://vault.test/path',
    'https://a@vault.test',
    'https://a/?b',
  ]) {
    const message = `VAULT_PUBLIC_URL: "${url}" is not an http or https URL without a path`;
    await assertRefused({}, { VAULT_PUBLIC_URL: url }, message, urlHint);
  }
  for (const name of ['acme-http-listen', 'acme-tls-listen'] as const) {
    const message = `--${name}: "80" is not an address to listen on`;
    await assertRefused({ [name]: '80' }, {}, message, addressHint);
  }
  const resolverHint =
    'Use an IP address, with a port if it is not 53, such as 192.0.2.53 or [2001:db8::53]:5353.';
  for (const resolver of [
    'ns1.example.com',
    '192.0.2.53:65536',
    '192.0.2.256',
    '[192.0.2.53]:53',
    '::1:53:x',
  ]) {
    const message = `VAULT_RESOLVER: "${resolver}" is not the address of a DNS server`;
    await assertRefused({}, { VAULT_RESOLVER: resolver }, message, resolverHint);
  }
  const draftsMessage = 'VAULT_ACME_DRAFTS: "maybe" is neither true nor false';
  await assertRefused({}, { VAULT_ACME_DRAFTS: 'maybe' }, draftsMessage, 'Use true or false.');
  const truthMessage = 'VAULT_INSECURE_HTTP: "maybe" is neither true nor false';
  await assertRefused({}, { VAULT_INSECURE_HTTP: 'maybe' }, truthMessage, 'Use true or false.');
  const levelHint = 'Use one of debug, info, warn, error, silent.';
  await assertRefused({ 'log-level': 'INFO' }, {}, '--log-level: "INFO" is not a log level', levelHint);
  const fileMessage = `log_level in ${join(dir, 'vault.yaml')}: "loud" is not a log level`;
  await assertRefused({ 'data-dir': dir }, {}, fileMessage, levelHint);
});

async function assertRefused(
  flags: Parameters<typeof readSettings>[0],
  environment: Record<string, string>,
  message: string | RegExp,
  hint: string,
): Promise<void> {
  const state = { STATE_DIRECTORY: '/nowhere', ...environment };
  await assert.rejects(readSettings(flags, state), (error: unknown) => {
    assert.ok(error instanceof OperatorError, String(error));
    if (typeof message === 'string') assert.equal(error.message, message);
    else assert.match(error.message, message);
    assert.equal(error.hint, hint);
    return true;
  });
}

test('any settings file is accepted, or rejected with an OperatorError, within 10 s', async (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'vault.yaml');
  const settings = [...Object.keys(commonOptions), ...Object.keys(serveOptions)].map((name) =>
    name.replaceAll('-', '_'),
  );
  const name = fc.constantFrom(...settings, '__proto__', 'constructor', 'toString', '<<', '*a', '? a');
  const value = fc.oneof(
    fc.constantFrom(
      '',
      'true',
      'null',
      '~',
      '1',
      '0x10',
      '1e999',
      '.nan',
      '.inf',
      '[]',
      '{}',
      '&a x',
      '*a',
      '!!binary AAAA',
      '!!js/function x',
      '!x y',
    ),
    fc.constantFrom(
      '127.0.0.1:8080',
      '|\n  x',
      '>-\n  y',
      '"\\ud800"',
      "'",
      '"',
      '2026-11-21',
      '12:30',
      'https://vault.test',
      '15m',
      '\0',
      '\t- x',
    ),
    fc.string({ unit: 'binary', maxLength: 12 }),
  );
  const line = fc.tuple(name, value).map(([key, content]) => `${key}: ${content}\n`);
  const bomb = `a: &a [x,x,x,x]\n${['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'].map((key, at) => `${key}: &${key} [${`*${'abcdefghij'[at]},`.repeat(9)}x]\n`).join('')}`;
  const file = fc.oneof(
    fc.array(line, { maxLength: 4 }).map((lines) => lines.join('')),
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      bomb,
      '['.repeat(10_000),
      '--- a\n--- b\n',
      '%YAML 9.9\n---\nlisten: x\n',
      '\uFEFFlog_level: info\n',
    ),
  );
  const property = fc.asyncProperty(file, async (content) => {
    writeFileSync(path, content);
    try {
      await readSettings({ 'data-dir': dir }, {});
    } catch (error) {
      assert(error instanceof OperatorError, String(error));
    }
  });
  await fc.assert(property, { ...fuzzRuns(300), timeout: 10_000 });
});
