/**
 * Secrets are never arguments, which every user of the machine can read: looked for among the options of all commands.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allCommands } from '../../harness/command-tree.ts';
import { vault } from '../../harness/processes/vault-process.ts';

/** Words by which an option could be one that takes a secret. */
const secretWords = /key|secret|token|password|passphrase|hmac|credential|pem|pin\b/;

/** Options that are called so and take none. */
const harmless: Readonly<Record<string, string>> = {
  'key-type': 'an algorithm',
  'keystore-encryption': 'an algorithm',
  'api-key-rate': 'a number',
  'key-compromised': 'the name of a certificate',
  'key-dir': 'a directory',
  'key-expires-at': 'a time',
  'master-key-command': 'a program that prints one',
};

test('every option that is about a secret takes a file, standard input or nothing', async () => {
  const seen = new Set<string>();
  for (const { words, options } of await allCommands()) {
    for (const [name, option] of Object.entries(options)) {
      if (!secretWords.test(name)) continue;
      seen.add(name);
      const hint = 'valueHint' in option ? option.valueHint : undefined;
      const isSafe = hint === 'FILE' || option.type === 'boolean' || name in harmless;
      assert(isSafe, `vault ${words.join(' ')} --${name}`);
    }
  }
  for (const name of ['private-key', 'password-file', 'password-stdin', 'eab-hmac-key-file', 'secret-file']) {
    assert(seen.has(name), name);
  }
});

test('a secret in an argument is rejected without being printed', async () => {
  const secret = 'correct-horse-battery-staple';
  for (const words of [
    ['admin', 'create', '--name=alice', `--password=${secret}`],
    ['issuer', 'add', '--name=x', '--directory=https://ca.test/', `--eab-hmac-key=${secret}`],
    ['dns-provider', 'add', '--name=x', '--type=cloudflare', '--zone=a.test', `--secret=${secret}`],
    ['admin', 'reset-password', '--name=alice', '--password-stdin', `--token=${secret}`],
  ]) {
    const { code, stdout, stderr } = await vault(words);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /^vault: unknown option --/);
    assert(!`${stdout}${stderr}`.includes(secret), stderr);
  }
});
