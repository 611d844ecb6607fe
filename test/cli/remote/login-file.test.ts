/** `vault login`, the key file it writes, and what commands on a server refuse to do with a key. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type CommandLine, commandLine, commandWords } from '../../harness/processes/command-line.ts';
import { type Outcome, serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

type Site = {
  readonly line: CommandLine;
  readonly url: string;
  readonly key: string;
  readonly config: string;
  readonly file: string;
  readonly run: (words: string, input?: string) => Promise<Outcome>;
};

/** A served vault with an operator's key, and a user with an empty configuration directory. */
async function site(t: TestContext): Promise<Site> {
  const line = commandLine(t);
  const { stdout: key } = await line.done('api-key', 'create', '--name=ops', '--role=operator');
  const { url } = await serve(t, line.data);
  const config = tempDir(t);
  const run = (words: string, input?: string) =>
    vault(commandWords(words), {
      environment: { XDG_CONFIG_HOME: config, HOME: config },
      ...(input !== undefined && { input }),
    });
  return { line, url, key, config, file: join(config, 'certificate-vault', 'login.json'), run };
}

test('a key that is stored at login works for its server until logout, and the file is private', async (t) => {
  const { url, key, file, run, line } = await site(t);
  const early = await run(`--server ${url} certificate list`);
  assert.equal(early.code, 1);
  assert.match(
    early.stderr,
    /^vault: no API key for \S+\n {2}Try: vault login \S+\n {2}Or set CERTVAULT_TOKEN_FILE to the path of a file with one\.\n$/,
  );
  const login = await run(`login ${url} --key-stdin`, key);
  assert.equal(login.code, 0, login.stderr);
  assert.match(login.stderr, /^Signed in to \S+ as ops, with the role operator\. The key is in \S+\n/);
  assert(!`${login.stdout}${login.stderr}`.includes(key.trim().split('.')[1] ?? ''));
  assert.equal(statSync(file).mode & 0o777, 0o600);
  await line.done('certificate', 'create', '--name=web', '--domain=www.example.test');
  const listed = await run(`--server=${url} certificate list`);
  assert.match(listed.stdout, /^web +valid /m, listed.stderr);
  // Rights end where the role ends.
  const beyond = await run(
    `--server ${url} admin create --name eve --password-stdin`,
    'correct horse battery',
  );
  assert.match(beyond.stderr, /^vault: This request requires the role admin; this API key has operator\./);
  const logout = await run(`logout ${url}`);
  assert.equal(logout.code, 0, logout.stderr);
  assert(!readFileSync(file, 'utf8').includes('vk_'));
  assert.equal((await run(`--server ${url} certificate list`)).code, 1);
  assert.equal((await run(`logout ${url}`)).stderr, `vault: no API key or session is stored for ${url}\n`);
});

test('a key that the vault refuses or that has no role is not stored', async (t) => {
  const { url, file, run, line } = await site(t);
  const { stdout: reader } = await line.done(
    ...commandWords('api-key create --name reader --scope certificates:read --certificate *'),
  );
  for (const [key, why] of [
    [`vk_${'a'.repeat(12)}.${'b'.repeat(43)}`, /^vault: .*(?:key|credentials)/i],
    [reader, /^vault: the API key reader has no role, so no command works with it\n/],
  ] as const) {
    const { code, stderr } = await run(`login ${url} --key-stdin`, key);
    assert.equal(code, 1);
    assert.match(stderr, why);
  }
  assert(!existsSync(file));
});

test('a key file that others can read is refused, and a link in its place is replaced, not followed', async (t) => {
  const { url, key, file, run, config } = await site(t);
  await run(`login ${url} --key-stdin`, key);
  chmodSync(file, 0o644);
  const exposed = await run(`--server ${url} certificate list`);
  assert.equal(exposed.code, 1);
  assert.match(exposed.stderr, /login\.json is readable by other users \(mode 0644\)/);
  const target = join(config, 'target');
  writeFileSync(target, '{}', { mode: 0o600 });
  const other = tempDir(t);
  mkdirSync(join(other, 'certificate-vault'));
  symlinkSync(target, join(other, 'certificate-vault', 'login.json'));
  const words = commandWords(`login ${url} --key-stdin`);
  const { code, stderr } = await vault(words, { input: key, environment: { XDG_CONFIG_HOME: other } });
  assert.equal(code, 0, stderr);
  assert.equal(readFileSync(target, 'utf8'), '{}');
});

test('a server is trusted by its CA or by its key, which login stores, and sees no key before', async (t) => {
  const line = commandLine(t);
  const { stdout: key } = await line.done('api-key', 'create', '--name=ops', '--role=operator');
  await line.done('certificate', 'create', '--name=own', '--domain=127.0.0.1', '--wait');
  const [root] = JSON.parse((await line.done('ca', 'show', '--json')).stdout) as { readonly pem: string }[];
  const { stdout: shown } = await line.done('certificate', 'show', '--name=own');
  const pin = /sha256\/\/[\w+/]{43}=/.exec(shown)?.[0] ?? '';
  const server = await serve(t, line.data, { args: ['--tls-certificate', 'own'] });
  const config = tempDir(t);
  const rootFile = join(config, 'root.pem');
  writeFileSync(rootFile, root?.pem ?? '');
  const run = (words: string, input?: string) =>
    vault(commandWords(`--server ${server.url} ${words}`), {
      environment: {
        XDG_CONFIG_HOME: config,
        // Overridden by the option.
        ...(words.startsWith('--pin') && { CERTVAULT_SERVER_CA_FILE: join(config, 'none') }),
      },
      ...(input !== undefined && { input }),
    });
  const other = pin.replace(/(?<=\/\/)./, (letter) => (letter === 'A' ? 'B' : 'A'));
  for (const [words, why] of [
    [
      '',
      /^vault: the certificate of \S+ is not trusted: .*\n {2}If its certificate is from a private CA, pass/,
    ],
    [`--pin ${other}`, /^vault: 127\.0\.0\.1 has another public key: sha256/],
    [`--ca-file ${join(config, 'none')}`, /^vault: --ca-file: cannot read /],
  ] as const) {
    const refused = await run(`${words} login --key-stdin`, key);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, why);
  }
  for (const trust of [`--ca-file ${rootFile}`, `--pin ${pin}`]) {
    const login = await run(`${trust} login --key-stdin`, key);
    assert.equal(login.code, 0, login.stderr);
    const listed = await run('certificate list');
    assert.match(listed.stdout, /^own +valid /m, listed.stderr);
    assert.equal((await run('logout')).code, 0);
  }
  await server.end();
  const requests = server.log().match(/"msg":"request"/g) ?? [];
  assert.equal(requests.length, 4, 'two logins and two lists');
});

/** A server that is no vault. */
async function stranger(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('redirects are not followed with a key, and a malicious response neither fills memory nor reaches the terminal', async (t) => {
  const seen: (string | undefined)[] = [];
  const target = await stranger(t, (request, response) => {
    seen.push(request.headers.authorization);
    response.end('[]');
  });
  const token = join(tempDir(t), 'token');
  writeFileSync(token, `vk_${'a'.repeat(12)}.${'b'.repeat(43)}\n`, { mode: 0o600 });
  const list = async (answer: RequestListener) => {
    const url = await stranger(t, answer);
    return vault(commandWords(`--server ${url} certificate list`), {
      environment: { CERTVAULT_TOKEN_FILE: token },
    });
  };
  const redirected = await list((_, response) => {
    response.writeHead(307, { Location: `${target}/api/v1/certificates` }).end();
  });
  assert.match(
    redirected.stderr,
    /responded with status 307, and not as a vault\n {2}Check the URL\. Redirects are not followed\.\n$/,
  );
  const next = await list((_, response) => {
    response.writeHead(200, {
      'Content-Type': 'application/json',
      Link: `<${target}/api/v1/certificates?after=a>; rel="next"`,
    });
    response.end('[]');
  });
  assert.notEqual(next.code, undefined);
  assert.deepEqual(seen, [], 'the key stays with its server');
  const escapes = await list((_, response) => {
    response.writeHead(403, { 'Content-Type': 'application/problem+json' });
    response.end(
      JSON.stringify({
        ...{ status: 403, code: 'forbidden', detail: 'no' },
        command_line: { lines: ['no \u001b[2J\u009b'], hint: 'x\u001b' },
      }),
    );
  });
  assert.equal(escapes.stderr.includes('\u001b'), false);
  assert.match(escapes.stderr, /^vault: no \?\[2J\?/);
  const endless = await list((_, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const more = () => {
      while (response.writable && response.write(Buffer.alloc(1 << 20, '[')));
    };
    response.on('drain', more);
    more();
  });
  assert.match(endless.stderr, /sent a response larger than \d+ bytes/);
});

const misuse: readonly (readonly [words: string, message: RegExp])[] = [
  [
    '--server http://vault.example.com certificate list',
    /^vault: --server: "http:\/\/vault\.example\.com" is not the URL of a vault\n/,
  ],
  ['--server https://a.test/path certificate list', /^vault: --server: .* is not the URL of a vault\n/],
  ['--server', /^vault: --server needs a value\n/],
  ['--pin sha256//x certificate list', /^vault: --pin needs a server\n {2}Add --server URL\.\n/],
  ['--server https://a.test --pin x certificate list', /^vault: --pin: "x" is not the pin of a public key\n/],
  [
    '--server https://a.test --ca-file a --pin b certificate list',
    /^vault: --ca-file and --pin exclude each other\n/,
  ],
  [
    '--server https://a.test certificate list --data-dir /x',
    /^vault: --data-dir and --server exclude each other\n/,
  ],
  [
    '--server http://127.0.0.1:8080 --ca-file a certificate list',
    /^vault: --ca-file needs an https URL\n {2}A server at an http URL presents no certificate\.\n/,
  ],
  ['--server https://a.test backup /x', /^vault: "backup" works only on the vault's machine: /],
  ['--server https://a.test --server https://b.test certificate list', /^vault: --server is given twice\n/],
];

for (const [words, message] of misuse) {
  test(`"${words}" is misuse`, async () => {
    const { code, stderr, stdout } = await vault(commandWords(words));
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, message);
  });
}
