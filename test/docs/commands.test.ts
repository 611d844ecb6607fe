/**
 * The pages do what they say: each of their commands is run, page by page, and prints what the page shows. CAs, name
 * servers and paths are replaced; the executable, the shell and the vault are real. The README and a third of the other
 * pages run in each commit.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, chownSync, copyFileSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createServer } from 'node:tls';
import { gunzipSync } from 'node:zlib';
import { confinedCompany } from '../harness/ca/company-ca.ts';
import { makeChain } from '../harness/ca/openssl-chain.ts';
import { scriptedAcme } from '../harness/ca/scripted-acme.ts';
import { Refusal } from '../harness/ca/scripted-acme-jws.ts';
import { bind, needsBind } from '../harness/dns/bind.ts';
import { webhookReceiver } from '../harness/http/webhook-receiver.ts';
import { loopbackSetting } from '../harness/loopback-guard.ts';
import { needsPostgres } from '../harness/postgres/binaries.ts';
import { postgresServer } from '../harness/postgres/postgres.ts';
import { needs, type Skip } from '../harness/processes/missing-program.ts';
import { freePort } from '../harness/processes/port.ts';
import { serve } from '../harness/processes/vault-process.ts';
import { inTurn } from '../harness/slice.ts';
import { tempDir } from '../harness/temp-dir.ts';
import {
  assertAsDocumented,
  type DocumentedCommand,
  documentedCommands,
  program,
  type RunOptions,
  type Sandbox,
  type StandIn,
  sandbox,
} from './documented-commands.ts';
import { machine, needsNamespaces } from './documented-machine.ts';
import { needsSshd, sshServer } from './documented-ssh-server.ts';

const root = join(import.meta.dirname, '..', '..');

/** The commands of each page that has any. */
const pages: ReadonlyMap<string, readonly DocumentedCommand[]> = new Map(
  ['README.md', ...globSync('docs/**/*.md', { cwd: root })]
    .map((page) => [page, documentedCommands(readFileSync(join(root, page), 'utf8'))] as const)
    .filter(([, commands]) => commands.length > 0),
);

/** Commands that are shown and not run here, and why. */
const notRun: readonly { readonly page: string; readonly command: RegExp; readonly why: string }[] = [
  {
    page: 'README.md',
    command: /^npm /,
    why: 'it needs the registry; the executable that it builds runs here',
  },
  {
    page: 'docs/how-to/second-factors.md',
    command: /^vault admin reset-password /,
    why: 'it needs a passkey of a browser; test/cli/commands/admin has the output with an app',
  },
  {
    page: 'docs/how-to/roll-back.md',
    command: /^(systemctl|install) /,
    why: 'they change the machine; docs/production.md runs such commands',
  },
  {
    page: 'docs/how-to/scan-networks.md',
    command: /^vault endpoint (scan|remove-scan)/,
    why: 'it would connect to a network; test/cli/commands/endpoint has the same commands on loopback',
  },
  {
    page: 'docs/how-to/rotate-master-key.md',
    command: /^(head|systemctl|systemd-run|mv) /,
    why: 'they need a running systemd; test/cli/commands/master-key has the same steps',
  },
  {
    page: 'docs/how-to/rotate-master-key.md',
    command: /^vault master-key remove /,
    why: 'its key id differs each time; test/cli/commands/master-key-backups removes keys',
  },
  {
    page: 'docs/how-to/systemd.md',
    command: /^systemd-run /,
    why: 'it needs a running systemd; test/cli/runtime/open-vault tests credentials',
  },
];

type Scene = {
  readonly page: string;
  readonly needs?: Skip;
  readonly place?: (t: TestContext) => Sandbox | Promise<Sandbox>;
  /** Makes what the page takes for granted. */
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

const askTwice: NonNullable<RunOptions['typed']> = [...askOnce, ['Repeat:', passphrase]];

const passwordOf = (name: string): NonNullable<RunOptions['typed']> => [
  [`assword for ${name}:`, passphrase],
  ['Repeat:', passphrase],
];

const newPassword = passwordOf('alice');

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

/** The pin of the page is that of the vault. */
async function ownPin(box: Sandbox): Promise<StandIn[]> {
  const {
    lines: [line = ''],
  } = await box.run('sudo -u vault vault certificate show --name vault | grep pin');
  return [['pin=sha256//GrDl/NOzsx8xoK6TkXI7llDJIFDwwsxmvlMr3jeMH9M=', `pin=${line.split(' ').at(-1)}`]];
}

/** Two machines exchange the token that the page put into a file. */
async function enrollTwo(box: Sandbox): Promise<StandIn[]> {
  const [url, token] = ['url', 'enrollment-token'].map((name) => readFileSync(join(box.root, name), 'utf8'));
  for (const host of ['www1', 'www2']) {
    const response = await fetch(`${url}/api/v1/enrollments/exchange`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token?.trim()}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ host }),
    });
    assert.equal(response.status, 201);
  }
  return [];
}

/** From here on, the commands are those of another machine with its own directory, to which files were copied. */
async function secondMachine(box: Sandbox): Promise<StandIn[]> {
  await done(box, 'cd /var/lib/vault && cp vault.yaml master.key metrics.token .pgpass "$OLDPWD"');
  await done(box, 'install -d -o vault -g vault -m 700 /var/lib/vault-2');
  return [
    [' /var/lib/vault/', ' /var/lib/vault-2/'],
    ['systemctl enable', 'MACHINE=-2 systemctl enable'],
  ];
}

const scenes: readonly Scene[] = [
  {
    page: 'docs/production.md',
    needs: {
      ...{ ...asRoot, ...needs('script'), ...needs('ip'), ...needs('curl'), ...needsNamespaces() },
      ...needsPostgres(),
    },
    place: machine,
    prepare: async () => {
      const server = await postgresServer();
      const url = new URL(await server.createDatabase());
      // The machine has a network of its own, but the same files.
      chmodSync(server.socketDir, 0o755);
      const socket = `postgres://vault@${encodeURIComponent(server.socketDir)}:${server.port}${url.pathname}`;
      return { standIns: [['postgres://vault@db.example.com/vault', socket]] };
    },
    typed: { 'sudo -u vault vault admin create': newPassword },
    before: { 'pin=': ownPin, 'install -o vault -g vault -m 600 vault.yaml': secondMachine },
  },
  {
    page: 'README.md',
    needs: { ...needs('curl'), ...needs('openssl') },
    prepare: async (t, box) => {
      const crontab = join(box.root, 'crontab');
      program(
        join(box.root, 'programs'),
        'crontab',
        `case $1 in -l) cat ${crontab} ;; *) cat "$1" >${crontab} ;; esac`,
      );
      writeFileSync(crontab, '');
      const { url } = await serve(t, box.path('/var/lib/vault'));
      return {
        standIns: [
          ['dist/vault ', 'vault '],
          ['http://127.0.0.1:8080', url],
        ],
        environment: {
          HOME: box.path('/home/me'),
          CERTIFICATE_VAULT_HOME: box.path('/home/me'),
        },
      };
    },
  },
  {
    page: 'docs/how-to/air-gapped.md',
    prepare: async (t, box) => {
      await some(box);
      const ca = await scriptedAcme(t, { tls: true });
      writeFileSync(join(box.root, 'root.pem'), ca.ca ?? '');
      const { url } = await serve(t, box.path('/var/lib/vault'));
      return {
        standIns: [
          ['https://ca.internal/acme/directory', ca.directoryUrl],
          ['--offline', `--offline --url ${url}`],
        ],
      };
    },
  },
  {
    page: 'docs/how-to/offline-root.md',
    needs: needs('openssl'),
    prepare: async (_, box) => {
      await some(box);
      writeFileSync(join(box.root, 'passphrase.txt'), `${passphrase}\n`);
      return {};
    },
  },
  { page: 'docs/how-to/client-certificates.md', prepare: async (_, box) => some(box).then(() => ({})) },
  {
    page: 'docs/how-to/company-root.md',
    prepare: async (_, box) => {
      await done(box, 'vault certificate create --name web --domain www.corp.example');
      confinedCompany(box.root);
      return {};
    },
  },
  { page: 'docs/how-to/rotate-private-ca.md', prepare: async (_, box) => web(box).then(() => ({})) },
  {
    page: 'docs/how-to/acme-clients.md',
    prepare: async (_, box) => {
      await some(box);
      const settings = 'public_url: https://vault.example.com:8443\n';
      writeFileSync(join(box.path('/var/lib/vault'), 'vault.yaml'), settings, { mode: 0o600 });
      return {};
    },
  },
  {
    page: 'docs/how-to/private-cas.md',
    prepare: async (_, box) => {
      await some(box);
      writeFileSync(join(box.root, 'password.txt'), 'a long enough passphrase\n');
      return {};
    },
  },
  {
    page: 'docs/how-to/find-certificates.md',
    prepare: async (_, box) => {
      await web(box);
      await done(
        box,
        'vault certificate create --name shop --domain shop.example.com --domain pay.example.com --lifetime 20d',
      );
      return {};
    },
  },
  {
    page: 'docs/how-to/import-certificates.md',
    needs: needs('openssl'),
    prepare: async (_, box) => {
      await some(box);
      const { fullchainPath, leaf } = makeChain(box.root, {});
      copyFileSync(fullchainPath, join(box.root, 'fullchain.pem'));
      copyFileSync(leaf.keyPath, join(box.root, 'private-key.pem'));
      writeFileSync(join(box.root, 'password.txt'), 'made-up-for-this-test\n');
      await done(
        box,
        'openssl pkcs12 -export -in fullchain.pem -inkey private-key.pem -passout file:password.txt -out shop.p12',
      );
      return {};
    },
  },
  {
    page: 'docs/how-to/keep-keys-on-clients.md',
    needs: { ...needs('curl'), ...needs('openssl') },
    prepare: async (t, box) => {
      await some(box);
      const {
        lines: [key = ''],
      } = await box.run(
        "vault api-key create --name all --scope certificates:sign --certificate '*' 2>/dev/null",
      );
      const { url } = await serve(t, box.path('/var/lib/vault'));
      return { standIns: [['http://127.0.0.1:8080', url]], environment: { KEY: key } };
    },
  },
  {
    page: 'docs/how-to/automate.md',
    needs: needs('curl'),
    prepare: async (t, box) => {
      await some(box);
      const {
        lines: [key = ''],
      } = await box.run('vault api-key create --name here --role operator 2>/dev/null');
      const { url } = await serve(t, box.path('/var/lib/vault'));
      return { standIns: [['http://127.0.0.1:8080', url]], environment: { KEY: key } };
    },
  },
  {
    page: 'docs/how-to/inspect.md',
    needs: needs('openssl'),
    prepare: async (t, box) => {
      const { fullchainPath, fullchainPem, leaf } = makeChain(box.root, {});
      copyFileSync(fullchainPath, join(box.root, 'fullchain.pem'));
      copyFileSync(leaf.keyPath, join(box.root, 'private-key.pem'));
      const server = createServer({ cert: fullchainPem, key: leaf.keyPem }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      t.after(() => server.close());
      return { standIns: [['www.example.com:443', `localhost:${(server.address() as AddressInfo).port}`]] };
    },
  },
  {
    page: 'docs/how-to/systemd.md',
    // A unit cannot see an executable in a home or temporary directory, and the command warns about that.
    prepare: async () => ({ standIns: [['vault systemd-unit', 'vault systemd-unit 2>/dev/null']] }),
  },
  {
    page: 'docs/reference/http-api.md',
    needs: needs('curl'),
    prepare: async (t, box) => {
      await web(box);
      const {
        lines: [key = ''],
      } = await box.run(
        'vault api-key create --name www --scope certificates:read --scope private_keys:read --certificate web 2>/dev/null',
      );
      writeFileSync(join(box.root, 'password.curl'), 'header = "Keystore-Password: changeit"\n');
      await done(
        box,
        `printf ${passphrase.replaceAll(' ', '-')} | vault admin create --name alice --password-stdin`,
      );
      const credentials = { name: 'alice', password: passphrase.replaceAll(' ', '-') };
      writeFileSync(join(box.root, 'credentials.json'), JSON.stringify(credentials));
      const { url } = await serve(t, box.path('/var/lib/vault'));
      return { standIns: [['http://127.0.0.1:8080', url]], environment: { KEY: key } };
    },
  },
  {
    page: 'docs/how-to/audit.md',
    needs: needs('openssl'),
    prepare: async (_, box) => {
      await web(box);
      return {};
    },
  },
  {
    page: 'docs/reference/files.md',
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
    page: 'docs/how-to/roll-back.md',
    prepare: async (_, box) => {
      const old = new URL('../schemas/0005-key-networks/', import.meta.url);
      const data = box.path('/var/lib/vault');
      writeFileSync(join(data, 'vault.db'), gunzipSync(readFileSync(new URL('vault.db.gz', old))), {
        mode: 0o600,
      });
      writeFileSync(join(data, 'master.key'), readFileSync(new URL('master.key', old)), { mode: 0o600 });
      return {};
    },
  },
  {
    page: 'docs/how-to/troubleshoot.md',
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
    page: 'docs/how-to/https.md',
    needs: needs('curl'),
    prepare: async (t, box) => {
      const port = await freePort();
      const standIns = await letsEncrypt(t, box);
      await done(box, addLetsEncrypt, { standIns });
      const { fullchainPath, leaf } = makeChain(box.root);
      return {
        standIns: [
          ...standIns,
          ['/etc/letsencrypt/live/vault/fullchain.pem', fullchainPath],
          ['/etc/letsencrypt/live/vault/privkey.pem', leaf.keyPath],
          ['serve --tls-cert-file', 'serve --listen 127.0.0.1:0 --tls-cert-file'],
          ['0.0.0.0:8443', `127.0.0.1:${port}`],
          ['curl ', `curl --connect-to vault.example.com:8443:127.0.0.1:${port} `],
        ],
      };
    },
    before: { 'pin=': ownPin },
  },
  {
    page: 'docs/how-to/metrics.md',
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
    page: 'docs/how-to/acme.md',
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
    page: 'docs/how-to/dns.md',
    needs: needsBind(),
    prepare: async (t, box) => {
      await some(box);
      const { keyName, secret, server } = await bind(t, { zones: ['example.com'] });
      const file = join(box.root, 'ns1.yaml');
      writeFileSync(file, `server: ${server}\nkey_name: ${keyName}\nsecret: ${secret}\n`, {
        mode: 0o600,
      });
      for (const name of ['gandi.yaml', 'dynu.yaml']) {
        writeFileSync(join(box.root, name), 'environment:\n  A_TOKEN: made-up-for-this-test\n', {
          mode: 0o600,
        });
      }
      return { environment: { VAULT_RESOLVER: server } };
    },
  },
  {
    page: 'docs/how-to/settings-as-code.md',
    prepare: async (_, box) => {
      await some(box);
      return {};
    },
    before: {
      'cat /etc/vault/desired.yaml': async (box) => {
        const page = pages.get('docs/how-to/settings-as-code.md');
        const { output } = page?.find(({ text }) => text === 'cat /etc/vault/desired.yaml') ?? {};
        writeFileSync(box.path('/etc/vault/desired.yaml'), `${output?.join('\n')}\n`);
        return [];
      },
    },
  },
  {
    page: 'docs/how-to/failed-renewals.md',
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
    page: 'docs/how-to/replace-in-an-emergency.md',
    prepare: async (_, box) => {
      await web(box);
      return {};
    },
  },
  {
    page: 'docs/how-to/revoke.md',
    prepare: async (t, box) => {
      const standIns = await letsEncrypt(t, box);
      await done(box, addLetsEncrypt, { standIns });
      await done(
        box,
        'vault certificate create --name web --domain www.example.com --issuer letsencrypt --wait',
      );
      const { url } = await serve(t, box.path('/var/lib/vault'));
      return { standIns: [...standIns, ['http://127.0.0.1:8080', url]] };
    },
    needs: needs('curl'),
  },
  {
    page: 'docs/how-to/bind-api-key.md',
    prepare: async (_t, box) => {
      await web(box);
      return {};
    },
  },
  {
    page: 'docs/how-to/enroll-machines.md',
    prepare: async (t, box) => {
      await web(box);
      const { url } = await serve(t, box.path('/var/lib/vault'));
      writeFileSync(join(box.root, 'url'), url);
      return { standIns: [['192.0.2.0/24', '127.0.0.0/8']] };
    },
    before: { 'vault enrollment list': enrollTwo },
  },
  {
    page: 'docs/how-to/labels.md',
    prepare: async (_t, box) => {
      await web(box);
      writeFileSync(join(box.root, 'password.txt'), 'a long enough passphrase\n');
      return {};
    },
  },
  {
    page: 'docs/how-to/installed-where.md',
    prepare: async (t, box) => {
      await web(box);
      const { lines } = await box.run(
        'vault api-key create --name www --scope certificates:read --certificate web',
      );
      const key = lines.find((line) => line.startsWith('vk_'));
      const { url } = await serve(t, box.path('/var/lib/vault'));
      const failed = { result: 'failed', output: 'nginx: configuration file test failed' };
      for (const [host, reload] of [['www1', null] as const, ['www2', failed] as const]) {
        const response = await fetch(`${url}/api/v1/certificates/web/deployments/${host}`, {
          method: 'PUT',
          headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
          body: JSON.stringify({ host, job: 'web-123', destination: '/etc/nginx/tls', version: 1, reload }),
        });
        assert.equal(response.status, 204);
      }
      await done(box, 'vault notification add webhook --channel ops --url https://hooks.example.com/vault');
      return {};
    },
  },
  {
    page: 'docs/how-to/deploy-targets.md',
    needs: needsSshd,
    prepare: async (t, box) => {
      await web(box);
      const { port, user, hostKey, privateKey } = await sshServer(t);
      const shownKey = ['-----BEGIN OPENSSH PRIVATE KEY-----', '…', '-----END OPENSSH PRIVATE KEY-----'];
      const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}\n`).join('');
      return {
        standIns: [
          ['host: web1.example.com', `host: 127.0.0.1\nport: ${port}`],
          ['user: deploy', `user: ${user}`],
          ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKx…', hostKey],
          [indented(shownKey), indented(privateKey.trim().split('\n'))],
          ['/etc/nginx/tls', tempDir(t)],
          ['sudo systemctl reload nginx', 'echo reloaded'],
        ],
      };
    },
  },
  {
    page: 'docs/how-to/served-certificates.md',
    prepare: async (t, box) => {
      await web(box);
      await done(box, 'vault certificate create --name mail --domain mx.example.com');
      await done(box, 'vault notification add webhook --channel ops --url https://hooks.example.com/vault');
      const addresses: string[] = [];
      for (const name of ['web', 'mail']) {
        await done(box, `vault certificate export --name ${name} --out tls-${name}`);
        const [cert, key] = ['fullchain.crt', 'private.key'].map((file) =>
          readFileSync(join(box.root, `tls-${name}`, file)),
        );
        assert(cert && key);
        // The list is in the order of the addresses.
        const host = `127.0.0.${addresses.length + 1}`;
        const server = createServer({ cert, key }, (socket) =>
          socket.on('error', () => socket.destroy()).end(),
        );
        await once(server.listen(0, host), 'listening');
        t.after(() => server.close());
        addresses.push(`${host}:${(server.address() as AddressInfo).port}`);
      }
      copyFileSync(join(box.root, 'tls-mail', 'chain.crt'), join(box.root, 'corporate-root.pem'));
      const names = ['www.example.com:443', 'www2.example.com:443'];
      return {
        standIns: names.map((name, at): StandIn => [name, addresses[at] ?? name]),
        environment: { CERTVAULT_ENDPOINT_ALLOW: loopbackSetting },
      };
    },
  },
  {
    page: 'docs/how-to/rotate-api-key.md',
    needs: needs('curl'),
    prepare: async (t, box) => {
      await web(box);
      await done(box, 'vault certificate create --name shop --domain shop.example.com');
      await done(box, 'vault api-key create --name www --scope certificates:read --certificate web');
      const { url } = await serve(t, box.path('/var/lib/vault'));
      return { standIns: [['http://127.0.0.1:8080', url]] };
    },
  },
  {
    page: 'docs/how-to/backup.md',
    needs: needs('script'),
    prepare: async (_, box) => {
      await web(box);
      await done(box, 'vault api-key create --name www --scope certificates:read --certificate web');
      return {};
    },
    typed: {
      'vault backup /backup/full.backup': askTwice,
    },
  },
  {
    page: 'docs/how-to/move-database.md',
    needs: needsPostgres(),
    prepare: async (_, box) => {
      await web(box);
      await done(box, 'vault backup /backup/full.backup');
      const server = await postgresServer();
      const there = 'postgres://vault@db.example.com';
      return {
        standIns: [
          [`${there}/vault`, await server.createDatabase()],
          [`${there}/restored`, await server.createDatabase()],
        ],
      };
    },
    before: { 'vault serve': async () => [['vault serve', 'vault serve --listen 127.0.0.1:0']] },
  },
  {
    page: 'docs/how-to/restore.md',
    needs: needs('script'),
    prepare: async (_, box) => {
      await web(box);
      await done(box, 'vault api-key create --name www --scope certificates:read --certificate "*"');
      await done(box, 'vault backup /backup/full.backup --with-master-key', { typed: askTwice });
      return {};
    },
    typed: { 'vault restore /backup/full.backup': askOnce },
    before: {
      'vault certificate undelete': async (box) => {
        await done(box, 'vault certificate delete --name web --force');
        return [];
      },
    },
  },
  {
    page: 'docs/how-to/rotate-master-key.md',
    prepare: async (_, box) => web(box).then(() => ({})),
  },
  {
    page: 'docs/how-to/seal-master-key.md',
    needs: needs('script'),
    prepare: async (_, box) => {
      await web(box);
      return {};
    },
    typed: {
      'vault master-key seal': [
        ['New passphrase for the master key:', passphrase],
        ['Repeat:', passphrase],
      ],
      'vault certificate list': [['/vault/master.key:', passphrase]],
    },
  },
  {
    page: 'docs/how-to/notify-by-webhook.md',
    prepare: async (t, box) => {
      await some(box);
      const receiver = await webhookReceiver(t);
      return { standIns: [['https://hooks.example.com', new URL(receiver.url).origin]] };
    },
  },
  {
    page: 'docs/how-to/notify-by-email.md',
    prepare: async (_, box) => {
      await some(box);
      writeFileSync(join(box.root, 'smtp-password.txt'), 'made-up-for-this-test\n');
      return {};
    },
  },
  {
    page: 'docs/how-to/notify-by-chat.md',
    prepare: async (_, box) => {
      await some(box);
      const secrets = {
        ...{ 'slack-url.txt': 'https://hooks.slack.com/services/made/up' },
        ...{ 'teams-url.txt': 'https://made-up.example.com/workflows/1?sig=made-up' },
        ...{ 'discord-url.txt': 'https://discord.com/api/webhooks/1/made-up' },
        ...{ 'telegram-token.txt': '123456:made-up', 'ntfy-token.txt': 'tk_madeup' },
        ...{
          'gotify-token.txt': 'made-up',
          'pagerduty-key.txt': 'm'.repeat(32),
          'opsgenie-key.txt': 'made-up',
        },
      };
      for (const [name, secret] of Object.entries(secrets))
        writeFileSync(join(box.root, name), `${secret}\n`);
      return {};
    },
  },
  {
    page: 'docs/how-to/administrators.md',
    prepare: async (_, box) => some(box).then(() => ({})),
    needs: needs('script'),
    typed: {
      'vault admin create --name alice': newPassword,
      'vault admin create --name bob': passwordOf('bob'),
      'vault admin reset-password': newPassword,
    },
  },
];

const readme = scenes.filter(({ page }) => page === 'README.md');
const others = scenes.filter(({ page }) => page !== 'README.md');
const shown = [...readme, ...inTurn(others, Math.ceil(others.length / 3))];

for (const { page, needs: skip = {}, place = sandbox, prepare, typed = {}, before = {} } of shown) {
  test(`the commands of ${page} print what the page shows`, skip, async (t) => {
    const box = await place(t);
    const options = (await prepare?.(t, box)) ?? {};
    const standIns = [...(options.standIns ?? [])];
    const own = (pages.get(page) ?? []).filter(({ text }) => !isNotRun(page, text));
    assert.ok(own.length > 0, 'the page has no commands any more');
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

/** Pages whose commands for `vault` have no prompt, and why none of them is run here. */
const shownOnly: ReadonlyMap<string, string> = new Map([
  [
    'docs/how-to/master-key-stores.md',
    'they need a store; test/cli/commands/master-key-hsm runs a recipe of the page',
  ],
  ['docs/how-to/served-certificates.md', 'a command prints it'],
]);

test('pages with vault commands without a prompt are listed in shownOnly', () => {
  const left = ['README.md', ...globSync('docs/**/*.md', { cwd: root })].filter(
    (page) => !shownOnly.has(page) && /^ {4}vault [a-z]/m.test(readFileSync(join(root, page), 'utf8')),
  );
  assert.deepEqual(left, []);
});

test('every command of README.md and docs is run or listed in notRun', () => {
  const told = new Set(scenes.map(({ page }) => page));
  const left = [...pages].flatMap(([page, commands]) =>
    told.has(page)
      ? []
      : commands.filter(({ text }) => !isNotRun(page, text)).map(({ text }) => `${page}: ${text}`),
  );
  assert.deepEqual(left, []);
  for (const { page, command, why } of notRun)
    assert.ok(
      pages.get(page)?.some(({ text }) => command.test(text)),
      `${page}: ${why}`,
    );
});

function isNotRun(page: string, text: string): boolean {
  return notRun.some((one) => one.page === page && one.command.test(text));
}
