/**
 * `vault certificate import`: every way to hand files over, what is said about them, and refusals that store nothing.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { CertificateView } from '../../../../src/domain/certificates/certificate-views.ts';
import { type Chain, issue, makeChain, openssl } from '../../../harness/ca/openssl-chain.ts';
import { pkcs12Bomb } from '../../../harness/import-bombs.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { vault } from '../../../harness/processes/vault-process.ts';

const dir = mkdtempSync(join(tmpdir(), 'vault-import-'));
after(() => rmSync(dir, { recursive: true }));
const data = join(dir, 'data');
const password = 'correct horse';
let made: Chain | undefined;

/** Made by the first test that needs it, because a `before` would fail where openssl is missing. */
function chain(): Chain {
  made ??= makeChain(dir);
  return made;
}

function write(name: string, content: string | Buffer): string {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}

function pkcs12(): string {
  const { leaf, fullchainPath } = chain();
  const path = join(dir, 'bundle.p12');
  const chosen = ['-in', fullchainPath, '-inkey', leaf.keyPath, '-passout', `pass:${password}`, '-out', path];
  openssl(dir, 'pkcs12', '-export', ...chosen);
  return path;
}

/** Imports, and checks that nothing of a key or a password is said about it. */
async function importing(args: readonly string[], input?: string | Buffer) {
  const launch = input === undefined ? {} : { input };
  const outcome = await vault(['certificate', 'import', '--data-dir', data, ...args], launch);
  const said = outcome.stdout + outcome.stderr;
  const keyLines = chain()
    .leaf.keyPem.split('\n')
    .filter((line) => line.length > 20 && !line.startsWith('-'));
  for (const secret of [password, ...keyLines]) assert.ok(!said.includes(secret), said);
  assert.doesNotMatch(said, /\n\s+at /);
  return outcome;
}

async function list(): Promise<CertificateView[]> {
  const { code, stdout, stderr } = await vault(['certificate', 'list', '--json', '--data-dir', data]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as CertificateView[];
}

test(
  'certificate and key in two files become version 1, and a second import version 2',
  needs('openssl'),
  async () => {
    const { leaf, fullchainPath } = chain();
    const pair = ['--name=pair', '--fullchain', fullchainPath, '--private-key', leaf.keyPath];
    const first = await importing(pair);
    assert.deepEqual([first.code, first.stdout], [0, 'pair: version 1\n']);
    const next = makeChain(dir, { label: 'Next', names: 'DNS:next.example.com' });
    const files = ['--fullchain', next.fullchainPath, '--private-key', next.leaf.keyPath];
    assert.deepEqual(await importing(['--name=pair', ...files]), {
      code: 1,
      stdout: '',
      stderr:
        'vault: the new version of pair would no longer cover www.example.com, example.com\n' +
        '  Check the name; if it is right, use --allow-lost-domains (`allow_lost_domains` over HTTP).\n',
    });
    assert.deepEqual(await importing(['--name=pair', ...files, '--allow-lost-domains']), {
      code: 0,
      stdout: 'pair: version 2\n',
      stderr: '',
    });
    const [view] = await list();
    assert.deepEqual(
      [
        view?.domains,
        view?.issuer,
        view?.auto_renew,
        view?.current_version?.version,
        view?.current_version?.source,
      ],
      [['next.example.com'], null, false, 2, 'import'],
    );
    const { stdout } = await vault(['certificate', 'show', '--name=pair', '--data-dir', data]);
    assert.match(stdout, /^Renewal +not automatic$/m);
    assert.match(stdout, /^2 \(current\) .* import .*\n1 .* import /m);
  },
);

test('importing the same files again changes nothing unless --force is given', needs('openssl'), async () => {
  const { leaf, fullchainPath, root, intermediates } = chain();
  const again = ['--name=again', '--fullchain', fullchainPath, '--private-key', leaf.keyPath];
  await importing(again);
  const unchanged = {
    code: 0,
    stdout: 'again: version 1\n',
    stderr: 'Version 1 of again already holds these files; nothing was changed. --force adds a version.\n',
  };
  assert.deepEqual(await importing(again), unchanged);
  const shuffled = [root, ...intermediates, leaf].map(({ certificatePem }) => certificatePem).join('');
  assert.deepEqual(await importing(['--name=again', '--fullchain=-'], leaf.keyPem + shuffled), unchanged);
  const events = await vault(['audit', 'list', '--certificate=again', '--json', '--data-dir', data]);
  assert.equal((JSON.parse(events.stdout) as unknown[]).length, 1);

  const forced = { code: 0, stdout: 'again: version 2\n', stderr: '' };
  assert.deepEqual(await importing([...again, '--force']), forced);
  // Only the current version counts: files of an earlier one roll back.
  const next = makeChain(dir, { label: 'Again', names: 'DNS:again.example.com' });
  const other = ['--fullchain', next.fullchainPath, '--private-key', next.leaf.keyPath];
  await importing(['--name=again', '--allow-lost-domains', ...other]);
  assert.equal((await importing([...again, '--allow-lost-domains'])).stdout, 'again: version 4\n');
  const alone = await importing([
    '--name=again',
    '--fullchain',
    leaf.certificatePath,
    '--private-key',
    leaf.keyPath,
  ]);
  assert.equal(alone.stdout, 'again: version 5\n');
});

test(
  'a self-signed certificate from openssl is imported only with --allow-ca',
  needs('openssl'),
  async () => {
    const [cert, key] = [join(dir, 'printer.crt'), join(dir, 'printer.key')];
    const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    openssl(dir, ...request, '-keyout', key, '-out', cert, '-subj', '/CN=printer.example.com', '-days', '30');
    const pair = ['--name=printer', '--fullchain', cert, '--private-key', key];
    const refused = await importing(pair);
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.match(
      refused.stderr,
      /belongs to a CA certificate \(CN=printer\.example\.com\)(?:.|\n)*--allow-ca/,
    );
    assert.deepEqual(await importing([...pair, '--allow-ca']), {
      code: 0,
      stdout: 'printer: version 1\n',
      stderr: '',
    });
    const view = (await list()).find(({ name }) => name === 'printer');
    assert.deepEqual([view?.domains, view?.status], [['printer.example.com'], 'valid']);
  },
);

test('one file may hold certificate, chain, root and key in any order', needs('openssl'), async () => {
  const { root, leaf, intermediates } = chain();
  const parts = [intermediates[0].certificatePem, root.certificatePem, leaf.keyPem, leaf.certificatePem];
  const path = write('all.pem', [...parts, intermediates[1].certificatePem].join('some text\n'));
  const { code, stdout } = await importing(['--name=one-file', '--fullchain', path]);
  assert.deepEqual([code, stdout], [0, 'one-file: version 1\n']);
});

test(
  'import reads the bundle, the chain or the private key from standard input',
  needs('openssl'),
  async () => {
    const { leaf, fullchainPem, fullchainPath } = chain();
    const outcomes = await Promise.all([
      importing(['--name=input', '--fullchain=-'], fullchainPem + leaf.keyPem),
      importing(['--name=input-chain', '--fullchain', '-', '--private-key', leaf.keyPath], fullchainPem),
      importing(['--name=input-key', '--fullchain', fullchainPath, '--private-key=-'], leaf.keyPem),
    ]);
    assert.deepEqual(
      outcomes.map(({ code, stdout }) => [code, stdout]),
      ['input', 'input-chain', 'input-key'].map((name) => [0, `${name}: version 1\n`]),
    );
  },
);

test(
  'a PKCS#12 file opens with the password in a file, with or without a newline after it',
  needs('openssl'),
  async () => {
    const bundle = pkcs12();
    const [bare, line] = [write('bare', password), write('line', `${password}\r\n`)];
    const outcomes = await Promise.all([
      importing(['--name=p12', '--pkcs12', bundle, '--password-file', bare]),
      importing(['--name=p12-line', '--pkcs12', bundle, '--password-file', line]),
      importing(['--name=p12-input', '--pkcs12', bundle, '--password-file=-'], `${password}\n`),
      importing(['--name=p12-stdin', '--pkcs12=-', '--password-file', bare], readFileSync(bundle)),
    ]);
    assert.deepEqual(
      outcomes.map(({ code, stdout }) => [code, stdout]),
      ['p12', 'p12-line', 'p12-input', 'p12-stdin'].map((name) => [0, `${name}: version 1\n`]),
    );
  },
);

test(
  'expired and not yet valid certificates and incomplete chains are imported with a warning',
  needs('openssl'),
  async () => {
    const day = 86_400_000;
    const today = Math.floor(Date.now() / 1000) * 1000;
    const leaf = (name: string, notBefore: number, notAfter: number) =>
      issue(dir, name, {
        issuer: chain().intermediates[1],
        names: 'DNS:a.test',
        role: 'leaf',
        notBefore,
        notAfter,
      });
    const over = leaf('over', today - 20 * day, today - 10 * day);
    const early = leaf('early', today + 10 * day, today + 20 * day);
    const outcomes = await Promise.all(
      [over, early].map(({ certificatePath, keyPath }, index) =>
        importing([`--name=noted-${index}`, '--fullchain', certificatePath, '--private-key', keyPath]),
      ),
    );
    for (const [index, { code, stdout, stderr }] of outcomes.entries()) {
      assert.deepEqual([code, stdout], [0, `noted-${index}: version 1\n`]);
      assert.match(
        stderr,
        index === 0
          ? /^Warning: .*expired/m
          : /^Warning: .*not valid (yet|before|until)|^Warning: .*valid from/m,
      );
      assert.match(stderr, /^Warning: The intermediate certificate of .* is missing/m);
    }
  },
);

test(
  'unusable files and conflicting options are rejected, and nothing is stored',
  needs('openssl'),
  async () => {
    const { leaf, fullchainPath } = chain();
    const before = await list();
    mkdirSync(join(dir, 'directory'));
    const large = write('large.pem', Buffer.alloc(1024 * 1024 + 1, 'x'));
    const stranger = issue(dir, 'stranger').keyPath;
    const wrong = write('wrong', 'wrong password');
    const bundle = pkcs12();
    await vault(['certificate', 'create', '--name=issued', '--domain=a.test', '--data-dir', data]);
    const pair = (fullchain: string, key: string) => ['--fullchain', fullchain, '--private-key', key];
    const cases: [code: 1 | 2, args: string[], stderr: RegExp][] = [
      [
        1,
        pair(join(dir, 'absent'), leaf.keyPath),
        /^vault: cannot read \S+absent: no such file or directory\n {2}Check the file name /,
      ],
      [
        1,
        pair(fullchainPath, join(dir, 'directory')),
        /^vault: cannot read \S+directory: is a directory\n {2}Check /,
      ],
      [1, pair(large, leaf.keyPath), /^vault: \S+large\.pem is larger than 1 MiB\.\n {2}\S/],
      [
        1,
        pair(fullchainPath, stranger),
        /^vault: The private ec256 key in \S+stranger\.key does not match any of the cert.*\n {2}Import the key /,
      ],
      [1, ['--fullchain', fullchainPath], /^vault: No private key found in .*\n {2}\S/],
      [
        1,
        ['--pkcs12', bundle],
        /^vault: \S+bundle\.p12 is a PKCS#12 file that is protected by a password\.\n {2}\S/,
      ],
      [
        1,
        ['--pkcs12', bundle, '--password-file', wrong],
        /^vault: The password of the PKCS#12 file .*\n {2}\S/,
      ],
      [
        1,
        ['--pkcs12', write('bomb.p12', pkcs12Bomb('wrong password', 2 ** 31 - 1)), '--password-file', wrong],
        /^vault: \S+bomb\.p12 takes more than 5 seconds .*\n {2}Convert it to PEM with `openssl pkcs12 -legacy /,
      ],
      [1, ['--fullchain', '-'], /^vault: standard input is empty\.\n {2}\S/],
      [
        1,
        ['--name=issued', ...pair(fullchainPath, leaf.keyPath)],
        /^vault: Certificate "issued" is renewed by an issuer; .*\n {2}\S/,
      ],
      [2, ['--private-key', leaf.keyPath], /^vault: --fullchain is missing\n {2}Use /],
      [
        2,
        ['--pkcs12', bundle, '--fullchain', fullchainPath],
        /^vault: --pkcs12 cannot be combined with .*\n {2}Use /,
      ],
      [2, ['--pkcs12=-', '--password-file=-'], /^vault: only one option can read standard input\n {2}\S/],
    ];
    await Promise.all(
      cases.map(async ([expected, args, message]) => {
        const name = args[0]?.startsWith('--name') ? [] : ['--name=refused'];
        const { code, stdout, stderr } = await importing([...name, ...args]);
        assert.deepEqual({ code, stdout }, { code: expected, stdout: '' }, `${args.join(' ')}: ${stderr}`);
        assert.match(stderr, message);
      }),
    );
    assert.deepEqual(
      (await list()).filter(({ name }) => name !== 'issued'),
      before,
    );
  },
);
