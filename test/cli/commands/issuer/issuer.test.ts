/** `vault issuer …`: what is added, shown, changed and removed, and that keys and terms are handled with care. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scriptedAcme } from '../../../harness/ca/scripted-acme.ts';
import { forwardProxy } from '../../../harness/http/forward-proxy.ts';
import {
  addCa,
  commandLine,
  commandLineWithCa,
  commandWords,
} from '../../../harness/processes/command-line.ts';

type Issuer = {
  name: string;
  type: string;
  directory_url: string | null;
  email: string | null;
  profile: string | null;
  preferred_chain: string | null;
  account: string | null;
  paused_until: string | null;
};
type Account = { id: string; issuer: string; current: boolean; email: string | null; directory_url: string };

test('the terms of service are shown, and nothing is added before they are accepted', async (t) => {
  const { run, refused, file, json } = commandLine(t);
  const ca = await scriptedAcme(t, { tls: true, termsOfService: 'https://ca.example/terms' });
  const add = commandWords(
    `issuer add --name ca --directory ${ca.directoryUrl} --ca-file ${file(ca.ca ?? '')}`,
  );
  await refused(
    add,
    'vault: the CA requires you to accept its terms of service: https://ca.example/terms\n  Read the terms, then add --accept-terms.\n',
  );
  assert.deepEqual(
    (await json<Issuer[]>('issuer', 'list')).map(({ name }) => name),
    ['local-ca'],
  );
  assert.deepEqual(await run(...add, '--accept-terms'), {
    code: 0,
    stdout: '',
    stderr:
      'Added issuer ca. The first certificate registers its account.\n' +
      '  Try: vault certificate create --name NAME --domain DOMAIN --issuer ca\n',
  });
  assert.deepEqual(ca.kinds(), ['directory', 'directory'], 'nothing but the directory is asked for');
});

test('issuers are listed as a table for people and as JSON for programs', async (t) => {
  const line = await commandLineWithCa(t, { profiles: { shortlived: 'six days' } });
  const { ca, run, json } = line;
  await addCa(line, ca, 'second', '--email', 'ops@example.test', '--profile', 'shortlived');
  const { stdout, stderr } = await run('issuer', 'list');
  assert.equal(stderr, '');
  const pad = ' '.repeat(Math.max(0, ca.directoryUrl.length - 'DIRECTORY'.length));
  assert.equal(
    stdout,
    `NAME      TYPE      DIRECTORY${pad}  PERMITS   CONTACT           ACCOUNT  PAUSED UNTIL\n` +
      `ca        acme      ${ca.directoryUrl}  -         -                 -        -\n` +
      `local-ca  local-ca  -${' '.repeat(ca.directoryUrl.length - 1)}  any name  -                 -        -\n` +
      `second    acme      ${ca.directoryUrl}  -         ops@example.test  -        -\n`,
  );
  const second = (await json<Issuer[]>('issuer', 'list')).find(({ name }) => name === 'second');
  assert.deepEqual(
    { ...second, created_at: undefined },
    {
      ...{ name: 'second', type: 'acme', directory_url: ca.directoryUrl, email: 'ops@example.test' },
      ...{
        profile: 'shortlived',
        preferred_chain: null,
        account: null,
        paused_until: null,
        private_ca: null,
      },
      created_at: undefined,
    },
  );
});

test('letsencrypt and letsencrypt-staging need no --directory and are contacted through HTTPS_PROXY', async (t) => {
  const proxy = await forwardProxy(t, { refusal: '403 Forbidden' });
  const { refused } = commandLine(t, { environment: { HTTPS_PROXY: proxy.url, https_proxy: undefined } });
  for (const name of ['letsencrypt', 'letsencrypt-staging']) {
    await refused(
      ['issuer', 'add', '--name', name],
      /^vault: cannot connect to acme.*\.letsencrypt\.org: .*\n {2}Check /,
    );
  }
  assert.deepEqual(
    [...new Set(proxy.asked)],
    ['CONNECT acme-v02.api.letsencrypt.org:443', 'CONNECT acme-staging-v02.api.letsencrypt.org:443'],
  );
  await refused(
    ['issuer', 'add', '--name', 'other'],
    'vault: --directory is missing\n  Only the names letsencrypt and letsencrypt-staging have a built-in directory URL.\n',
    2,
  );
});

test('an account is bound with the EAB key ID, and the HMAC key is never printed or stored in plain text', async (t) => {
  const hmac = Buffer.from('a key of thirty-two bytes length');
  const line = commandLine(t);
  const { done, file, run, holds } = line;
  const ca = await scriptedAcme(t, { externalAccounts: { 'kid-1': hmac } });
  const add = commandWords(
    `issuer add --name ca --directory ${ca.directoryUrl} --eab-kid kid-1 --eab-hmac-key-file`,
  );
  const added = await done(...add, file(`${hmac.toString('base64url')}\n`));
  const made = await done(
    ...commandWords('certificate create --name web --domain web.test --issuer ca --wait'),
  );
  assert.deepEqual(
    [...ca.state.accounts.values()].map(({ externalAccount }) => externalAccount),
    ['kid-1'],
  );
  const listed = await run('issuer', 'list', '--json');
  for (const secret of [
    hmac.toString('base64url'),
    hmac.toString('base64'),
    hmac.toString(),
    hmac.toString('hex'),
  ]) {
    for (const { stdout, stderr } of [added, made, listed]) assert.ok(!`${stdout}${stderr}`.includes(secret));
    assert.ok(!holds(secret), 'the database has the key in the clear');
  }
});

test('an EAB key may also come from standard input, in base64', async (t) => {
  const hmac = Buffer.from(Array.from({ length: 32 }, (_, index) => 255 - index));
  const { done } = commandLine(t, { input: `${hmac.toString('base64')}\n` });
  const ca = await scriptedAcme(t, { externalAccounts: { 'kid-1': hmac } });
  const add = `issuer add --name ca --directory ${ca.directoryUrl} --eab-kid kid-1 --eab-hmac-key-file -`;
  await done(...commandWords(add));
  await done(...commandWords('certificate create --name web --domain web.test --issuer ca --wait'));
});

test('changing the directory registers a new account; the old one is no longer current and can be deleted', async (t) => {
  const { done, json, run, ca } = await commandLineWithCa(t);
  const other = await scriptedAcme(t);
  await done(...commandWords('certificate create --name web --domain web.test --issuer ca --wait'));
  const { stderr } = await done(...commandWords(`issuer update --name ca --directory ${other.directoryUrl}`));
  assert.equal(stderr, 'Updated issuer ca.\n');
  await done(...commandWords('certificate renew --name web --wait'));
  const accounts = await json<Account[]>('acme-account', 'list');
  assert.deepEqual(
    accounts.map(({ id, current, directory_url }) => [id, current, directory_url]),
    [
      ['1', false, ca.directoryUrl],
      ['2', true, other.directoryUrl],
    ],
  );
  assert.equal((await run('acme-account', 'delete', '--id', '1', '--yes')).code, 0);
});

test('a new contact is sent to the CA with the next order', async (t) => {
  const { done, json, ca } = await commandLineWithCa(t);
  await done(...commandWords('certificate create --name web --domain web.test --issuer ca --wait'));
  await done(...commandWords('issuer update --name ca --email new@example.test'));
  await done(...commandWords('certificate renew --name web --wait'));
  assert.deepEqual(
    [...ca.state.accounts.values()].map(({ contact }) => contact),
    [['mailto:new@example.test']],
  );
  assert.deepEqual(
    (await json<Account[]>('acme-account', 'list')).map(({ email }) => email),
    ['new@example.test'],
  );
});

test('the value none clears the contact, profile and preferred chain', async (t) => {
  const line = commandLine(t);
  const ca = await scriptedAcme(t, { profiles: { shortlived: 'six days' } });
  await addCa(
    line,
    ca,
    'ca',
    '--email',
    'ops@example.test',
    '--profile',
    'shortlived',
    '--preferred-chain',
    'Root',
  );
  const options = async () => {
    const [issuer] = await line.json<Issuer[]>('issuer', 'list');
    return [issuer?.email, issuer?.profile, issuer?.preferred_chain, issuer?.directory_url];
  };
  assert.deepEqual(await options(), ['ops@example.test', 'shortlived', 'Root', ca.directoryUrl]);
  await line.done(...commandWords('issuer update --name ca --profile none'));
  assert.deepEqual(await options(), ['ops@example.test', null, 'Root', ca.directoryUrl]);
  await line.done(...commandWords('issuer update --name ca --email none --preferred-chain none'));
  assert.deepEqual(await options(), [null, null, null, ca.directoryUrl]);
});

test('--ca-file none removes the CA file unless the CA is not trusted without it', async (t) => {
  const { done, refused, file } = commandLine(t);
  const root = file((await scriptedAcme(t, { tls: true })).ca ?? '');
  const [plain, hidden] = [await scriptedAcme(t), await scriptedAcme(t, { tls: true })];
  const roots = { plain: root, hidden: file(hidden.ca ?? '') };
  for (const [name, ca] of Object.entries({ plain, hidden })) {
    const path = roots[name as keyof typeof roots];
    await done(...commandWords(`issuer add --name ${name} --directory ${ca.directoryUrl} --ca-file ${path}`));
  }
  await done(...commandWords('issuer update --name plain --ca-file none'));
  await refused(commandWords('issuer update --name hidden --ca-file none'), /not trusted/);
  await done(...commandWords('certificate create --name web --domain web.test --issuer hidden --wait'));
});

test('an issuer that certificates use cannot be removed until they use another one', async (t) => {
  const { done, refused, run } = await commandLineWithCa(t);
  await done(...commandWords('certificate create --name web --domain web.test --issuer ca'));
  await done(...commandWords('certificate create --name api --domain api.test --fallback-issuer ca'));
  await refused(
    ['issuer', 'remove', '--name', 'ca'],
    'vault: certificates use the issuer ca: api, web\n' +
      '  Move these certificates with "vault certificate update --issuer", or delete them.\n',
  );
  await done(...commandWords('certificate update --name web --issuer local-ca'));
  await done(...commandWords('certificate update --name api --fallback-issuer none'));
  assert.deepEqual(await run('issuer', 'remove', '--name', 'ca'), {
    code: 0,
    stdout: '',
    stderr: 'Removed issuer ca.\n',
  });
});

test('the built-in private CA can be neither removed, nor changed into an ACME CA, nor added again', async (t) => {
  const { refused, ca } = await commandLineWithCa(t);
  await refused(
    ['issuer', 'remove', '--name', 'local-ca'],
    'vault: the built-in private CA cannot be removed\n',
  );
  await refused(
    commandWords('issuer update --name local-ca --email ops@example.test'),
    'vault: issuer local-ca is not an ACME CA and has no settings to change\n',
  );
  const taken = '  Choose another name, or change it with "vault issuer update".\n';
  for (const name of ['local-ca', 'ca']) {
    await refused(
      commandWords(`issuer add --name ${name} --directory ${ca.directoryUrl}`),
      `vault: an issuer named ${name} already exists\n${taken}`,
    );
  }
});

test('an unknown issuer is rejected with the closest names, or with the command that adds a known CA', async (t) => {
  const { refused } = await commandLineWithCa(t);
  await refused(['issuer', 'remove', '--name', 'cb'], 'vault: unknown issuer "cb"\n  Did you mean "ca"?\n');
  await refused(
    commandWords('issuer update --name something --email ops@example.test'),
    'vault: unknown issuer "something"\n  Use one of: ca, local-ca.\n',
  );
  await refused(
    commandWords('certificate create --name web --domain web.test --issuer letsencrypt'),
    'vault: unknown issuer "letsencrypt"\n  Try: vault issuer add --name letsencrypt\n',
  );
  await refused(
    ['issuer', 'update', '--name', 'ca'],
    'vault: nothing to change\n  Try: vault issuer update --help\n',
    2,
  );
});
