/** An HTTPS certificate in files that another program replaces. */

import { readFile, stat } from 'node:fs/promises';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { readCertificateBundle } from '../../crypto/bundles/certificate-bundle.ts';
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
  let issue: { readonly state: string; readonly isReported: boolean } | undefined;
  const read = async () => {
    const { identity, warnings } = await readPair(files, world.now(), publicRoots);
    for (const warning of warnings) log.warn({ cert_file: files.certFile }, warning);
    return identity;
  };
  return {
    kind: 'files',
    certificate: null,
    begin: async () => {
      tried = await stateOf(files);
      return read();
    },
    look: async () => {
      const state = await stateOf(files);
      if (state === tried && (issue === undefined || issue.isReported)) return undefined;
      tried = state;
      try {
        const identity = await read();
        issue = undefined;
        return identity;
      } catch (error) {
        const isSettled = issue?.state === state;
        issue = { state, isReported: isSettled };
        if (!isSettled) return undefined;
        throw error;
      }
    },
  };
}

/** Changes whenever a file is written or replaced, including through symbolic links. */
async function stateOf({ certFile, keyFile }: TlsFiles): Promise<string> {
  const states: string[] = [];
  for (const path of [certFile, keyFile]) {
    const found = await stat(path, { bigint: true, throwIfNoEntry: false });
    states.push(
      found === undefined
        ? 'missing'
        : `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs}`,
    );
  }
  return states.join(' ');
}

async function readPair(
  files: TlsFiles,
  now: number,
  publicRoots: readonly string[] | undefined,
): Promise<{ readonly identity: TlsIdentity; readonly warnings: readonly string[] }> {
  const paths = [...new Set([files.certFile, files.keyFile])];
  const sources: { readonly name: string; readonly bytes: Buffer }[] = [];
  for (const path of paths) sources.push({ name: path, bytes: await readOne(path) });
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

async function readOne(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new OperatorError(`cannot read the HTTPS file ${path}: ${describeSystemError(error)}`, {
      hint: 'Set --tls-cert-file and --tls-key-file to readable files.',
      cause: error,
    });
  }
}
