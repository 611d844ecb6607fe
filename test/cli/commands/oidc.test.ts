/** `vault oidc test` with a running server and a provider: what a person would be, and why a sign-in would fail. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { outside } from '../../harness/database/outside-database.ts';
import { loopbackSetting } from '../../harness/loopback-guard.ts';
import { writeOidcSettings } from '../../harness/oidc/oidc-settings-file.ts';
import { type ScriptedProvider, scriptedProvider } from '../../harness/oidc/scripted-provider.ts';
import { type CommandLine, commandLine } from '../../harness/processes/command-line.ts';
import { freePort } from '../../harness/processes/port.ts';
import { fromExecutable, type Outcome, serve, vault } from '../../harness/processes/vault-process.ts';

type Site = { readonly line: CommandLine; readonly provider: ScriptedProvider; readonly url: string };

/** A vault with a provider in its settings file, and its server. */
async function site(t: TestContext, more: Readonly<Record<string, unknown>> = {}): Promise<Site> {
  const line = commandLine(t);
  await createAdmin(line, 'local');
  const provider = await scriptedProvider(t, Date.now);
  const url = `http://127.0.0.1:${await freePort()}`;
  writeOidcSettings(line, { provider, url, more });
  await serve(t, line.data, { listen: new URL(url).host });
  return { line, provider, url };
}

/** Runs the test, and `visit` with the URL that it shows. */
async function tested(
  t: TestContext,
  { line }: Site,
  visit: (url: string) => Promise<void>,
  ...args: readonly string[]
): Promise<Outcome> {
  const [program] = fromExecutable;
  const child = spawn(program, ['oidc', 'test', '--data-dir', line.data, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, VAULT_ALLOW_OUTBOUND: loopbackSetting },
  });
  t.after(() => child.kill('SIGKILL'));
  const out = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out.stdout += text;
  });
  const asked = new Promise<string>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      out.stderr += text;
      const [, url] = /\n\n(http\S+)\n\n/.exec(out.stderr) ?? [];
      if (url !== undefined) resolve(url);
    });
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const url = await Promise.race([asked, ended.then(() => undefined)]);
  if (url !== undefined) await visit(url);
  const [code] = await ended;
  return { code, ...out };
}

/** The browser of the person follows the provider's redirect to the vault, which never signs it in. */
async function comeBack(back: URL): Promise<void> {
  const response = await fetch(back, { redirect: 'manual' });
  assert.equal(response.status, 303, await response.clone().text());
  assert.match(response.headers.get('Location') ?? '', /\/sign-in\?refused=tested$/);
  assert.deepEqual(
    response.headers.getSetCookie().filter((cookie) => /session=[^;]/.test(cookie)),
    [],
  );
}

test('vault oidc test shows claims, role and account of a person, whom it does not sign in', async (t) => {
  const opened = await site(t);
  const { provider, line } = opened;
  provider.claims = { groups: ['staff', 'vault-admins'], picture: 'clear \u001b[2J the screen' };
  const visit = async (url: string) => {
    const back = provider.authorize(url);
    await comeBack(back);
    // Repeated, as by a reload, it changes nothing.
    await comeBack(back);
  };
  const { code, stdout, stderr } = await tested(t, opened, visit);
  assert.equal(code, 0, stderr);
  assert.match(
    stdout,
    /^claims\n(?: {2}\S+ +.*\n)+role {5}admin \(groups: \["staff","vault-admins"\]\)\naccount {2}alice \(new\)\n$/,
  );
  assert.match(stdout, /^ {2}sub +subject-1$/m);
  assert.match(stdout, /^ {2}picture +clear {2}\[2J the screen$/m);
  const people = await line.json<{ name: string }[]>('admin', 'list');
  assert.deepEqual(
    people.map(({ name }) => name),
    ['local'],
  );
  outside(line.data, (db) => {
    assert.equal(db.prepare('select count(*) from sessions').pluck().get(), 0);
    assert.deepEqual(db.prepare('select distinct result from oidc_uses').pluck().all(), [null]);
  });
});

test('vault oidc test fails if the person would be refused, and says what to change', async (t) => {
  const opened = await site(t);
  const { provider, line } = opened;
  const visit = (url: string) => comeBack(provider.authorize(url));
  provider.claims = { groups: ['staff'] };
  const refused = await tested(t, opened, visit, '--json');
  assert.equal(refused.code, 1);
  const { claims, ...rest } = JSON.parse(refused.stdout) as { claims: { groups: string[] } };
  assert.deepEqual(
    [claims.groups, rest],
    [['staff'], { role: null, reach: [], profiles: [], name: 'alice', account: 'new' }],
  );
  assert.match(
    refused.stderr,
    /vault: this person would be refused: no role\n {2}List one of the values of groups /,
  );
  await createAdmin(line, 'Alice');
  provider.claims = {};
  const taken = await tested(t, opened, visit);
  assert.equal(taken.code, 1);
  assert.match(taken.stdout, /account {2}alice \(name taken\)\n$/);
  assert.match(taken.stderr, /refused: another administrator has the name\n/);
});

test('vault oidc test shows reach and profiles of a person, and fails without any of them', async (t) => {
  const opened = await site(t, {
    ...{ oidc_operators: 'web, db, ops', oidc_reach: 'web:team=web, db:team=db, ops:*' },
    oidc_profiles: 'web:local-ca/web, web:local-ca/people, ops:*',
  });
  const { provider } = opened;
  const shown = async (groups: readonly string[], ...args: readonly string[]) => {
    provider.claims = { groups };
    return tested(t, opened, (url) => comeBack(provider.authorize(url)), ...args);
  };
  const web = await shown(['web']);
  assert.equal(web.code, 0, web.stderr);
  assert.match(
    web.stdout,
    /\nrole {5}operator \(groups: \["web"\]\)\nreach {4}team=web\nprofiles local-ca\/people, local-ca\/web\naccount {2}alice \(new\)\n$/,
  );
  const ops = await shown(['ops', 'web']);
  assert.equal(ops.code, 0, ops.stderr);
  assert.match(ops.stdout, /\nrole {5}operator .*\naccount {2}alice \(new\)\n$/);
  const json = await shown(['web'], '--json');
  assert.deepEqual(JSON.parse(json.stdout).profiles, ['local-ca/people', 'local-ca/web']);
  const refused = await shown(['db']);
  assert.equal(refused.code, 1);
  assert.match(refused.stdout, /\nreach {4}team=db\nprofiles none\naccount /);
  assert.match(
    refused.stderr,
    /\nvault: this person would be refused: no profiles\n {2}List one of the values of groups in oidc_profiles, with a profile or \* for any\.\n$/,
  );
});

test('a sign-in that fails, and a server with other settings, are reported with the reason', async (t) => {
  const opened = await site(t);
  const { provider, line } = opened;
  const declined = await tested(t, opened, (url) => {
    const back = provider.authorize(url);
    back.searchParams.delete('code');
    back.searchParams.set('error', 'access_denied');
    return comeBack(back);
  });
  assert.equal(declined.code, 1);
  assert.match(
    declined.stderr,
    /\nvault: the sign-in failed: declined by the provider \(error: access_denied\)\n$/,
  );
  writeOidcSettings(line, { provider, url: 'http://127.0.0.1:1', client: 'other' });
  const other = await tested(t, opened, async (url) => {
    const { search } = provider.authorize(url);
    await comeBack(new URL(`/oidc/callback${search}`, opened.url));
  });
  assert.match(
    other.stderr,
    /\nvault: the sign-in failed: the server runs with other settings; restart it\n$/,
  );
  provider.isDown = true;
  const down = await tested(t, opened, () => assert.fail('it began without the provider'));
  assert.equal(down.code, 1);
  assert.match(down.stderr, /^vault: http:\/\/127\.0\.0\.1:\d+: .+\n {2}Check oidc_issuer/);
  writeFileSync(join(line.data, 'vault.yaml'), '');
  await line.refused(['oidc', 'test'], /^vault: no OpenID Connect provider is set\n {2}Set oidc_issuer /);
});

async function createAdmin({ data }: CommandLine, name: string): Promise<void> {
  const args = ['admin', 'create', '--name', name, '--password-stdin', '--data-dir', data];
  const { code, stderr } = await vault(args, { input: 'correct horse battery staple' });
  assert.equal(code, 0, stderr);
}
