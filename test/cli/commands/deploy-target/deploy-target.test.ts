/**
 * `vault deploy-target …`: targets are added, changed, run and removed, and no setting or private key is printed or
 * stored in the clear.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { realWorld } from '../../../../src/base/world.ts';
import { hookScript } from '../../../harness/dns/hook-script.ts';
import { isSignedWith, status, webhookReceiver } from '../../../harness/http/webhook-receiver.ts';
import { type CommandLine, commandLine, commandWords } from '../../../harness/processes/command-line.ts';
import { fromExecutable, serve, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

const secret = `whsec_${Buffer.from('a key of thirty-two bytes, or so').toString('base64')}`;

const target = (words: string) => commandWords(`deploy-target ${words}`);

type Shown = { certificate: string; state: string; version: number | null; error: string | null };

const states = (shown: readonly Shown[]) =>
  shown.map(({ certificate, state, version }) => [certificate, state, version]);

async function create({ done }: CommandLine, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await done(...commandWords(`certificate create --name ${name} --domain ${name}.example.test`));
  }
}

/** A command line with these certificates and the settings of a webhook target on loopback, as a file. */
async function withWebhook(t: TestContext, ...names: readonly string[]) {
  const line = commandLine(t);
  await create(line, ...names);
  const receiver = await webhookReceiver(t);
  const settings = line.file(`url: ${receiver.url}\nsecret: ${secret}\n`);
  return { ...line, receiver, settings };
}

/**
 * A command line with these certificates and an exec target `local` for all of them; its program fails for the
 * certificates in `failing`.
 */
async function withProgram(t: TestContext, names: readonly string[], failing: readonly string[]) {
  const line = commandLine(t);
  await create(line, ...names);
  const dir = tempDir(t);
  const body = `const name = process.env.VAULT_CERTIFICATE;
    if (${JSON.stringify(failing)}.includes(name)) { console.error('no space for', name, process.env.TOKEN); process.exit(3); }
    require('node:fs').writeFileSync(__dirname + '/' + name + '.pem', require('node:fs').readFileSync(0));`;
  const settings = JSON.stringify({ command: hookScript(dir, body), environment: { TOKEN: 's3cret-token' } });
  const given = names.flatMap((name) => ['--certificate', name]);
  await line.done(...target('add local --type exec'), ...given, '--secret-file', line.file(settings));
  return { ...line, dir };
}

test('a webhook target is added, installed and removed, and its settings are never shown', async (t) => {
  const { done, json, run, holds, receiver, settings } = await withWebhook(t, 'web', 'api');
  const added = await done(
    ...target(`add --name shop --type webhook --certificate web --certificate api --secret-file ${settings}`),
  );
  assert.deepEqual(added, {
    code: 0,
    stdout: '',
    stderr: 'Added deploy target shop.\n  Try: vault deploy-target run --name shop\n',
  });
  const { host, origin } = new URL(receiver.url);
  const waiting = await done(...target('list'));
  assert.equal(
    waiting.stdout,
    `TARGET  TYPE     ${'HOST'.padEnd(host.length)}  CURRENT  WAITING  FAILING\n` +
      `shop    webhook  ${host}  0        2        0\n`,
  );
  const ran = await done(...target('run shop'));
  assert.equal(
    ran.stdout,
    `CERTIFICATE  ${'DESTINATION'.padEnd(origin.length)}  STATE    VERSION  NEXT  LAST ERROR\n` +
      `api          ${origin}  current  1        -     -\n` +
      `web          ${origin}  current  1        -     -\n`,
  );
  assert.equal(ran.stderr, '');
  assert.equal(receiver.received.length, 2);
  for (const [at, name] of ['api', 'web'].entries()) {
    const got = receiver.received[at];
    assert(got && isSignedWith(secret, got, realWorld.now()));
    const body = got.json as unknown as Record<string, string>;
    assert.equal(body.certificate, name);
    const privateKey = createPrivateKey(body.private_key_pem ?? '');
    assert(new X509Certificate(body.certificate_pem ?? '').checkPrivateKey(privateKey));
  }
  const shown = await done(...target('show shop'));
  assert.equal(shown.stdout, ran.stdout);
  const views = await json<Record<string, unknown>[]>(...target('list'));
  assert.deepEqual(
    views.map(({ created_at: _, changed_at: __, ...view }) => view),
    [{ name: 'shop', type: 'webhook', host, counts: { current: 2, waiting: 0, failing: 0 } }],
  );
  for (const text of [secret, 't0ken']) {
    assert(!holds(text), `the database has ${text} in the clear`);
    for (const { stdout, stderr } of [added, waiting, ran, shown])
      assert(!`${stdout}${stderr}`.includes(text));
    assert(!JSON.stringify(views).includes(text));
  }
  assert.deepEqual(await run(...target('remove shop')), {
    ...{ code: 0, stdout: '', stderr: 'Removed deploy target shop.\n' },
  });
  assert.deepEqual(await run(...target('list')), {
    ...{ code: 0, stdout: '', stderr: 'No deploy targets yet.\n  Try: vault deploy-target add --help\n' },
  });
});

test('a run installs the others if one certificate fails, lists all and exits with 1', async (t) => {
  const { run, json, dir } = await withProgram(t, ['api', 'mail', 'web'], ['mail']);
  const { code, stdout, stderr } = await run(...target('run local'));
  assert.equal(code, 1);
  const failure = `${process.execPath} failed with exit code 3: no space for mail [secret]`;
  assert.equal(stderr, `vault: failed to install 1 certificate on local\n  mail: ${failure}\n`);
  assert.match(stdout, /^CERTIFICATE .*\napi .* current .*\nmail .* failing +- .*\nweb .* current .*\n$/);
  const shown = await json<Shown[]>(...target('show local'));
  assert.deepEqual(states(shown), [
    ['api', 'current', 1],
    ['mail', 'failing', null],
    ['web', 'current', 1],
  ]);
  assert.equal(shown[1]?.error, failure);
  assert.match(readFileSync(join(dir, 'web.pem'), 'utf8'), /^-----BEGIN PRIVATE KEY-----\n/);
  assert(!existsSync(join(dir, 'mail.pem')));
});

test('a run with --certificate installs only that certificate, and --json prints it', async (t) => {
  const { json, refused, dir } = await withProgram(t, ['api', 'web'], []);
  assert.deepEqual(states(await json<Shown[]>(...target('run local --certificate web'))), [
    ['web', 'current', 1],
  ]);
  assert.deepEqual([existsSync(join(dir, 'web.pem')), existsSync(join(dir, 'api.pem'))], [true, false]);
  await refused(
    target('run local --certificate mail'),
    'vault: mail is not among the certificates of local\n  Try: vault deploy-target show --name local\n',
  );
});

test('an interrupted run stops before the next certificate and exits with 1', async (t) => {
  const line = commandLine(t);
  await create(line, 'api', 'web');
  const dir = tempDir(t);
  const interrupting = `require('node:fs').writeFileSync(__dirname + '/' + process.env.VAULT_CERTIFICATE, '');
    process.kill(process.ppid, 'SIGINT');
    setInterval(() => undefined, 60_000);`;
  const settings = line.file(JSON.stringify({ command: hookScript(dir, interrupting) }));
  const certificates = '--certificate api --certificate web';
  await line.done(...target(`add local --type exec ${certificates} --secret-file ${settings}`));
  const { code, stdout, stderr } = await vault([...target('run local'), '--data-dir', line.data], {
    program: fromExecutable,
  });
  assert.deepEqual({ code, stdout, stderr }, { code: 1, stdout: '', stderr: 'vault: interrupted\n' });
  assert.deepEqual([existsSync(join(dir, 'api')), existsSync(join(dir, 'web'))], [true, false]);
  const shown = await line.json<Shown[]>(...target('show local'));
  assert.deepEqual(states(shown), [
    ['api', 'waiting', null],
    ['web', 'waiting', null],
  ]);
});

test('a run connects to loopback only with --allow-outbound', async (t) => {
  const { done, data, receiver, settings } = await withWebhook(t, 'web');
  await done(...target(`add shop --type webhook --certificate web --secret-file ${settings}`));
  const run = (...more: readonly string[]) =>
    vault([...target('run shop --data-dir'), data, ...more], {
      environment: { CERTVAULT_ALLOW_OUTBOUND: 'none', VAULT_ALLOW_OUTBOUND: undefined },
    });
  const { code, stderr } = await run();
  assert.equal(code, 1);
  assert.match(stderr, /\n {2}web: failed to deliver the certificate: .*127\.0\.0\.1/);
  assert.deepEqual(receiver.received, []);
  assert.equal((await run('--allow-outbound', '127.0.0.1')).code, 0);
  assert.equal(receiver.received.length, 1);
});

test('an update adds and removes certificates, and keeps what is installed of the others', async (t) => {
  const { done, run, json, settings } = await withWebhook(t, 'api', 'mail', 'web');
  const both = '--certificate web --certificate api';
  await done(...target(`add shop --type webhook ${both} --secret-file ${settings}`));
  await done(...target('run shop'));
  assert.deepEqual(
    await run(...target('update shop --add-certificate mail --remove-certificate api --add-certificate web')),
    { code: 0, stdout: '', stderr: 'Updated deploy target shop.\n' },
  );
  assert.deepEqual(states(await json<Shown[]>(...target('show shop'))), [
    ['mail', 'waiting', null],
    ['web', 'current', 1],
  ]);
  await done(...target('update shop --remove-certificate mail --remove-certificate web'));
  assert.deepEqual(await run(...target('run shop')), {
    ...{ code: 0, stdout: '' },
    stderr: 'No certificates on this target.\n  Try: vault deploy-target update --help\n',
  });
});

test('new settings replace all others, and make the certificates due at the new place', async (t) => {
  const { done, json, run, receiver, settings, file } = await withWebhook(t, 'web');
  await done(...target(`add shop --type webhook --certificate web --secret-file ${settings}`));
  await done(...target('run shop'));
  const other = await webhookReceiver(t);
  await done(...target('update shop --secret-file'), file(`url: ${other.url}\nsecret: ${secret}\n`));
  assert.deepEqual(states(await json<Shown[]>(...target('show shop'))), [['web', 'waiting', null]]);
  other.answers.push(status(503));
  const { code, stderr } = await run(...target('run shop'));
  const { host } = new URL(other.url);
  const words = `failed to deliver the certificate: ${host} responded with 503 Service Unavailable`;
  assert.deepEqual([code, stderr], [1, `vault: failed to install 1 certificate on shop\n  web: ${words}\n`]);
  await done(...target('run shop'));
  assert.deepEqual([receiver.received.length, other.received.length], [1, 2]);
  // The settings of the update have no secret of their own: nothing of the old ones is kept.
  const { stderr: missing } = await run(...target('update shop --secret-file'), file(`url: ${other.url}\n`));
  assert.match(missing, /^vault: invalid settings for webhook: secret is missing/);
});

test('settings are read from standard input', async (t) => {
  const { data, receiver, done } = await withWebhook(t, 'web');
  const words = target('add shop --type webhook --certificate web --secret-file - --data-dir');
  const input = JSON.stringify({ url: receiver.url, secret });
  const { code, stderr } = await vault([...words, data], { input });
  assert.equal(code, 0, stderr);
  await done(...target('run shop'));
  assert.equal(receiver.received.length, 1);
});

test('unknown names, types and settings are reported with a hint, and without secrets', async (t) => {
  const { done, run, refused, file, settings } = await withWebhook(t, 'web');
  const add = (words: string) => target(`add shop ${words}`);
  await done(...target(`add shop --type webhook --certificate web --secret-file ${settings}`));
  const cases: readonly (readonly [words: readonly string[], stderr: string, code?: 2])[] = [
    [
      target(`add other --type webhook --certificate wep --secret-file ${settings}`),
      'vault: unknown certificate "wep"\n  Did you mean "web"?\n',
    ],
    [
      target('update shop --add-certificate wep'),
      'vault: unknown certificate "wep"\n  Did you mean "web"?\n',
    ],
    [
      target('update shop --remove-certificate api'),
      'vault: api is not among the certificates of shop\n  Try: vault deploy-target show --name shop\n',
    ],
    [target('update shop'), 'vault: nothing to change\n  Try: vault deploy-target update --help\n', 2],
    [
      add(`--type webhook --secret-file ${settings}`),
      'vault: A deploy target named shop already exists.\n' +
        '  Choose another name, or change the existing one.\n  Try: vault deploy-target update --name shop\n',
    ],
    ...['show shup', 'run shup', 'remove shup', 'update shup --add-certificate web'].map(
      (words) => [target(words), 'vault: Unknown deploy target "shup".\n  Did you mean "shop"?\n'] as const,
    ),
  ];
  for (const [words, stderr, code = 1] of cases) await refused(words, stderr, code);
  const patterns: readonly (readonly [words: readonly string[], stderr: RegExp, code?: 2])[] = [
    [target('add new --type webhook'), /^vault: --secret-file is missing\n/, 2],
    [
      target('add new --type webhook --secret-file /nothing/there.yaml'),
      /^vault: cannot read \/nothing\/there\.yaml: /,
    ],
  ];
  for (const [words, stderr, code = 1] of patterns) await refused(words, stderr, code);
  const contents: readonly (readonly [content: string, stderr: RegExp])[] = [
    [`url: https://a.test/\nsecret: [hunter2\n`, /neither valid YAML nor JSON: \S+ in line \d/],
    ['hunter2', /the secret file must be a mapping of names to values\n/],
    [`url: https://a.test/\nsecret: ${secret}\nsecrat: hunter2\n`, /webhook: secrat is unknown\n/],
    ['url: https://a.test/\nsecret: hunter2\n', /webhook: secret must be whsec_ followed by /],
    [`url: ftp://hunter2@a.test/\nsecret: ${secret}\n`, /webhook: url must be an https:\/\/ URL/],
  ];
  for (const [content, expected] of contents) {
    for (const words of ['add new --type webhook', 'update shop']) {
      const outcome = await run(...target(`${words} --secret-file ${file(content)}`));
      assert.deepEqual([outcome.code, outcome.stdout], [1, ''], outcome.stderr);
      assert.match(outcome.stderr, expected);
      assert.doesNotMatch(outcome.stderr, /hunter2|whsec_[A-Za-z0-9+/]/);
    }
  }
});

test('at a server, programs and --allow-outbound are left to its own machine', async (t) => {
  const { done, data, file, settings } = await withWebhook(t, 'web');
  await done(...target(`add shop --type webhook --certificate web --secret-file ${settings}`));
  const key = await done(...commandWords('api-key create --name remote --role admin'));
  const tokenFile = file(key.stdout);
  chmodSync(tokenFile, 0o600);
  const { url } = await serve(t, data);
  const environment = { CERTVAULT_SERVER: url, CERTVAULT_TOKEN_FILE: tokenFile };
  const program = file(JSON.stringify({ command: ['/bin/true'] }));
  const exec = await vault(target(`add local --type exec --secret-file ${program}`), { environment });
  assert.deepEqual(exec, {
    ...{ code: 1, stdout: '' },
    stderr:
      "vault: targets of type exec run local programs and can only be added on the vault's host\n" +
      '  Run "vault deploy-target add" there.\n',
  });
  assert.deepEqual(await vault(target('run shop --allow-outbound 127.0.0.1'), { environment }), {
    ...{ code: 2, stdout: '' },
    stderr: 'vault: --allow-outbound and --server exclude each other\n  The server has its own settings.\n',
  });
});

test('types lists each type with the place that it reaches', async () => {
  const { code, stdout } = await vault(target('types'));
  assert.equal(code, 0);
  const names = [...stdout.matchAll(/^([a-z-]+) {2,}\S/gm)].map(([, name]) => name);
  assert.deepEqual(names, [
    ...[
      'ssh',
      'kubernetes',
      'webhook',
      'exec',
      'proxmox',
      'synology',
      'fortigate',
      'aws-acm',
      'azure-key-vault',
    ],
  ]);
});
