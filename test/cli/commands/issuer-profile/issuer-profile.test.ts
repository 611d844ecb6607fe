/** `vault issuer profile …` and `certificate create --profile` for private CAs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine, commandWords } from '../../../harness/processes/command-line.ts';

const add = commandWords(
  'issuer profile add local-ca web --usage server --key-type ec384 --key-type ec256 --lifetime 7d --max-lifetime 30d --subject O=Example --name-type dns --permit-domain internal.example',
);
const create = (name: string, more: string) =>
  commandWords(`certificate create --name ${name} --domain ${name}.internal.example ${more}`);

test('a profile is added, shown, changed, removed, and certificates are created with it', async (t) => {
  const { done, refused, json } = commandLine(t);
  await done(...commandWords('certificate create --name plain --domain plain.internal.example'));
  const { stdout, stderr } = await done(...add);
  assert.equal(stdout, '');
  assert.equal(
    stderr,
    'Added profile web to issuer local-ca.\n' +
      '  Try: vault certificate create --name NAME --domain DOMAIN --issuer local-ca --profile web\n',
  );
  await refused(add, /^vault: Issuer local-ca already has a profile named web\.\n/);
  const listed = (await done('issuer', 'profile', 'list', 'local-ca')).stdout;
  assert.match(listed, /^web +server +ec384 ec256 +7d +30d +dns +internal\.example +O=Example$/m);
  const { stdout: shown } = await done(...commandWords('issuer profile show local-ca web'));
  assert.match(shown, /^Longest lifetime +30d$/m);
  const profile = await json<Record<string, unknown>>('issuer', 'profile', 'show', 'local-ca', 'web');
  assert.deepEqual(profile.key_types, ['ec384', 'ec256']);
  assert.deepEqual(await json('issuer', 'profile', 'list', '--issuer', 'local-ca'), [profile]);

  await done(...create('web', '--profile web'));
  const { usage, key_type, subject } = await json<Record<string, unknown>>('certificate', 'show', 'web');
  assert.deepEqual([usage, key_type, subject], ['server', 'ec384', ['O=Example']]);
  assert.match((await done('certificate', 'show', 'web')).stdout, /^Profile +web$/m);
  await refused(
    create('bad', '--profile web --lifetime 60d'),
    'vault: profile web of issuer local-ca does not permit a lifetime of 60d; it permits up to 30d\n' +
      '  Change the certificate, or the profile with "vault issuer profile update".\n',
  );
  await refused(
    commandWords('certificate update plain --profile web --usage client'),
    /^vault: profile web of issuer local-ca does not permit the usage client; it permits server\n/,
  );

  await done(...commandWords('issuer profile update local-ca --name web --usage none --key-type ed25519'));
  const changed = await json<Record<string, unknown>>('issuer', 'profile', 'show', 'local-ca', 'web');
  assert.deepEqual([changed.usage, changed.key_types], [null, ['ed25519']]);
  assert.equal(changed.lifetime, '7d');
  await refused(commandWords('issuer profile update local-ca web'), /^vault: nothing to change\n/, 2);
  const remove = commandWords('issuer profile remove --issuer local-ca web');
  await refused(remove, /^vault: Certificates have the profile web of issuer local-ca: web\.\n/);
  await done(...commandWords('certificate update web --profile none'));
  assert.equal((await done(...remove)).stderr, 'Removed profile web of issuer local-ca.\n');
  await refused(remove, /^vault: Issuer local-ca has no profile "web"\.\n {2}It has no profiles\.\n/);
  assert.match((await done('issuer', 'profile', 'list', 'local-ca')).stderr, /^No profiles\.\n {2}Try: /);
});

test('unknown profiles, unknown issuers and invalid options are rejected', async (t) => {
  const { done, refused } = commandLine(t);
  await done(...create('web', ''));
  await refused(
    create('bad', '--profile web'),
    /^vault: issuer local-ca has no profile "web"\n {2}Add it with/,
  );
  await refused(commandWords('issuer profile add nothing web'), /^vault: unknown issuer "nothing"\n/);
  await refused(commandWords('issuer profile add local-ca'), /^vault: --name is missing\n/, 2);
  await refused(
    commandWords('issuer profile show local-ca web more'),
    /^vault: unexpected argument "more"/,
    2,
  );
  await refused(
    commandWords('issuer profile show local-ca web --issuer local-ca'),
    /^vault: --issuer is given 2 times/,
    2,
  );
  await refused(
    commandWords('issuer profile add local-ca web --lifetime 30d --max-lifetime 7d'),
    /^vault: the usual lifetime of a profile is not longer than its longest one\n/,
  );
});
