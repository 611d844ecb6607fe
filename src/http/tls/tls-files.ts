/** An HTTPS certificate in files that another program replaces. */

import { readFileSync, statSync } from 'node:fs';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { readCertificateBundle } from '../../crypto/certificate-bundle.ts';
import { encodePem } from '../../crypto/pem.ts';
import type { LogContext, WorldContext } from '../../domain/contexts.ts';
import { type TlsIdentity, tlsIdentity } from './tls-identity.ts';
import type { TlsSource } from './tls-source.ts';

export type TlsFiles = { readonly certFile: string; readonly keyFile: string };

/**
 * The certificate and key in these files, read again whenever one of them changes. Files are replaced one after the
 * other: a pair that does not match is reported only if it still does not match at the next check.
 */
export function tlsFilesSource(
  { world, log }: WorldContext & LogContext,
  files: TlsFiles,
  publicRoots?: readonly string[],
): TlsSource {
  let tried = '';
  let complaint: { readonly state: string; readonly isReported: boolean } | undefined;
  const read = () => {
    const { identity, warnings } = readPair(files, world.now(), publicRoots);
    for (const warning of warnings) log.warn({ cert_file: files.certFile }, warning);
    return identity;
  };
  return {
    kind: 'files',
    certificate: null,
    begin: async () => {
      tried = stateOf(files);
      return read();
    },
    look: async () => {
      const state = stateOf(files);
      if (state === tried && (complaint === undefined || complaint.isReported)) return undefined;
      tried = state;
      try {
        const identity = read();
        complaint = undefined;
        return identity;
      } catch (error) {
        const isSettled = complaint?.state === state;
        complaint = { state, isReported: isSettled };
        if (!isSettled) return undefined;
        throw error;
      }
    },
  };
}

/** Changes whenever a file is written or replaced, including through symbolic links. */
function stateOf({ certFile, keyFile }: TlsFiles): string {
  const states = [certFile, keyFile].map((path) => {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stat === undefined
      ? 'missing'
      : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
  });
  return states.join(' ');
}

function readPair(
  files: TlsFiles,
  now: number,
  publicRoots: readonly string[] | undefined,
): { readonly identity: TlsIdentity; readonly warnings: readonly string[] } {
  const paths = [...new Set([files.certFile, files.keyFile])];
  const sources = paths.map((path) => ({ name: path, bytes: readOne(path) }));
  try {
    const { leaf, chain, privateKey, warnings } = readCertificateBundle({
      sources,
      now,
      authorities: 'taken',
    });
    const material = {
      fullchain: [leaf, ...chain].map((der) => encodePem('CERTIFICATE', der)).join(''),
      privateKey: new Secret(Buffer.from(encodePem('PRIVATE KEY', privateKey.expose()))),
      isPrivate: false,
      origin: { cert_file: files.certFile },
    };
    return { identity: tlsIdentity(material, now, publicRoots), warnings };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new OperatorError(`invalid HTTPS certificate files: ${error.message}`, {
      ...(error.hint !== undefined && { hint: error.hint }),
    });
  }
}

function readOne(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new OperatorError(`cannot read the HTTPS file ${path}: ${describeSystemError(error)}`, {
      hint: 'Set --tls-cert-file and --tls-key-file to readable files.',
      cause: error,
    });
  }
}
