/** The settings of HTTPS: a certificate of the vault itself, or files, or neither. */
import { resolve } from 'node:path';
import { type CertName, certNameRule, parseCertName } from '../../base/cert-name.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { TlsFiles } from '../../http/tls/tls-files.ts';
import type { Found } from './setting-values.ts';

export const tlsOptions = {
  'tls-certificate': {
    type: 'string',
    valueHint: 'NAME',
    description:
      'serve HTTPS with this certificate of the vault; the private CA issues it if it does not exist',
  },
  'tls-cert-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'serve HTTPS with the certificate and chain in this file; reloaded when it changes',
  },
  'tls-key-file': { type: 'string', valueHint: 'FILE', description: 'the private key of --tls-cert-file' },
} as const;

export type TlsSettings =
  | { readonly kind: 'certificate'; readonly name: CertName }
  | ({ readonly kind: 'files' } & TlsFiles);

/** Undefined for plain HTTP. Throws OperatorError if the settings exclude each other. */
export function tlsSettings(
  setting: (name: keyof typeof tlsOptions) => Found | undefined,
): TlsSettings | undefined {
  const name = setting('tls-certificate');
  const certFile = setting('tls-cert-file');
  const keyFile = setting('tls-key-file');
  const file = certFile ?? keyFile;
  if (name !== undefined && file !== undefined) {
    throw new OperatorError(`${name.from} and ${file.from} exclude each other`, {
      hint: 'Serve HTTPS either with a certificate of the vault or with files.',
    });
  }
  if (name !== undefined) return { kind: 'certificate', name: certName(name) };
  if (file === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    const missing = certFile === undefined ? '--tls-cert-file' : '--tls-key-file';
    throw new OperatorError(`${file.from} needs ${missing}`, {
      hint: 'Set both, even if one file holds certificate and key.',
    });
  }
  return { kind: 'files', certFile: resolve(certFile.value), keyFile: resolve(keyFile.value) };
}

function certName({ value, from }: Found): CertName {
  const name = parseCertName(value);
  if (name !== undefined) return name;
  throw new OperatorError(`${from}: "${value}" is not a certificate name`, {
    hint: `Use a name such as vault: ${certNameRule}.`,
  });
}
