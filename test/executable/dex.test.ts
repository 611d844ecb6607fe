/** Sign-in with Dex, an OpenID Connect provider of others: in a browser and on the command line, and a wrong issuer. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { visit } from '../harness/console/visit.ts';
import { dexPerson, needsDex, signInAtDex, startDex } from '../harness/oidc/dex.ts';
import { writeOidcSettings } from '../harness/oidc/oidc-settings-file.ts';
import { type CommandLine, commandLine, commandWords } from '../harness/processes/command-line.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { freePort } from '../harness/processes/port.ts';
import { fromExecutable, serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const browser = { ...needs('chromium'), ...needsDex() };

/** People with the group are operators of one profile. */
const settings = {
  oidc_scope: 'openid profile email groups',
  ...{ oidc_admins: [], oidc_operators: ['authors'], oidc_profiles: ['authors:local-ca/web'] },
  oidc_device_flow: true,
};

type Finding = { readonly check: string; readonly status: string; readonly message: string };

type Site = { readonly line: CommandLine; readonly url: string; readonly issuer: string };

/** A vault whose settings have Dex; its server has not started. */
async function site(t: TestContext, path?: string): Promise<Site> {
  const line = commandLine(t);
  await line.done(...commandWords('api-key create --name first --role viewer'));
  await line.done(...commandWords('issuer profile add local-ca web'));
  const url = `http://127.0.0.1:${await freePort()}`;
  const { issuer } = await startDex(t, url, path);
  writeOidcSettings(line, { provider: { issuer }, url, more: settings });
  return { line, url, issuer };
}

async function opened(t: TestContext, { line, url, issuer }: Site) {
  const visited = await visit(t, {
    dataDir: line.data,
    start: () => serve(t, line.data, { listen: new URL(url).host }),
  });
  visited.excuse(new RegExp(`requested ${issuer}/`));
  return visited;
}

test('a person of Dex signs in in a browser with the rights of the group', browser, async (t) => {
  const dex = await site(t);
  const { visitor } = await opened(t, dex);
  for (const time of ['first', 'second']) {
    const { page, open, ask, settled } = await visitor();
    await open('/certificates');
    await page.getByRole('button', { name: `Sign in with ${new URL(dex.issuer).host}` }).click();
    await signInAtDex(page, 'withGroup');
    await page.getByRole('button', { name: `${dexPerson}: sessions, password, sign out` }).waitFor();
    await settled();
    const { name, role, profiles } = (await ask('GET', '/session')) as Record<string, unknown>;
    assert.deepEqual([name, role, profiles], [dexPerson, 'operator', ['local-ca/web']], time);
    await ask('POST', '/certificates', { name: time, domains: ['www.example.test'], profile: 'web' });
  }
  const people = await dex.line.json<{ name: string; sign_in: string }[]>('admin', 'list');
  assert.deepEqual(
    people.map(({ name, sign_in }) => [name, sign_in]),
    [[dexPerson, 'oidc']],
  );
});

test('a person of Dex without a group is refused in a browser', browser, async (t) => {
  const dex = await site(t);
  const { visitor } = await opened(t, dex);
  const { page, open } = await visitor();
  await open('/certificates');
  await page.getByRole('button', { name: `Sign in with ${new URL(dex.issuer).host}` }).click();
  await signInAtDex(page, 'withPassword');
  await page.getByText('No access to this vault').waitFor();
  const events = await dex.line.json<{ action: string; detail: unknown }[]>('audit', 'list');
  const refusals = events.filter(({ action }) => action === 'session.refuse');
  assert.match(JSON.stringify(refusals), /"no role for this person".*"claim":"groups","values":"\[\]"/);
  assert.deepEqual(await dex.line.json('admin', 'list'), []);
});

test('a person of Dex signs in on the command line by the device flow', browser, async (t) => {
  // With a path in its issuer, this version of Dex sends the browser to a page that it does not have.
  const dex = await site(t, '');
  const { visitor } = await opened(t, dex);
  const config = tempDir(t);
  const environment = { XDG_CONFIG_HOME: config, HOME: config };
  const { page } = await visitor();
  const login = spawn(fromExecutable[0], ['login', dex.url, '--oidc'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...environment },
  });
  t.after(() => login.kill('SIGKILL'));
  const ended = once(login, 'close');
  let said = '';
  const asked = new Promise<readonly [page: string, code: string]>((resolve) => {
    login.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      const [, at, code] =
        /\n\n {2}(http\S+)\n\nCheck that the page shows the code (\S+)\. /.exec(said) ?? [];
      if (at !== undefined && code !== undefined) resolve([at, code]);
    });
  });
  const shown = await Promise.race([asked, ended]);
  assert.equal(typeof shown[0], 'string', said);
  const [at, code] = shown as readonly [string, string];
  assert(at.startsWith(`${dex.issuer}/`), at);
  await page.goto(at);
  assert.equal(await page.locator('#user_code').inputValue(), code);
  await page.getByRole('button', { name: 'Submit' }).click();
  await signInAtDex(page, 'withGroup');
  await page.getByText('Login Successful for Certificate Vault').waitFor();
  assert.deepEqual(await ended, [0, null], said);
  assert.match(said, new RegExp(`^Signed in to ${dex.url} as ${dexPerson}, with the role operator, `, 'm'));
  const create = (name: string, ...more: readonly string[]) =>
    vault(
      ['--server', dex.url, 'certificate', 'create', '--name', name, '--domain=www.example.test', ...more],
      { environment },
    );
  const made = await create('web', '--profile=web');
  assert.equal(made.code, 0, made.stderr);
  const refused = await create('other');
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /You may have certificates issued only with one of these profiles: local-ca\/web\./,
  );
});

test(
  'an issuer that is not exactly the one of Dex is reported with the one that Dex has',
  needsDex(),
  async (t) => {
    for (const [path, configured] of [
      ['/dex', (issuer: string) => `${issuer}/`],
      ['', (issuer: string) => `${issuer}/`],
      ['/dex', (issuer: string) => issuer.replace('127.0.0.1', 'localhost')],
    ] as const) {
      const { line, url, issuer } = await site(t, path);
      const report = async () => {
        const { stdout } = await line.run('doctor', '--json');
        const { findings } = JSON.parse(stdout) as { findings: Finding[] };
        return findings.find(({ check }) => check === 'oidc') ?? assert.fail(stdout);
      };
      assert.equal((await report()).status, 'ok');
      const wrong = configured(issuer);
      writeOidcSettings(line, { provider: { issuer: wrong }, url, more: settings });
      const { status, message } = await report();
      assert.deepEqual(
        [status, message],
        ['failed', `${wrong}: the metadata of the provider has another issuer: ${issuer}`],
      );
    }
  },
);
