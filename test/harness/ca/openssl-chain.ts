/**
 * Creates certificates and keys with the openssl program, with any names and any validity, in the folder of a test.
 * Tests need `needs('openssl')`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type KeyAlgorithm = 'ec256' | 'ec384' | 'rsa2048' | 'ed25519' | 'dsa';

/** A certificate and its key, as PEM (the key is PKCS#8) and as files. */
export type Issued = {
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly certificatePath: string;
  readonly keyPath: string;
};

export type IssueOptions = {
  /** In the syntax of openssl: `/C=DE/CN=example.com`. By default the common name is the name. */
  readonly subject?: string;
  /** The issuer; self-signed by default. */
  readonly issuer?: Issued;
  /** Uses the key of this certificate instead of a new one. */
  readonly keyOf?: Issued;
  readonly keyAlgorithm?: KeyAlgorithm;
  /** UTC milliseconds, whole seconds; by default 2025 to 2045. */
  readonly notBefore?: number;
  readonly notAfter?: number;
  /** The subjectAltName in the syntax of openssl: `DNS:example.com,IP:::1`. */
  readonly names?: string;
  /** Whether it is a CA; `by default` creates it like `openssl req -x509`, which is a CA by accident. */
  readonly role?: 'leaf' | 'authority' | 'by default';
};

export type ChainOptions = Pick<IssueOptions, 'keyAlgorithm' | 'notBefore' | 'notAfter' | 'names'> & {
  /** The prefix of the subjects, so that two chains differ; by default `Test`. */
  readonly label?: string;
};

/** Root → intermediate 1 → intermediate 2 → leaf. */
export type Chain = {
  readonly root: Issued;
  /** From the root down: the second one issued the leaf. */
  readonly intermediates: readonly [Issued, Issued];
  readonly leaf: Issued;
  /** Leaf and intermediates in the order of a TLS server, without the root. */
  readonly fullchainPem: string;
  readonly fullchainPath: string;
};

const usual = { notBefore: Date.UTC(2025, 0, 1), notAfter: Date.UTC(2045, 0, 1) };

const keyArguments: Readonly<Record<KeyAlgorithm, readonly string[]>> = {
  ec256: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  ec384: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-384'],
  rsa2048: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
  ed25519: ['-algorithm', 'ED25519'],
  dsa: ['-paramfile', 'dsa.param'],
};

const extensions = {
  leaf: [
    'basicConstraints=critical,CA:FALSE',
    'keyUsage=critical,digitalSignature',
    'extendedKeyUsage=serverAuth',
  ],
  authority: ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign'],
  'by default': ['basicConstraints=critical,CA:TRUE'],
} as const;

/** Returns the standard output of openssl. Throws its error output if it fails. */
export function openssl(dir: string, ...args: readonly string[]): Buffer {
  return execFileSync('openssl', args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Creates `NAME.key` and `NAME.crt` in the folder. */
export function issue(dir: string, name: string, options: IssueOptions = {}): Issued {
  const { subject = `/CN=${name}`, issuer, keyOf, keyAlgorithm = 'ec256', names, role = 'leaf' } = options;
  const keyPath = keyOf?.keyPath ?? join(dir, `${name}.key`);
  const certificatePath = join(dir, `${name}.crt`);
  if (keyOf === undefined) makeKey(dir, keyPath, keyAlgorithm);
  writeConfiguration(dir, [...extensions[role], ...(names ? [`subjectAltName=${names}`] : [])]);
  const request = join(dir, `${name}.csr`);
  openssl(
    dir,
    'req',
    '-new',
    '-utf8',
    '-config',
    'ca.cnf',
    '-key',
    keyPath,
    '-subj',
    subject,
    '-out',
    request,
  );
  const signer = issuer
    ? ['-cert', issuer.certificatePath, '-keyfile', issuer.keyPath]
    : ['-selfsign', '-keyfile', keyPath];
  const { notBefore = usual.notBefore, notAfter = usual.notAfter } = options;
  const validity = ['-startdate', asn1Time(notBefore), '-enddate', asn1Time(notAfter)];
  const output = ['-notext', '-in', request, '-out', certificatePath];
  openssl(
    dir,
    'ca',
    '-batch',
    '-config',
    'ca.cnf',
    '-utf8',
    '-preserveDN',
    ...signer,
    ...validity,
    ...output,
  );
  return {
    certificatePem: readFileSync(certificatePath, 'utf8'),
    keyPem: readFileSync(keyPath, 'utf8'),
    certificatePath,
    keyPath,
  };
}

/**
 * A chain with three levels of CAs. The options apply to the leaf, except for the algorithm, which applies to all keys.
 */
export function makeChain(dir: string, options: ChainOptions = {}): Chain {
  const { label = 'Test', keyAlgorithm = 'ec256', ...leafOptions } = options;
  const authority = { keyAlgorithm, role: 'authority' } as const;
  const file = label.toLowerCase().replaceAll(' ', '-');
  const root = issue(dir, `${file}-root`, { ...authority, subject: `/O=${label}/CN=${label} Root` });
  const upper = issue(dir, `${file}-upper`, {
    ...authority,
    issuer: root,
    subject: `/O=${label}/CN=${label} Intermediate 1`,
  });
  const lower = issue(dir, `${file}-lower`, {
    ...authority,
    issuer: upper,
    subject: `/O=${label}/CN=${label} Intermediate 2`,
  });
  const leaf = issue(dir, `${file}-leaf`, {
    names: 'DNS:www.example.com,DNS:example.com',
    ...leafOptions,
    keyAlgorithm,
    issuer: lower,
    subject: '/CN=www.example.com',
  });
  const fullchainPem = [leaf, lower, upper].map((one) => one.certificatePem).join('');
  const fullchainPath = join(dir, `${file}-fullchain.pem`);
  writeFileSync(fullchainPath, fullchainPem);
  return { root, intermediates: [upper, lower], leaf, fullchainPem, fullchainPath };
}

function makeKey(dir: string, path: string, algorithm: KeyAlgorithm): void {
  if (algorithm === 'dsa' && !existsSync(join(dir, 'dsa.param'))) {
    openssl(
      dir,
      'genpkey',
      '-genparam',
      '-algorithm',
      'DSA',
      '-pkeyopt',
      'dsa_paramgen_bits:1024',
      '-out',
      'dsa.param',
    );
  }
  openssl(dir, 'genpkey', ...keyArguments[algorithm], '-out', path);
}

/** In OpenSSL 3.0 only `openssl ca` can set both ends of the validity, and it needs a database. */
function writeConfiguration(dir: string, leafExtensions: readonly string[]): void {
  writeFileSync(join(dir, 'index.txt'), '');
  const sections = {
    ca: ['default_ca=this'],
    this: [
      'database=index.txt',
      'new_certs_dir=.',
      'rand_serial=yes',
      'default_md=default',
      'policy=policy',
      'unique_subject=no',
      'x509_extensions=extensions',
    ],
    policy: ['commonName=optional'],
    req: ['distinguished_name=subject'],
    subject: [],
    extensions: ['subjectKeyIdentifier=hash', 'authorityKeyIdentifier=keyid', ...leafExtensions],
  };
  const lines = Object.entries(sections).flatMap(([name, entries]) => [`[${name}]`, ...entries]);
  writeFileSync(join(dir, 'ca.cnf'), `${lines.join('\n')}\n`);
}

function asn1Time(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
}
