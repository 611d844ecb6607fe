/**
 * docs/operations.md does what it says: each of its commands is run, section by section, and prints what the document
 * shows. The CA, the name server and the paths are stand-ins; the executable, the shell and the vault are real.
 */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { bind, needsBind } from './harness/bind.ts';
import {
  assertAsDocumented,
  documentedCommands,
  type RunOptions,
  type Sandbox,
  type StandIn,
  sandbox,
} from './harness/documented-commands.ts';
import { needs, type Skip } from './harness/missing-program.ts';
import { makeChain } from './harness/openssl-chain.ts';
import { freePort } from './harness/port.ts';
import { scriptedAcme } from './harness/scripted-acme.ts';
import { Refusal } from './harness/scripted-acme-jws.ts';
import { serve } from './harness/vault-process.ts';
import { webhookReceiver } from './harness/webhook-receiver.ts';

const commands = documentedCommands(readFileSync(new URL('../docs/operations.md', import.meta.url), 'utf8'));

/** Commands that are shown and not run here, and why. */
const notRun: readonly { readonly command: RegExp; readonly why: string }[] = [
  { command: /^(install|useradd|systemctl) /, why: 'they change the machine; the unit has tests of its own' },
];

type Scene = {
  readonly section: string;
  readonly needs?: Skip;
  /** Makes what the section takes for granted. */
  readonly prepare?: (t: TestContext, box: Sandbox) => Promise<Pick<RunOptions, 'standIns' | 'environment'>>;
  readonly typed?: Readonly<Record<string, NonNullable<RunOptions['typed']>>>;
  /** Before the command that begins so; what it returns stands in from then on. */
  readonly before?: Readonly<Record<string, (box: Sandbox) => Promise<StandIn[]>>>;
};

const asRoot: Skip = process.getuid?.() === 0 ? {} : { skip: 'root is needed' };
const passphrase = 'a passphrase nobody guesses';
const askOnce: NonNullable<RunOptions['typed']> = [
  ['Passphrase for the master key in the backup:', passphrase],
];

const newPassword: NonNullable<RunOptions['typed']> = [
  ['assword for alice:', passphrase],
  ['The same again:', passphrase],
];

async function web(box: Sandbox): Promise<void> {
  await done(box, 'vault certificate create --name web --domain www.example.com');
}

/** A vault that is there already. */
async function some(box: Sandbox): Promise<void> {
  await done(box, 'vault certificate create --name first --domain first.example.com');
}

async function done(box: Sandbox, text: string, options?: RunOptions): Promise<void> {
  const { lines, code } = await box.run(text, options);
  assert.equal(code, 0, `${text}\n${lines.join('\n')}`);
}

/** A CA that takes letsencrypt's name and address. */
async function letsEncrypt(
  t: TestContext,
  box: Sandbox,
  options: Parameters<typeof scriptedAcme>[1] = {},
): Promise<StandIn[]> {
  const ca = await scriptedAcme(t, { tls: true, ...options });
  writeFileSync(join(box.root, 'ca.pem'), ca.ca ?? '');
  const directory = `--name letsencrypt --directory ${ca.directoryUrl} --ca-file ${join(box.root, 'ca.pem')}`;
  return [
    ['issuer add --name letsencrypt', `issuer add ${directory}`],
    ['acme-v02.api.letsencrypt.org', new URL(ca.directoryUrl).host],
  ];
}

const addLetsEncrypt = 'vault issuer add --name letsencrypt --email ops@example.com --accept-terms';

const scenes: readonly Scene[] = [
  {
    section: 'The audit log',
    needs: needs('openssl'),
    prepare: async (_, box) => {
      await web(box);
      return {};
    },
  },
  {
    section: 'Where things are',
    needs: asRoot,
    prepare: async (_, box) => {
      await web(box);
      chmodSync(box.path('/var/lib/vault'), 0o755);
      return {
        standIns: [
          ['belongs to vault,', 'belongs to nobody,'],
          ['sudo -u vault', 'sudo -u nobody'],
        ],
      };
    },
    before: {
      'vault api-key create': async (box) => {
        chmodSync(box.path('/var/lib/vault'), 0o700);
        chownSync(box.path('/var/lib/vault'), 65534, 65534);
        return [];
      },
    },
  },
  {
    section: 'Upgrade',
    prepare: async (_, box) => {
      const old = new URL('./schemas/0005-key-networks/', import.meta.url);
      const data = box.path('/var/lib/vault');
      writeFileSync(join(data, 'vault.db'), gunzipSync(readFileSync(new URL('vault.db.gz', old))), {
        mode: 0o600,
      });
      writeFileSync(join(data, 'master.key'), readFileSync(new URL('master.key', old)), { mode: 0o600 });
      return {};
    },
  },
  {
    section: 'Install',
    needs: needs('script'),
    typed: { 'sudo -u vault vault admin create': newPassword },
  },
  {
    section: 'Troubleshoot',
    needs: needs('openssl'),
    prepare: async (t, box) => {
      const standIns = await letsEncrypt(t, box);
      await web(box);
      await done(box, addLetsEncrypt, { standIns });
      const day = 86_400_000;
      const now = Math.floor(Date.now() / 1000) * 1000;
      const { fullchainPath, leaf } = makeChain(box.root, {
        notBefore: now - 80 * day,
        notAfter: now + 3.5 * day,
      });
      const files = `--fullchain ${fullchainPath} --private-key ${leaf.keyPath}`;
      await done(box, `vault certificate import --name shop ${files}`);
      const port = await freePort();
      const data = box.path('/var/lib/vault');
      writeFileSync(join(data, 'vault.yaml'), `listen: 127.0.0.1:${port}\n`, { mode: 0o600 });
      await serve(t, data, { listen: `127.0.0.1:${port}` });
      return { standIns: [...standIns, ['127.0.0.1:8080', `127.0.0.1:${port}`]] };
    },
  },
  {
    section: 'HTTPS',
    needs: needs('curl'),
    prepare: async (t, box) => {
      const port = await freePort();
      const standIns = await letsEncrypt(t, box);
      await done(box, addLetsEncrypt, { standIns });
      return {
        standIns: [
          ...standIns,
          ['0.0.0.0:8443', `127.0.0.1:${port}`],
          ['curl ', `curl --connect-to vault.example.com:8443:127.0.0.1:${port} `],
        ],
      };
    },
    before: {
      'pin=': async (box) => {
        const {
          lines: [line = ''],
        } = await box.run('vault certificate show --name vault | grep pin');
        return [
          ['pin=sha256//GrDl/NOzsx8xoK6TkXI7llDJIFDwwsxmvlMr3jeMH9M=', `pin=${line.split(' ').at(-1)}`],
        ];
      },
    },
  },
  {
    section: 'Metrics',
    needs: needs('curl'),
    prepare: async (_, box) => {
      await some(box);
      const port = await freePort();
      return {
        standIns: [
          ['vault serve', 'vault serve --listen 127.0.0.1:0'],
          ['127.0.0.1:9464', `127.0.0.1:${port}`],
        ],
      };
    },
  },
  {
    section: 'Workers',
    prepare: async (_, box) => {
      await some(box);
      const port = await freePort();
      return {
        standIns: [
          ['vault serve', `vault serve --listen 127.0.0.1:${port}`],
          ['127.0.0.1:8080', `127.0.0.1:${port}`],
        ],
      };
    },
  },
  {
    section: 'ACME issuers',
    prepare: async (t, box) => {
      await some(box);
      const standIns = await letsEncrypt(t, box);
      return {
        standIns: [
          ...standIns,
          ['vault serve', 'vault serve --listen 127.0.0.1:0'],
          ['0.0.0.0:80', '127.0.0.1:0'],
        ],
      };
    },
  },
  {
    section: 'DNS providers',
    needs: needsBind(),
    prepare: async (t, box) => {
      await some(box);
      const { keyName, secret, server } = await bind(t, { zones: ['example.com'] });
      const file = join(box.root, 'ns1.yaml');
      writeFileSync(file, `server: ${server}\nkey_name: ${keyName}\nsecret: ${secret}\n`, {
        mode: 0o600,
      });
      return { environment: { VAULT_RESOLVER: server } };
    },
  },
  {
    section: 'Settings as code',
    prepare: async (_, box) => {
      await some(box);
      return {};
    },
    before: {
      'cat /etc/vault/desired.yaml': async (box) => {
        const { output } = commands.find(({ text }) => text === 'cat /etc/vault/desired.yaml') ?? {};
        writeFileSync(box.path('/etc/vault/desired.yaml'), `${output?.join('\n')}\n`);
        return [];
      },
    },
  },
  {
    section: 'Renewals',
    prepare: async (t, box) => {
      const words =
        'Get "http://www.example.com/.well-known/acme-challenge/RKNm": dial tcp 127.0.0.1:80: connect: connection refused';
      const validate = () => new Refusal('connection', words);
      const standIns = await letsEncrypt(t, box, { validate });
      await done(box, addLetsEncrypt, { standIns });
      await box.run(
        'vault certificate create --name web --domain www.example.com --issuer letsencrypt --wait',
      );
      return { standIns };
    },
  },
  {
    section: 'Revocation',
    prepare: async (t, box) => {
      const standIns = await letsEncrypt(t, box);
      await done(box, addLetsEncrypt, { standIns });
      await done(
        box,
        'vault certificate create --name web --domain www.example.com --issuer letsencrypt --wait',
      );
      return { standIns };
    },
  },
  {
    section: 'Backup and restore',
    needs: needs('script'),
    prepare: async (_, box) => {
      await web(box);
      await done(box, 'vault api-key create --name www --scope certificates:read --certificate web');
      return {};
    },
    typed: {
      'vault backup /backup/full.backup': [...askOnce, ['The same again:', passphrase]],
      'vault restore /backup/full.backup': askOnce,
    },
  },
  {
    section: 'The master key',
    needs: needs('script'),
    prepare: async (_, box) => {
      await web(box);
      return {};
    },
    typed: {
      'vault master-key seal': [
        ['New passphrase for the master key:', passphrase],
        ['The same again:', passphrase],
      ],
      'vault certificate list': [['/vault/master.key:', passphrase]],
    },
  },
  {
    section: 'Notifications',
    prepare: async (t, box) => {
      await some(box);
      const receiver = await webhookReceiver(t);
      const secret = join(box.root, 'smtp-password.txt');
      writeFileSync(secret, 'made-up-for-this-test\n');
      return { standIns: [['https://hooks.example.com', new URL(receiver.url).origin]] };
    },
  },
  {
    section: 'Administrators',
    prepare: async (_, box) => some(box).then(() => ({})),
    needs: needs('script'),
    typed: {
      'vault admin create': newPassword,
      'vault admin reset-password': newPassword,
    },
  },
];

for (const { section, needs: skip = {}, prepare, typed = {}, before = {} } of scenes) {
  test(`docs/operations.md, "${section}"`, skip, async (t) => {
    const box = sandbox(t);
    const options = (await prepare?.(t, box)) ?? {};
    const standIns = [...(options.standIns ?? [])];
    const own = commands.filter((command) => command.section === section && !isNotRun(command.text));
    assert.ok(own.length > 0, 'the section has no commands any more');
    for (const command of own) {
      const beginning = (key: string) => command.text.startsWith(key);
      const first = Object.keys(before).find(beginning);
      if (first !== undefined) standIns.push(...((await before[first]?.(box)) ?? []));
      const key = Object.keys(typed).find(beginning);
      const run = { ...options, standIns, ...(key !== undefined && { typed: typed[key] ?? [] }) };
      assertAsDocumented(command, await box.run(command.text, run));
    }
  });
}

test('every command of docs/operations.md is run above, or said not to be', () => {
  const sections = new Set(scenes.map(({ section }) => section));
  const left = commands.filter(({ section, text }) => !sections.has(section) && !isNotRun(text));
  assert.deepEqual(
    left.map(({ section, text }) => `${section}: ${text}`),
    [],
  );
  for (const { command, why } of notRun)
    assert.ok(
      commands.some(({ text }) => command.test(text)),
      why,
    );
});

function isNotRun(text: string): boolean {
  return notRun.some(({ command }) => command.test(text));
}
