/** The user of the service, as docs/production.md installs it: every command finds the vault without --data-dir. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machine, needsNamespaces } from '../../docs/documented-machine.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const asRoot = process.getuid?.() === 0 ? {} : { skip: 'this user is not root' };

/** One command for each way in which commands come to their vault. */
const commands = [
  'certificate list',
  'certificate show web',
  'api-key list',
  'issuer list',
  'audit verify',
  'master-key status',
  'completion --names certificates',
  'export',
  'backup /var/backups/first.backup',
  'restore /var/backups/first.backup --check',
];

test('commands of the user vault use /var/lib/vault by default, before and after the vault exists', {
  ...asRoot,
  ...needs('ip'),
  ...needsNamespaces(),
}, async (t) => {
  const box = await machine(t);
  const run = async (text: string) => {
    const { lines, code } = await box.run(text);
    assert.equal(code, 0, `${text}\n${lines.join('\n')}`);
    return lines.join('\n');
  };
  await run('install -m 755 vault /usr/local/bin/vault');
  await run('useradd --system --user-group --home-dir /var/lib/vault --shell /usr/sbin/nologin vault');
  await run('install -d -o vault -g vault -m 700 /var/lib/vault');
  await run('chown vault /var/backups');
  const none = await box.run('sudo -u vault vault certificate list');
  assert.equal(none.lines[0], 'vault: no vault in /var/lib/vault');
  await run('sudo -u vault vault certificate create --name web --domain web.test');
  for (const command of commands) await run(`sudo -u vault vault ${command}`);
  assert.match(await run('sudo -u vault vault certificate list'), /^web /m);
  assert.doesNotMatch(await run('ls -A /var/lib/vault'), /local/);
});

test('commands of the user vault use an existing vault in ~/.local/share/vault by default', {
  ...asRoot,
  ...needs('ip'),
  ...needsNamespaces(),
}, async (t) => {
  const box = await machine(t);
  const run = async (text: string) => {
    const { lines, code } = await box.run(text);
    assert.equal(code, 0, `${text}\n${lines.join('\n')}`);
    return lines.join('\n');
  };
  await run('install -m 755 vault /usr/local/bin/vault');
  await run('useradd --system --user-group --home-dir /var/lib/vault --shell /usr/sbin/nologin vault');
  await run('install -d -o vault -g vault -m 700 /var/lib/vault');
  const elsewhere = '--data-dir /var/lib/vault/.local/share/vault';
  await run(`sudo -u vault vault certificate create --name web --domain web.test ${elsewhere}`);
  assert.match(await run('sudo -u vault vault certificate list'), /^web /m);
});
