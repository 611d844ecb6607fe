/**
 * The CA of a company, made with the openssl program: a root, and an issuing CA that signs the CSR of a vault. Tests
 * need `needs('openssl')`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openssl } from './openssl-chain.ts';

/** A CA certificate in a folder: `NAME.crt` and `NAME.key`. */
export type CompanyAuthority = { readonly name: string; readonly pem: string };

export type AuthorityTerms = {
  /** In the syntax of an extension file of openssl; those of a usual CA by default. */
  readonly extensions?: readonly string[];
  readonly days?: number;
  /** Arguments of `openssl genpkey`; P-256 by default. */
  readonly key?: readonly string[];
  /** The hash of its signature. */
  readonly digest?: string;
  readonly subject?: string;
};

export const defaultExtensions = [
  'basicConstraints=critical,CA:TRUE',
  'keyUsage=critical,keyCertSign,cRLSign',
];

/** The names that the issuing CA of `confinedCompany` permits. */
export const companyConstraints =
  'nameConstraints=critical,permitted;DNS:corp.example,excluded;DNS:secret.corp.example,permitted;IP:10.0.0.0/255.0.0.0';

const p256 = ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'];

/** A root that signed itself. */
export function companyRoot(dir: string, name = 'root', terms: AuthorityTerms = {}): CompanyAuthority {
  newKey(dir, name, terms);
  requestFor(dir, name, terms);
  return certify(dir, name, [`-signkey`, `${name}.key`], terms);
}

/** A CA that another CA of the company signed. */
export function companyIssuing(
  dir: string,
  signer: CompanyAuthority,
  name = 'issuing',
  terms: AuthorityTerms = {},
): CompanyAuthority {
  newKey(dir, name, terms);
  requestFor(dir, name, terms);
  return certify(dir, name, by(signer), terms);
}

/** The certificate (PEM) of a CSR (PEM), as the company returns it. */
export function companySigns(
  dir: string,
  signer: CompanyAuthority,
  csr: string,
  terms: AuthorityTerms = {},
): string {
  writeFileSync(join(dir, 'vault.csr'), csr);
  const extensions = ['basicConstraints=critical,CA:TRUE,pathlen:0', 'keyUsage=critical,keyCertSign,cRLSign'];
  return certify(dir, 'vault', by(signer), { extensions, ...terms }).pem;
}

/** A root, and an issuing CA for names of the company. */
export function confinedCompany(dir: string): { root: CompanyAuthority; issuing: CompanyAuthority } {
  const root = companyRoot(dir, 'root', { subject: '/O=Example Corp/CN=Example Corp Root' });
  const issuing = companyIssuing(dir, root, 'issuing', {
    subject: '/O=Example Corp/CN=Example Corp Issuing CA',
    extensions: [...defaultExtensions, companyConstraints],
  });
  return { root, issuing };
}

function newKey(dir: string, name: string, { key = p256 }: AuthorityTerms): void {
  openssl(dir, 'genpkey', ...key, '-out', `${name}.key`);
}

function requestFor(dir: string, name: string, { subject = `/CN=Company ${name}` }: AuthorityTerms): void {
  openssl(dir, 'req', '-new', '-key', `${name}.key`, '-subj', subject, '-out', `${name}.csr`);
}

function by({ name }: CompanyAuthority): string[] {
  return ['-CA', `${name}.crt`, '-CAkey', `${name}.key`];
}

function certify(
  dir: string,
  name: string,
  signer: readonly string[],
  { extensions = defaultExtensions, days = 3650, digest = 'sha256' }: AuthorityTerms,
): CompanyAuthority {
  const lines = ['subjectKeyIdentifier=hash', ...extensions];
  writeFileSync(join(dir, `${name}.ext`), `${lines.join('\n')}\n`);
  openssl(
    dir,
    ...['x509', '-req', '-in', `${name}.csr`, ...signer, `-${digest}`, '-days', String(days)],
    ...['-extfile', `${name}.ext`, '-out', `${name}.crt`],
  );
  return { name, pem: readFileSync(join(dir, `${name}.crt`), 'utf8') };
}
