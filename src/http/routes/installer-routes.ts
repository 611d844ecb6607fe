/**
 * The client scripts and their checksums: the client installer, and the script that installs trust in the private CA.
 * They depend on the caller: each contains the address that it was requested from, as the default of --server.
 */
import { hash } from 'node:crypto';
import { boundedCache } from '../../domain/cache/bounded-cache.ts';
import { noneMatch } from '../request/conditional-request.ts';
import { type Call, type Route, route } from '../request/route.ts';

/** The texts of the client installer (assets/install.sh with its parts) and of assets/install-ca.sh. */
export type ClientScripts = { readonly installer: string; readonly trust: string };

const access = { kind: 'public' } as const;

/** Cached addresses of the vault; a flood of invented ones evicts others, but does not grow memory. */
const maxAddresses = 16;

type Served = { readonly body: Buffer; readonly sha256: string };

/** What a script is called, and how the API describes it. */
type Description = { readonly file: string; readonly id: string; readonly what: string };

/** The line of a script that receives the address. */
const marked = "\ndefault_server=''\n";

/** Throws if a script has no line for the address of the server. */
export function installerRoutes({ installer, trust }: ClientScripts): readonly Route[] {
  return [
    ...scriptRoutes(installer, {
      file: 'install.sh',
      id: 'getInstaller',
      what: 'the client installer',
    }),
    ...scriptRoutes(trust, {
      file: 'install-ca.sh',
      id: 'getTrustInstaller',
      what: 'the script that adds the private CA to the trust stores of a machine',
    }),
  ];
}

function scriptRoutes(script: string, { file, id, what }: Description): readonly Route[] {
  if (script.split(marked).length !== 2) {
    throw new Error(`${file} needs exactly one line default_server=''`);
  }
  const recent = boundedCache<string, Served>(maxAddresses);
  const served = ({ baseUrl }: Call): Served => {
    const known = recent.get(baseUrl);
    if (known !== undefined) return known;
    const body = Buffer.from(withServer(script, baseUrl));
    const made = { body, sha256: hash('sha256', body) };
    recent.set(baseUrl, made);
    return made;
  };
  return [
    route({
      method: 'GET',
      path: `/client/${file}`,
      id,
      summary: `Download ${what}, a shell script`,
      access,
      replies: {
        200: { description: 'the script', contentType: 'text/x-shellscript', headers: ['ETag'] },
        304: {
          description: 'the script still has the entity tag in If-None-Match',
          contentType: 'none',
          headers: ['ETag'],
        },
      },
      problems: [],
      handle: async (call) => {
        const { body, sha256 } = served(call);
        const etag = `"${sha256}"`;
        const headers = { ETag: etag, 'Cache-Control': 'no-cache' };
        if (noneMatch(call.ifNoneMatch, etag)) return { status: 304, headers, body: '' };
        return {
          status: 200,
          headers: { ...headers, 'Content-Type': 'text/x-shellscript; charset=utf-8' },
          body,
        };
      },
    }),
    route({
      method: 'GET',
      path: `/client/${file}.sha256`,
      id: `${id}Checksum`,
      summary: `Return the SHA-256 checksum of ${what}, in the format of sha256sum`,
      access,
      replies: { 200: { description: 'the checksum', contentType: 'text/plain' } },
      problems: [],
      handle: async (call) => ({
        status: 200,
        headers: { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-cache' },
        body: `${served(call).sha256}  ${file}\n`,
      }),
    }),
  ];
}

/**
 * The script with the address as its default. An address that could end the quotes, or that the script does not accept,
 * is left out: then --server is required.
 */
function withServer(script: string, baseUrl: string): string {
  if (!/^https?:\/\/[A-Za-z0-9.:[\]/_~%+-]+$/.test(baseUrl)) return script;
  return script.replace(marked, () => `\ndefault_server='${baseUrl}'\n`);
}
